// Arrivals of frames.
// SPDX-License-Identifier: Apache-2.0
#include "arrivals.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace mdfs::film {
namespace {

constexpr std::size_t kMostText = 64 << 10;  // that is kept in memory
constexpr std::int64_t kStepNs = 100'000;
constexpr std::int64_t kMostStepsEarlier = 100'000;  // 10 s before the first frame that counts
constexpr std::size_t kSteps = 700'000;              // and 60 s after it

}  // namespace

Arrivals::Arrivals(std::int64_t without_delay_ns) : without_delay_ns_(without_delay_ns), delays_(kSteps) {}

Status Arrivals::write_to(const std::string& path) {
  MDFS_TRY_ASSIGN(file_, tools::File::open(path, O_WRONLY | O_CREAT | O_EXCL));
  lines_ = "frame,timestamp_ns,arrival_ns\n";
  return {};
}

void Arrivals::flush() {
  if (written_.ok()) written_ = file_->write(std::as_bytes(std::span(lines_)));
  lines_.clear();
}

void Arrivals::note(std::int64_t timestamp_ns, int numerator, int denominator, std::int64_t arrived_ns,
                    std::int64_t real_time_ns) {
  if (frames_ == 0) first_timestamp_ns_ = timestamp_ns;
  const std::int64_t since_first = timestamp_ns - first_timestamp_ns_;
  const double frame = numerator > 0 ? std::round(static_cast<double>(since_first) * numerator / denominator / 1e9)
                                     : static_cast<double>(frames_);
  last_frame_ = std::max(frames_, static_cast<std::uint64_t>(std::max(frame, 0.0)));
  ++frames_;
  if (file_) {
    lines_ += fmt::format("{},{},{}\n", last_frame_, since_first, real_time_ns);
    if (lines_.size() >= kMostText) flush();
  }
  if (since_first < without_delay_ns_) return;
  const std::int64_t delay_ns = arrived_ns - timestamp_ns;
  if (!first_delay_ns_) first_delay_ns_ = delay_ns;
  const std::int64_t step = (delay_ns - *first_delay_ns_) / kStepNs + kMostStepsEarlier;
  ++delays_[static_cast<std::size_t>(std::clamp<std::int64_t>(step, 0, kSteps - 1))];
}

std::optional<double> Arrivals::delay_ms(double share) const {
  const auto counted = std::accumulate(delays_.begin(), delays_.end(), std::uint64_t{0});
  if (counted == 0) return std::nullopt;
  const auto earliest = std::ranges::find_if(delays_, [](std::uint32_t count) { return count > 0; });
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(counted)));
  std::uint64_t before = 0;
  for (auto step = earliest; step != delays_.end(); ++step) {
    before += *step;
    if (before >= wanted) return static_cast<double>(step - earliest) * static_cast<double>(kStepNs) / 1e6;
  }
  return std::nullopt;
}

Status Arrivals::finish() {
  if (!file_) return {};
  flush();
  MDFS_TRY(written_);
  return file_->close();
}

}  // namespace mdfs::film
