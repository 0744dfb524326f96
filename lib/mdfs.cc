// The C API of libmdfs.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/mdfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "buffer.h"
#include "codec/codec_table.h"
#include "convert.h"
#include "errors.h"
#include "geometry/cut_spec.h"
#include "geometry/level.h"
#include "geometry/window_spec.h"
#include "image.h"
#include "many_windows.h"
#include "stream.h"
#include "window_calls.h"

namespace mdfs::client {
namespace {

bool is_directory(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

// Why the daemon refuses what looked good from here: an errno cannot say. Empty if it is not known.
std::string reason_of_refusal(int fd, const mdfs_ioc_geometry& asked) {
  mdfs_ioc_volume volume{};
  if (::ioctl(fd, MDFS_IOC_VOLUME, &volume) != 0) return {};
  if (asked.placed_disks > volume.disk_count)
    return ": on " + std::to_string(asked.placed_disks) + " disks; the volume has " + std::to_string(volume.disk_count);
  const auto disks = static_cast<std::int32_t>(asked.placed_disks > 0 ? asked.placed_disks : volume.disk_count);
  const auto too_large = [&](const char* field, std::int32_t offset) {
    return ": " + std::string(field) + " " + std::to_string(offset) + ": must be less than the number of disks, " +
           std::to_string(disks);
  };
  if (asked.row_offset >= disks) return too_large("row_offset", asked.row_offset);
  if (asked.plane_offset >= disks) return too_large("plane_offset", asked.plane_offset);
  return {};
}

// The same, asked of the directory before anything is made there.
std::string reason_beforehand(const std::string& path, const mdfs_ioc_geometry& asked) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};
  const std::string reason = reason_of_refusal(fd, asked);
  ::close(fd);
  return reason;
}

bool is_on_volume(int fd) {
  mdfs_ioc_volume volume{};
  return ::ioctl(fd, MDFS_IOC_VOLUME, &volume) == 0;
}

int get_geometry(int fd, const std::string& path, mdfs_ioc_geometry& geometry) {
  geometry = {};
  if (::ioctl(fd, MDFS_IOC_GET_GEOMETRY, &geometry) == 0) return 0;
  const int number = errno;
  if (number == EINVAL) return fail({Errc::kNotImage, path});
  if (number != ENOTTY && number != EOPNOTSUPP) return fail_errno(number, path);
  if (is_directory(fd)) return fail_errno(EISDIR, path);
  // A virtual file, as info.json, is on the volume and no image.
  return is_on_volume(fd) ? fail({Errc::kNotImage, path}) : fail_errno(ENOTTY, path);
}

}  // namespace
}  // namespace mdfs::client

using namespace mdfs::client;

