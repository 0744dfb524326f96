// Frames of a stream of libmdfs.
// SPDX-License-Identifier: Apache-2.0
#include "movie_stream.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace mdfs::gst {
namespace {

// The clock that shows the frames may run faster than that of the stream.
constexpr double kFaster = 1.001;
constexpr double kNsOfSecond = 1e9;

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

MovieStream::MovieStream(std::shared_ptr<const OpenMovie> movie, std::shared_ptr<StreamCounts> counts)
    : movie_(std::move(movie)),
      counts_(std::move(counts)),
      first_(static_cast<std::int64_t>(movie_->window().start[movie_->movie().axis])) {}

double MovieStream::rate(double speed) const {
  const FrameRate& rate = movie_->movie().rate;
  return std::abs(speed) * kFaster * rate.numerator / rate.denominator;
}

std::unique_ptr<MovieStream> MovieStream::open(std::shared_ptr<const OpenMovie> movie, const Settings& settings,
                                               std::shared_ptr<StreamCounts> counts, std::string& error) {
  std::unique_ptr<MovieStream> opened(new MovieStream(std::move(movie), std::move(counts)));
  const OpenMovie& shown = *opened->movie_;
  mdfs_ioc_stream request{};
  request.window = window_of_frame(shown.window(), shown.movie(), 0);
  request.axis = shown.movie().axis;
  request.rate = opened->rate(1);
  request.lookahead = static_cast<std::uint32_t>(frames_ahead(settings, shown.canonical_bytes()));
  if (settings.coarser) request.flags = MDFS_STREAM_COARSER;
  if (mdfs_stream_open(shown.image(), &request, &opened->stream_) < 0) {
    error = mdfs_last_error();
    return nullptr;
  }
  opened->ahead_ = request.lookahead;
  opened->period_ns_ = kNsOfSecond / request.rate;
  return opened;
}

bool MovieStream::is_behind(const mdfs_ioc_frame& frame) const {
  const double slack = period_ns_ * std::max(ahead_ / 2, 1u);
  return frame.ready_ns <= frame.deadline_ns && static_cast<double>(monotonic_ns() - frame.deadline_ns) > slack;
}

std::optional<MovieStream::Arrived> MovieStream::next() {
  mdfs_ioc_frame frame{};
  bool stopped = false;
  Arrived arrived;
  arrived.frame = movie_->read_from([&](void* to, std::string& error) {
    const ssize_t bytes = mdfs_stream_next(stream_, to, movie_->canonical_bytes(), &frame);
    stopped = bytes == 0 || bytes == -EBUSY;
    if (bytes < 0) error = mdfs_last_error();
    return bytes > 0;
  });
  if (stopped) return std::nullopt;
  // An error of one frame names it; any other one ends the stream.
  if (arrived.frame.buffer == nullptr && frame.deadline_ns == 0) arrived.error = arrived.frame.error;
  arrived.number = static_cast<std::int64_t>(frame.frame) - first_;
  arrived.is_behind = arrived.error.empty() && is_behind(frame);
  if (frame.ready_ns > frame.deadline_ns) ++counts_->late;
  if (frame.level > movie_->window().level) ++counts_->coarser;
  return arrived;
}

void MovieStream::stop() {
  mdfs_ioc_stream request{};
  request.action = MDFS_IOC_STREAM_PAUSE;
  (void)mdfs_stream_change(stream_, &request);
}

std::string MovieStream::seek(std::int64_t frame) {
  mdfs_ioc_stream request{};
  request.action = MDFS_IOC_STREAM_SEEK;
  request.frame = static_cast<std::uint64_t>(first_ + frame);
  return mdfs_stream_change(stream_, &request) < 0 ? mdfs_last_error() : std::string();
}

std::string MovieStream::set_pace(double speed, std::int64_t step) {
  mdfs_ioc_stream request{};
  request.action = MDFS_IOC_STREAM_PACE;
  request.rate = rate(speed);
  request.step = step;
  if (mdfs_stream_change(stream_, &request) < 0) return mdfs_last_error();
  period_ns_ = kNsOfSecond / request.rate;
  return {};
}

}  // namespace mdfs::gst
