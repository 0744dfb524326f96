// A movie on a mounted volume, whose frames are read into buffers of GStreamer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gst/video/video.h>
#include <mdfs/mdfs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "movie.h"
#include "settings.h"

namespace mdfs::gst {

struct BufferDeleter {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
};
using BufferPtr = std::unique_ptr<GstBuffer, BufferDeleter>;

struct FrameRead {
  BufferPtr buffer;   // null: the frame could not be read
  std::string error;  // and why, in one line
};

// The geometry is the one at open(): frames that are appended later are not part of the movie. Any thread may call any
// method.
class OpenMovie {
 public:
  // Null: `error` says in one line which setting is not allowed, or why the image cannot be played. May throw
  // std::bad_alloc.
  static std::unique_ptr<OpenMovie> open(const Settings& settings, std::string& error);
  ~OpenMovie() { mdfs_close(image_); }
  OpenMovie(const OpenMovie&) = delete;
  OpenMovie& operator=(const OpenMovie&) = delete;

  const Movie& movie() const { return movie_; }
  const GstVideoInfo& info() const { return info_; }
  std::uint64_t duration_ns() const { return begin_of(movie_.frames, movie_.rate); }
  // One version of the frame, without time stamps, in the layout of info(). Does not throw.
  FrameRead read(std::uint64_t frame) const noexcept;
  // Likewise, of canonical bytes that `read` has: as many as canonical_bytes().
  using ReadBytes = std::function<bool(void* to, std::string& error)>;
  FrameRead read_from(const ReadBytes& read) const noexcept;
  std::size_t canonical_bytes() const;

  mdfs_image* image() const { return image_; }
  const mdfs_ioc_window& window() const { return window_; }

 private:
  OpenMovie() = default;
  bool set_up(const Settings& settings, std::string& error);
  bool read_window(const mdfs_ioc_window& window, void* to, std::size_t bytes, const std::int64_t* strides,
                   std::string& error) const;
  bool read_rows(const mdfs_ioc_window& window, std::byte* to, std::string& error) const;
  bool has_canonical_layout() const;
  void lay_out(const std::byte* stored, std::byte* to) const;
  FrameRead make_frame(const ReadBytes& fill) const noexcept;

  mdfs_image* image_ = nullptr;
  mdfs_ioc_window window_{};
  std::uint8_t type_ = 0;
  std::optional<geometry::DisplayRange> display_;
  Movie movie_;
  GstVideoInfo info_{};
};

}  // namespace mdfs::gst