extern "C" {

const char* mdfs_version(void) { return MDFS_VERSION_STRING; }

const char* mdfs_last_error(void) { return last_error().c_str(); }

const char* mdfs_codec_text(uint8_t codec, int8_t level) {
  thread_local std::string text;
  text = mdfs::codec::choice_text(static_cast<mdfs::codec::Codec>(codec), level);
  return text.c_str();
}

int mdfs_parse_codec(const char* text, uint8_t* codec, int8_t* level) {
  return guarded([&] {
    if (text == nullptr || codec == nullptr || level == nullptr) return fail_errno(EINVAL, "a null pointer");
    const auto choice = mdfs::codec::parse_choice(text);
    if (!choice.ok()) return fail({mdfs::Errc::kInvalidArgument, "codec " + choice.error().where});
    *codec = static_cast<uint8_t>(choice->codec);
    *level = static_cast<int8_t>(choice->level);
    return 0;
  });
}

int mdfs_open(const char* path, int flags, mdfs_image** image) {
  return guarded([&] {
    if (path == nullptr || image == nullptr) return fail_errno(EINVAL, "a null pointer");
    *image = nullptr;
    auto pool = HandlePool::open(path, flags);
    if (!pool.ok()) return fail(pool.error());
    mdfs_ioc_geometry geometry;
    if (const int result = get_geometry((*pool)->plain(), path, geometry); result < 0) return result;
    *image = new mdfs_image{std::move(*pool)};
    if (const auto known = to_geometry(geometry); known.ok()) {
      (*image)->sample_bytes = known->sample_bytes();
      (*image)->element_bytes = mdfs::geometry::element_bytes(known->type);
      std::copy_n(geometry.extent, geometry.rank, (*image)->extent.begin());
    }
    return 0;
  });
}

int mdfs_close(mdfs_image* image) {
  delete image;
  return 0;
}

int mdfs_fd(const mdfs_image* image) {
  return guarded([&] { return image == nullptr ? fail_errno(EINVAL, "a null pointer") : image->pool->plain(); });
}

int mdfs_create(const char* path, const struct mdfs_ioc_geometry* geometry, mode_t mode) {
  return guarded([&] {
    if (path == nullptr || geometry == nullptr) return fail_errno(EINVAL, "a null pointer");
    if (const mdfs::Status good = check_new_image(*geometry); !good.ok()) return fail(good.error());
    if (const std::string reason = reason_beforehand(path, *geometry); !reason.empty())
      return fail_errno(EINVAL, path + reason);
    const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
      const bool reserved = errno == EINVAL && std::string_view(path).ends_with('@');
      return fail_errno(errno, std::string(path) + (reserved ? ": names that end in @ lead to windows" : ""));
    }
    mdfs_ioc_geometry request = *geometry;
    int result = 0;
    if (::ioctl(fd, MDFS_IOC_SET_GEOMETRY, &request) != 0) {
      const int problem = errno;
      ::unlink(path);
      result = fail_errno(problem, path + (problem == EINVAL ? reason_of_refusal(fd, request) : std::string()));
    }
    ::close(fd);
    return result;
  });
}

int mdfs_info(mdfs_image* image, struct mdfs_ioc_geometry* geometry) {
  return guarded([&] {
    if (image == nullptr || geometry == nullptr) return fail_errno(EINVAL, "a null pointer");
    return get_geometry(image->pool->plain(), image->pool->path(), *geometry);
  });
}

int mdfs_level_info(mdfs_image* image, uint32_t level, struct mdfs_ioc_geometry* geometry) {
  return guarded([&] {
    if (image == nullptr || geometry == nullptr) return fail_errno(EINVAL, "a null pointer");
    mdfs_ioc_geometry answer;
    const std::string& path = image->pool->path();
    if (const int result = get_geometry(image->pool->plain(), path, answer); result < 0) return result;
    const auto found = level_info(answer, level);
    if (!found.ok()) return fail({found.error().code, path + ": " + found.error().where});
    *geometry = *found;
    return 0;
  });
}

int mdfs_levels(mdfs_image* image, struct mdfs_ioc_levels* levels) {
  return guarded([&] {
    if (image == nullptr || levels == nullptr) return fail_errno(EINVAL, "a null pointer");
    if (::ioctl(image->pool->plain(), MDFS_IOC_LEVELS, levels) == 0) return 0;
    return fail_errno(errno, image->pool->path() + (errno == ERANGE ? ": the image has fewer levels" : ""));
  });
}

int mdfs_parse_window(mdfs_image* image, const char* spec, struct mdfs_ioc_window* window) {
  return guarded([&] {
    if (image == nullptr || spec == nullptr || window == nullptr) return fail_errno(EINVAL, "a null pointer");
    mdfs_ioc_geometry answer;
    if (const int result = get_geometry(image->pool->plain(), image->pool->path(), answer); result < 0) return result;
    const auto geometry = to_geometry(answer);
    if (!geometry.ok()) return fail(geometry.error());
    if (mdfs::geometry::is_cut(spec)) {
      const auto cut = mdfs::geometry::parse_cut(*geometry, spec);
      return cut.ok() ? fail_errno(EINVAL, "a cut is no box: read the file win/ of its name") : fail(cut.error());
    }
    const auto parsed = mdfs::geometry::parse_level_window(*geometry, spec);
    if (!parsed.ok()) return fail(parsed.error());
    if (!parsed->padding.is_empty())
      return fail_errno(ERANGE, "the window is not inside the image: read the file win/ of its name");
    *window = from_window(*geometry, *parsed);
    window->bytes =
        mdfs::geometry::window_bytes(mdfs::geometry::level_geometry(*geometry, parsed->level), parsed->window);
    return 0;
  });
}

