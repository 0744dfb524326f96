// Images of frames.
// SPDX-License-Identifier: Apache-2.0
#include "new_image.h"

#include <fcntl.h>
#include <mdfs/ondisk.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace mdfs::gst {
namespace {

struct StoredFormat {
  GstVideoFormat format;
  std::uint8_t type;
  std::uint16_t channels;
};
constexpr StoredFormat kStoredFormats[] = {
    {GST_VIDEO_FORMAT_GRAY8, MDFS_TYPE_U8, 1},      {GST_VIDEO_FORMAT_GRAY16_LE, MDFS_TYPE_U16, 1},
    {GST_VIDEO_FORMAT_RGB, MDFS_TYPE_U8, 3},        {GST_VIDEO_FORMAT_RGBA, MDFS_TYPE_U8, 4},
    {GST_VIDEO_FORMAT_RGBA64_LE, MDFS_TYPE_U16, 4},
};

std::size_t row_bytes_of(const GstVideoInfo& info) {
  return static_cast<std::size_t>(GST_VIDEO_INFO_WIDTH(&info)) * GST_VIDEO_INFO_COMP_PSTRIDE(&info, 0);
}

// The frame's rows, one behind another. False: the buffer is no such frame.
bool pack(const GstVideoInfo& info, GstBuffer* buffer, std::vector<std::byte>& packed) {
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ)) return false;
  const std::size_t row_bytes = row_bytes_of(info);
  const auto rows = static_cast<std::size_t>(GST_VIDEO_INFO_HEIGHT(&info));
  const auto* from = static_cast<const std::byte*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
  const std::ptrdiff_t stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0);
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(packed.data() + row * row_bytes, from + static_cast<std::ptrdiff_t>(row) * stride, row_bytes);
  gst_video_frame_unmap(&frame);
  return true;
}

bool is_on_volume(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  mdfs_ioc_volume volume{};
  const bool is_one = ::ioctl(fd, MDFS_IOC_VOLUME, &volume) == 0;
  ::close(fd);
  return is_one;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

std::string complaint_about_new(const std::string& path, const std::string& codec) {
  if (path.empty()) return "location is not set: it is the path of a new image on a mounted MDFS volume";
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return path + ": the name exists: location is the path of a new image";
  if (path.ends_with('@')) return path + ": names that end in @ lead to windows";
  if (const std::string folder = folder_of(path); !is_on_volume(folder))
    return path + ": " + folder + " is no folder on a mounted MDFS volume";
  std::uint8_t id;
  std::int8_t level;
  return mdfs_parse_codec(codec.c_str(), &id, &level) < 0 ? mdfs_last_error() : "";
}

bool geometry_of(const GstVideoInfo& info, mdfs_ioc_geometry& geometry, std::string& why) {
  const auto* found =
      std::find_if(std::begin(kStoredFormats), std::end(kStoredFormats),
                   [&](const StoredFormat& known) { return known.format == GST_VIDEO_INFO_FORMAT(&info); });
  if (found == std::end(kStoredFormats)) {
    why = "this format cannot be stored: allowed are GRAY8, GRAY16_LE, RGB, RGBA and RGBA64_LE";
    return false;
  }
  geometry = {};
  geometry.struct_bytes = sizeof geometry;
  geometry.rank = 3;
  geometry.type = found->type;
  geometry.channels = found->channels;
  geometry.shape[1] = static_cast<std::uint64_t>(GST_VIDEO_INFO_HEIGHT(&info));
  geometry.shape[2] = static_cast<std::uint64_t>(GST_VIDEO_INFO_WIDTH(&info));
  std::memcpy(geometry.axes, "tyx", 3);
  geometry.row_offset = geometry.plane_offset = -1;
  if (GST_VIDEO_INFO_FPS_N(&info) > 0) {
    geometry.spacing[0] = static_cast<double>(GST_VIDEO_INFO_FPS_D(&info)) / GST_VIDEO_INFO_FPS_N(&info);
    geometry.unit[0][0] = 's';
  }
  return true;
}

std::unique_ptr<NewImage> NewImage::create(const std::string& path, const std::string& codec, const GstVideoInfo& info,
                                           std::string& error) {
  mdfs_ioc_geometry geometry;
  if (!geometry_of(info, geometry, error)) return nullptr;
  if (mdfs_parse_codec(codec.c_str(), &geometry.codec, &geometry.codec_level) < 0 ||
      mdfs_create(path.c_str(), &geometry, 0666) < 0) {
    error = mdfs_last_error();
    return nullptr;
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) {
    error = path + ": " + std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<NewImage> made(new NewImage(path, info, fd));
  made->packed_.resize(row_bytes_of(info) * static_cast<std::size_t>(GST_VIDEO_INFO_HEIGHT(&info)));
  return made;
}

NewImage::~NewImage() { ::close(fd_); }

int NewImage::append(GstBuffer* frame, std::string& error) {
  if (!pack(info_, frame, packed_)) {
    error = path_ + ": a buffer of " + std::to_string(gst_buffer_get_size(frame)) + " bytes is no frame";
    return EINVAL;
  }
  for (std::size_t done = 0; done < packed_.size();) {
    const ssize_t written = ::write(fd_, packed_.data() + done, packed_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int number = errno;
      error = path_ + ": " + std::strerror(number);
      return number;
    }
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

int NewImage::sync(std::string& error) {
  if (::fsync(fd_) == 0) return 0;
  const int number = errno;
  error = path_ + ": " + std::strerror(number);
  return number;
}

}  // namespace mdfs::gst
