// Where mdfssrc has the frames of a movie from.
//
// `Frame` is the result of a read, errors included. One thread at a time calls begin() and take(); any thread may call
// the other methods.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frame_times.h"

namespace mdfs::gst {

template <typename Frame>
class FrameSupply {
 public:
  virtual ~FrameSupply() = default;
  // 1: that of the movie; below 0: backwards. The answer is empty, or says why that speed cannot be had: it is the one
  // before then. Of the order that begins next.
  virtual std::string set_speed(double speed) = 0;
  // These frames come next, and those of the order before do not.
  virtual void begin(const FrameOrder& order) = 0;
  // Waits for a frame of the order; those before it are left out. Nothing: interrupted.
  virtual std::optional<Frame> take(std::int64_t frame) = 0;
  // While it is true take() returns at once.
  virtual void interrupt(bool interrupted) = 0;
  // Frames are shown again after a pause.
  virtual void resume() = 0;
};

}  // namespace mdfs::gst