ssize_t mdfs_read_window(mdfs_image* image, const struct mdfs_ioc_window* window, void* buffer, size_t buffer_bytes,
                         const int64_t* strides) {
  return guarded([&]() -> ssize_t {
    return move_window(image, window, static_cast<std::byte*>(buffer), buffer_bytes, strides, false);
  });
}

int mdfs_read_windows(mdfs_image* image, struct mdfs_window_read* reads, size_t count) {
  return guarded([&] {
    if (image == nullptr || (reads == nullptr && count > 0)) return fail_errno(EINVAL, "a null pointer");
    return read_many(image, std::span(reads, count));
  });
}

int mdfs_buffer_new(mdfs_image* image, size_t bytes, mdfs_buffer** buffer) {
  return guarded([&] {
    if (image == nullptr || buffer == nullptr) return fail_errno(EINVAL, "a null pointer");
    *buffer = nullptr;
    if (bytes == 0) return fail_errno(EINVAL, "a buffer without bytes");
    auto made = mdfs_buffer::make(*image, bytes);
    if (made == nullptr) return fail_errno(ENOMEM, "a buffer of " + std::to_string(bytes) + " bytes");
    *buffer = made.release();
    return 0;
  });
}

void* mdfs_buffer_data(const mdfs_buffer* buffer) { return buffer == nullptr ? nullptr : buffer->bytes.data(); }

int mdfs_buffer_free(mdfs_buffer* buffer) {
  delete buffer;
  return 0;
}

ssize_t mdfs_write_window(mdfs_image* image, const struct mdfs_ioc_window* window, const void* buffer,
                          size_t buffer_bytes, const int64_t* strides) {
  // The bytes are only read: one code moves them both ways.
  std::byte* bytes = static_cast<std::byte*>(const_cast<void*>(buffer));
  return guarded([&]() -> ssize_t { return move_window(image, window, bytes, buffer_bytes, strides, true); });
}

int mdfs_plan(mdfs_image* image, const struct mdfs_ioc_window* window, struct mdfs_ioc_plan* plan) {
  return guarded([&] {
    if (image == nullptr || window == nullptr || plan == nullptr) return fail_errno(EINVAL, "a null pointer");
    *plan = {};
    plan->window = *window;
    if (::ioctl(image->pool->plain(), MDFS_IOC_PLAN, plan) == 0) return 0;
    const int number = errno;
    constexpr const char* kTooBig =
        ": a window of more than 262144 extents, or of more than 524288 separate parts of "
        "extents, cannot be planned";
    return fail_errno(number, image->pool->path() + (number == EFBIG ? kTooBig : ""));
  });
}

int mdfs_stream_open(mdfs_image* image, struct mdfs_ioc_stream* request, mdfs_stream** stream) {
  return guarded([&] {
    if (image == nullptr || request == nullptr || stream == nullptr) return fail_errno(EINVAL, "a null pointer");
    *stream = nullptr;
    std::unique_ptr<mdfs_stream> opened;
    const int result = mdfs_stream::open(*image, *request, opened);
    *stream = opened.release();
    return result;
  });
}

ssize_t mdfs_stream_next(mdfs_stream* stream, void* buffer, size_t buffer_bytes, struct mdfs_ioc_frame* frame) {
  return guarded([&]() -> ssize_t {
    if (stream == nullptr || buffer == nullptr || frame == nullptr) return fail_errno(EINVAL, "a null pointer");
    return stream->next(static_cast<std::byte*>(buffer), buffer_bytes, *frame);
  });
}

int mdfs_stream_change(mdfs_stream* stream, struct mdfs_ioc_stream* request) {
  return guarded([&] {
    if (stream == nullptr || request == nullptr) return fail_errno(EINVAL, "a null pointer");
    return stream->change(*request);
  });
}

int mdfs_stream_close(mdfs_stream* stream) {
  delete stream;
  return 0;
}

int mdfs_sync(mdfs_image* image) {
  return guarded([&] {
    if (image == nullptr) return fail_errno(EINVAL, "a null pointer");
    if (::fsync(image->pool->plain()) != 0) return fail_errno(errno, image->pool->path());
    return 0;
  });
}

}  // extern "C"
