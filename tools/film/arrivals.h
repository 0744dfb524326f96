// When the frames of a movie arrive at a receiver.
//
// One thread calls note(); after that, any thread calls the other methods.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "support/file.h"

namespace mdfs::film {

class Arrivals {
 public:
  // Frames of the first part of the movie have no delays: the jitter buffer holds them back.
  explicit Arrivals(std::int64_t without_delay_ns);

  // Writes each frame to this file, too, a line of "frame,timestamp_ns,arrival_ns".
  Status write_to(const std::string& path);

  // A frame that begins at the time stamp, in a movie of `numerator / denominator` frames a second (0: unknown).
  // arrived_ns: on a clock that ticks as time stamps do. real_time_ns: of CLOCK_REALTIME.
  void note(std::int64_t timestamp_ns, int numerator, int denominator, std::int64_t arrived_ns,
            std::int64_t real_time_ns);

  std::uint64_t frames() const { return frames_; }
  // Frames between the first and the last one that are missing, by the frame rate.
  std::uint64_t gaps() const { return frames_ == 0 ? 0 : last_frame_ + 1 - frames_; }
  // Milliseconds after the earliest frame: that of a share of the frames (0.5: the median; 1: the last).
  std::optional<double> delay_ms(double share) const;
  // The end of the file.
  Status finish();

 private:
  void flush();

  const std::int64_t without_delay_ns_;
  std::optional<tools::File> file_;
  std::string lines_;  // that the file does not have yet
  Status written_;     // the first error
  std::uint64_t frames_ = 0;
  std::uint64_t last_frame_ = 0;
  std::int64_t first_timestamp_ns_ = 0;
  std::optional<std::int64_t> first_delay_ns_;
  std::vector<std::uint32_t> delays_;  // how many frames, by tenths of a millisecond after the first delay
};

}  // namespace mdfs::film
