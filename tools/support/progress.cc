// A progress bar on standard error, shown only on a terminal.
// SPDX-License-Identifier: Apache-2.0
#include "support/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::int64_t kRedrawNs = 200'000'000;
constexpr std::size_t kBarColumns = 30;

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Progress::Progress(std::string label, std::uint64_t total_bytes, bool wanted)
    : Progress(std::move(label), total_bytes, Unit::kBytes, wanted) {}

Progress::Progress(std::string label, std::uint64_t total, Unit unit) : Progress(std::move(label), total, unit, true) {}

Progress::Progress(std::string label, std::uint64_t total, Unit unit, bool wanted)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      shown_(wanted && ::isatty(STDERR_FILENO) == 1),
      start_ns_(now()),
      drawn_ns_(start_ns_) {}

Progress::~Progress() { finish(); }

void Progress::add(std::uint64_t amount) {
  done_ += amount;
  if (!shown_) return;
  const std::int64_t time = now();
  std::int64_t last = drawn_ns_;
  if (time - last < kRedrawNs || !drawn_ns_.compare_exchange_strong(last, time)) return;
  draw(time);
}

void Progress::draw(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  const std::uint64_t done = done_;
  const double seconds = static_cast<double>(now_ns - start_ns_) / 1e9;
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(done) / std::max(seconds, 1e-3));
  std::string line;
  if (unit_ == Unit::kCount) {
    line = fmt::format("{} {} of {}", label_, done, total_);
  } else if (total_ > 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    const auto full = static_cast<std::size_t>(part * kBarColumns);
    line = fmt::format("{} [{}{}] {:3.0f}% {}/s", label_, std::string(full, '#'), std::string(kBarColumns - full, ' '),
                       100 * part, format_size(rate));
  } else {
    line = fmt::format("{} {} {}/s", label_, format_size(done), format_size(rate));
  }
  write_error(fmt::format("\r{}\x1b[K", line));
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (finished_ || !shown_) return;
  finished_ = true;
  write_error("\r\x1b[K");
}

}  // namespace mdfs::tools
