// Reads frames of an image at their times, some of them ahead, as a player without a reservation does: how many come
// late?
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <mdfs/mdfs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "timed_image.h"

namespace {

using bench::die;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string file, window;  // the first frame
  double rate = 25;
  std::uint64_t frames = 100;
  unsigned lookahead = 12;
};

struct Counts {
  std::atomic<std::uint64_t> in_time{0}, late{0};
  std::mutex mutex;  // guards latest_ms
  double latest_ms = 0;
};

// Each of the threads takes the next frame; a frame is not begun earlier than `lookahead` periods before its time.
void read_frames(const Options& options, mdfs_image* image, const mdfs_ioc_window& first, Clock::time_point start,
                 std::atomic<std::uint64_t>& next, Counts& counts) {
  std::vector<char> buffer(first.bytes);
  const auto period = std::chrono::duration<double>(1 / options.rate);
  const auto time_of = [&](double frame) {
    return start + std::chrono::duration_cast<Clock::duration>(period * frame);
  };
  for (std::uint64_t n = next++; n < options.frames; n = next++) {
    const auto deadline = time_of(static_cast<double>(n));
    std::this_thread::sleep_until(time_of(static_cast<double>(n) - options.lookahead));
    mdfs_ioc_window window = first;
    window.start[0] += n * window.length[0];
    if (mdfs_read_window(image, &window, buffer.data(), buffer.size(), nullptr) < 0) die(mdfs_last_error());
    const double behind_ms = std::chrono::duration<double, std::milli>(Clock::now() - deadline).count();
    ++(behind_ms > 0 ? counts.late : counts.in_time);
    const std::lock_guard lock(counts.mutex);
    counts.latest_ms = std::max(counts.latest_ms, behind_ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Reads frames of an image at their times, without a reservation."};
  app.add_option("FILE", options.file, "An image; frames follow one another along its slowest axis")->required();
  app.add_option("--window", options.window, "The first frame")->required();
  app.add_option("--rate", options.rate, "Frames a second")->check(CLI::PositiveNumber);
  app.add_option("--frames", options.frames, "How many");
  app.add_option("--lookahead", options.lookahead, "Frames ahead, which is how many are read at a time at most")
      ->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);

  mdfs_image* image = nullptr;
  if (mdfs_open(options.file.c_str(), O_RDONLY, &image) != 0) die(mdfs_last_error());
  mdfs_ioc_window window{};
  mdfs_ioc_geometry geometry{};
  if (mdfs_parse_window(image, options.window.c_str(), &window) != 0 || mdfs_info(image, &geometry) != 0)
    die(mdfs_last_error());
  const std::uint64_t there = (geometry.shape[0] - window.start[0]) / window.length[0];
  options.frames = std::min(options.frames, there);

  Counts counts;
  std::atomic<std::uint64_t> next{0};
  const auto start = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(std::min(1.0, options.lookahead / options.rate)));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::min(options.lookahead, 32u); ++i)
    threads.emplace_back([&] { read_frames(options, image, window, start, next, counts); });
  for (std::thread& thread : threads) thread.join();
  mdfs_close(image);
  const nlohmann::ordered_json json = {
      {"in_time", counts.in_time.load()}, {"late", counts.late.load()}, {"latest_ms", counts.latest_ms}};
  std::printf("%s\n", json.dump().c_str());
  return 0;
}
