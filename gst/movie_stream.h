// The frames of a movie as a stream of libmdfs, at a rate that the disks are reserved for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mdfs/mdfs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "open_movie.h"
#include "reserved_frames.h"

namespace mdfs::gst {

// Frames that the disks delivered.
struct StreamCounts {
  std::atomic<std::uint64_t> late{0};     // after their deadlines
  std::atomic<std::uint64_t> coarser{0};  // from a coarser level
};

class MovieStream final : public FrameStream<FrameRead> {
 public:
  // Takes a second, in which the disks are measured. Null: `error` says why the rate cannot be had.
  static std::unique_ptr<MovieStream> open(std::shared_ptr<const OpenMovie> movie, const Settings& settings,
                                           std::shared_ptr<StreamCounts> counts, std::string& error);
  ~MovieStream() override { mdfs_stream_close(stream_); }
  MovieStream(const MovieStream&) = delete;
  MovieStream& operator=(const MovieStream&) = delete;

  std::optional<Arrived> next() override;
  void stop() override;
  std::string seek(std::int64_t frame) override;
  std::string set_pace(double speed, std::int64_t step) override;
  FrameRead failure(std::string error) const override { return {nullptr, std::move(error)}; }
  // Frames that the stream reads ahead.
  unsigned ahead() const { return ahead_; }

 private:
  MovieStream(std::shared_ptr<const OpenMovie> movie, std::shared_ptr<StreamCounts> counts);
  double rate(double speed) const;
  bool is_behind(const mdfs_ioc_frame& frame) const;

  const std::shared_ptr<const OpenMovie> movie_;
  const std::shared_ptr<StreamCounts> counts_;
  const std::int64_t first_;  // sample of frame 0 along the axis
  mdfs_stream* stream_ = nullptr;
  unsigned ahead_ = 0;
  std::atomic<double> period_ns_{0};
};

}  // namespace mdfs::gst
