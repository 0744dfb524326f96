// Traces and lists of windows as clients; a thread for each client of a mount.
// SPDX-License-Identifier: Apache-2.0
#include "clients.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "mount.h"
#include "support/interruption.h"
#include "trace_file.h"

namespace mdfs::tools {
namespace {

using Clock = std::chrono::steady_clock;

// What all clients share. The threads fill different elements of `seconds`.
struct Run {
  std::span<const Reading> readings;
  const std::atomic<bool>& interrupted;
  Clock::time_point begun;
  std::vector<double> seconds;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::optional<Error> error;  // guarded by mutex; the first one

  void fail(const Error& why) {
    const std::lock_guard lock(mutex);
    if (!error) error = why;
    failed = true;
  }
};

void read_all(Run& run, MountedImage& image, const std::vector<std::size_t>& numbers) {
  for (const std::size_t number : numbers) {
    const auto at = run.begun + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(run.readings[number].time_s));
    if (!wait_until(at, run.interrupted)) return run.fail(stopped_by_signal());
    if (run.failed) return;
    const Result<double> seconds = image.timed_read(run.readings[number].window);
    if (!seconds.ok()) return run.fail(seconds.error());
    run.seconds[number] = *seconds;
  }
}

bool same_image(const model::TraceImage& traced, const geometry::Geometry& image) {
  return traced.geometry->rank == image.rank && traced.geometry->shape == image.shape;
}

}  // namespace

std::vector<Reading> dealt_out(std::span<const geometry::Window> windows, unsigned clients) {
  std::vector<Reading> readings;
  for (std::size_t i = 0; i < windows.size(); ++i)
    readings.push_back({.window = windows[i], .client = i % clients, .time_s = 0});
  return readings;
}

Result<std::vector<Reading>> read_clients(const std::string& trace, const geometry::Geometry& image) {
  MDFS_TRY_ASSIGN(const ReplayTrace read, read_trace(trace, true, image));
  const auto bad = [&](std::size_t line, const std::string& why) {
    return Error{Errc::kInvalidArgument, fmt::format("{}:{}: {}", trace, line, why)};
  };
  for (const Asked& asked : read.requests) {
    if (asked.request.range) return bad(asked.line, "bytes of the plain file; only windows are compared");
    if (asked.image != read.requests.front().image) return bad(asked.line, "another image; one is compared at a time");
    if (!same_image(read.images[asked.image], image)) return bad(asked.line, "a window of an image of another shape");
  }
  MDFS_TRY_ASSIGN(const std::vector<sim::TraceEntry> entries, entries_of(read, trace, true));
  std::vector<Reading> readings;
  std::set<std::uint64_t> clients;
  const double first_s = entries.front().time_s;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t client = read.requests[i].request.client;
    clients.insert(client);
    if (clients.size() > kMostReaders)
      return bad(read.requests[i].line, fmt::format("more than {} clients", kMostReaders));
    const double time_s = std::max(0.0, entries[i].time_s - first_s);
    readings.push_back({.window = entries[i].windows.front(), .client = client, .time_s = time_s});
  }
  return readings;
}

std::vector<sim::TraceEntry> entries_of(std::span<const Reading> readings) {
  std::vector<sim::TraceEntry> entries;
  std::map<std::uint64_t, std::size_t> last;
  for (const Reading& reading : readings) {
    sim::TraceEntry entry;
    entry.time_s = reading.time_s;
    entry.windows = {reading.window};
    entry.client = static_cast<unsigned>(reading.client);
    if (const auto before = last.find(reading.client); before != last.end()) entry.after = before->second;
    last[reading.client] = entries.size();
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<double>> timed_reads(const std::string& path, std::span<const Reading> readings,
                                        const std::atomic<bool>& interrupted) {
  std::map<std::uint64_t, std::vector<std::size_t>> numbers;
  for (std::size_t i = 0; i < readings.size(); ++i) numbers[readings[i].client].push_back(i);
  std::vector<MountedImage> images;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    MDFS_TRY_ASSIGN(MountedImage image, MountedImage::open(path));
    images.push_back(std::move(image));
  }
  Run run{.readings = readings,
          .interrupted = interrupted,
          .begun = Clock::now(),
          .seconds = std::vector<double>(readings.size()),
          .failed = false,
          .mutex = {},
          .error = {}};
  {
    std::vector<std::jthread> threads;
    std::size_t next = 0;
    for (const auto& [client, own] : numbers)
      threads.emplace_back([&run, &image = images[next++], &own = own] { read_all(run, image, own); });
  }
  if (run.error) return *run.error;
  return std::move(run.seconds);
}

}  // namespace mdfs::tools
