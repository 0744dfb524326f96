// An image that grows by the frames of a pipeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gst/video/video.h>
#include <mdfs/mdfs.h>

#include <memory>
#include <string>
#include <vector>

namespace mdfs::gst {

// The geometry of frames of this format: axes tyx, with the frame rate as the spacing of t. False: `why` names the
// formats that can be stored.
bool geometry_of(const GstVideoInfo& info, mdfs_ioc_geometry& geometry, std::string& why);

// Why no image can be made at the path with this codec, as far as that is known before the first frame; empty if
// nothing is known: no path, a name that exists, a folder that is not on a mounted volume, an unknown codec.
std::string complaint_about_new(const std::string& path, const std::string& codec);

// One thread at a time calls the methods.
class NewImage {
 public:
  // Makes an image without frames at a path that does not exist. codec: as mdfs_parse_codec() takes it. Null: `error`
  // has the reason, in one line. May throw std::bad_alloc.
  static std::unique_ptr<NewImage> create(const std::string& path, const std::string& codec, const GstVideoInfo& info,
                                          std::string& error);
  ~NewImage();
  NewImage(const NewImage&) = delete;
  NewImage& operator=(const NewImage&) = delete;

  const GstVideoInfo& info() const { return info_; }
  // Appends the frame, whose layout may differ from that of info(). Returns 0, or an errno and `error`. After an error
  // the image has the frames before, and may have a part of this one.
  int append(GstBuffer* frame, std::string& error);
  // Returns when the frames so far are on the disks: 0, or an errno and `error`.
  int sync(std::string& error);

 private:
  NewImage(std::string path, const GstVideoInfo& info, int fd) : path_(std::move(path)), info_(info), fd_(fd) {}

  const std::string path_;
  const GstVideoInfo info_;
  const int fd_;
  std::vector<std::byte> packed_;  // a frame without the padding of its rows
};

}  // namespace mdfs::gst
