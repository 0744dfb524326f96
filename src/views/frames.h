// Names below frames/: the pictures of an image of three axes along its time, or along its first axis, as a sequence
// that players open as NAME.%04d.png. A frame is a window.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "views/view_file.h"

namespace mdfs::views {

inline constexpr std::string_view kFramesName = "frames";

// The files of frames/ of an image: each frame in each of the formats that hold it.
struct Frames {
  unsigned axis = 0;
  std::uint64_t count = 0;
  std::vector<Format> formats;  // none: the image has no frames

  std::uint64_t names() const { return count * formats.size(); }
};
Frames frames_of(const ShownImage& image);
// Of the file number 0 .. names() - 1; the frames of one format follow one another. Frames are counted from 0, with
// four digits or more.
std::string frame_name(const Frames& frames, std::string_view image_name, std::uint64_t number);
// kNotFound: another name, in this spelling alone.
Result<WindowName> parse_frame_name(const ShownImage& image, std::string_view image_name, std::string_view name);

}  // namespace mdfs::views
