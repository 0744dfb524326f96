// Windows of an open image.
// SPDX-License-Identifier: Apache-2.0
#include "window_calls.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "base/checked.h"
#include "errors.h"
#include "image.h"
#include "read_order.h"
#include "strides.h"

namespace mdfs::client {
namespace {

constexpr std::size_t kStagingBytes = 4u << 20;          // of a call with strides
constexpr std::uint64_t kLeastBetweenVisits = 4u << 20;  // less is in every cache

// One direction of a window call: from the bound descriptor to the buffer, or back.
class Transfer {
 public:
  Transfer(int fd, const std::string& path, bool writing) : fd_(fd), path_(path), writing_(writing) {}

  // All bytes of a packed buffer.
  int packed(std::byte* buffer, std::uint64_t offset, std::uint64_t bytes) {
    while (bytes > 0) {
      const ssize_t moved = writing_ ? ::pwrite(fd_, buffer, bytes, static_cast<off_t>(offset))
                                     : ::pread(fd_, buffer, bytes, static_cast<off_t>(offset));
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return fail_errno(errno, path_);
      if (moved == 0) return fail_errno(EIO, path_ + ": the window ended early");
      buffer += moved;
      offset += static_cast<std::uint64_t>(moved);
      bytes -= static_cast<std::uint64_t>(moved);
    }
    return 0;
  }

  // The bytes of the window from `begin` on.
  int strided(const StridedLayout& layout, std::byte* buffer, std::uint64_t begin, std::uint64_t bytes) {
    const std::size_t step = std::max(kStagingBytes / layout.sample_bytes, std::size_t{1}) * layout.sample_bytes;
    ByteVector staging(static_cast<std::size_t>(std::min<std::uint64_t>(step, bytes)));
    for (std::uint64_t at = 0; at < bytes; at += staging.size()) {
      const MutableBytes part(staging.data(),
                              static_cast<std::size_t>(std::min<std::uint64_t>(staging.size(), bytes - at)));
      const std::uint64_t first = (begin + at) / layout.sample_bytes;
      if (writing_) gather(layout, first, buffer, part);
      if (const int result = packed(part.data(), begin + at, part.size()); result < 0) return result;
      if (!writing_) scatter(layout, first, part, buffer);
    }
    return 0;
  }

 private:
  const int fd_;
  const std::string& path_;
  const bool writing_;
};

std::uint64_t samples_of(const mdfs_ioc_window& window) {
  std::uint64_t samples = 1;
  for (std::uint32_t axis = 0; axis < window.rank; ++axis) samples *= window.length[axis];
  return samples;
}

// A small packed window in one call. Nothing: it is not small, or the call failed and the long way says why.
std::optional<ssize_t> read_small_window(mdfs_image* image, const mdfs_ioc_window& asked, std::byte* buffer,
                                         std::size_t buffer_bytes) {
  struct {
    mdfs_ioc_window window;
    std::byte bytes[MDFS_IOC_READ_MAX];
  } call;
  // Without knowing its samples: a window of so many is small if the buffer is not much larger than it needs to be.
  const std::size_t room = std::min(buffer_bytes, sizeof call.bytes);
  if (room == 0 || asked.rank > MDFS_IOC_MAX_RANK || samples_of(asked) > room) return std::nullopt;
  call.window = asked;
  if (::ioctl(image->pool->plain(), MDFS_IOC_READ(room), &call) != 0) return std::nullopt;
  std::memcpy(buffer, call.bytes, static_cast<std::size_t>(call.window.bytes));
  return static_cast<ssize_t>(call.window.bytes);
}

// The window through the channel. Nothing: there is none, or the call failed and the long way says why.
std::optional<ssize_t> read_by_channel(mdfs_image* image, const mdfs_ioc_window& asked, std::byte* buffer,
                                       std::size_t buffer_bytes, const std::int64_t* strides) {
  const auto bytes = bytes_of(*image, asked);
  if (!bytes) return std::nullopt;
  const auto taker = taker_of(*image, asked, *bytes, buffer, buffer_bytes, strides);
  if (!taker || !image->channel.read(image->pool->plain(), asked, *bytes, *taker)) return std::nullopt;
  return static_cast<ssize_t>(*bytes);
}

// True where the order of the samples would decode extents again and again, because the cache of the mount does not
// hold all extents that lie between two visits to one of them.
bool exceeds_cache(const mdfs_image& image, const CutWindow& window, std::uint64_t sample_bytes) {
  if (std::find(window.extent.begin(), window.extent.end(), 0) != window.extent.end()) return false;
  const std::uint64_t samples = samples_between_visits(window);
  if (samples * sample_bytes < kLeastBetweenVisits) return false;
  mdfs_ioc_volume volume{};
  return ::ioctl(image.pool->plain(), MDFS_IOC_VOLUME, &volume) == 0 &&
         samples * sample_bytes > volume.cache_budget_bytes / 2;
}

}  // namespace

int read_bound(int fd, const std::string& path, std::byte* buffer, std::uint64_t bytes) {
  return Transfer(fd, path, false).packed(buffer, 0, bytes);
}

std::optional<std::uint64_t> bytes_of(const mdfs_image& image, const mdfs_ioc_window& window) {
  std::uint64_t bytes = window.channel < 0 ? image.sample_bytes : image.element_bytes;
  if (window.rank == 0 || window.rank > MDFS_IOC_MAX_RANK) return std::nullopt;
  for (std::uint32_t axis = 0; axis < window.rank; ++axis) {
    const auto more = checked_mul(bytes, window.length[axis]);
    if (!more || *more == 0) return std::nullopt;
    bytes = *more;
  }
  return bytes;
}

std::optional<Taker> taker_of(const mdfs_image& image, const mdfs_ioc_window& asked, std::uint64_t bytes,
                              std::byte* buffer, std::size_t buffer_bytes, const std::int64_t* strides) {
  const std::uint64_t sample_bytes = asked.channel < 0 ? image.sample_bytes : image.element_bytes;
  if (strides == nullptr) {
    if (bytes > buffer_bytes) return std::nullopt;
    return Taker{sample_bytes,
                 [buffer](std::uint64_t offset, ConstBytes samples) {
                   std::memcpy(buffer + offset, samples.data(), samples.size());
                 },
                 buffer};
  }
  const StridedLayout layout{{asked.length, asked.rank}, {strides, asked.rank}, sample_bytes};
  const auto end = reach(layout);
  if (!end.ok() || *end > buffer_bytes) return std::nullopt;
  return Taker{sample_bytes,
               [buffer, layout](std::uint64_t offset, ConstBytes samples) {
                 scatter(layout, offset / layout.sample_bytes, samples, buffer);
               },
               nullptr};
}

ssize_t move_window(mdfs_image* image, const mdfs_ioc_window* asked, std::byte* buffer, std::size_t buffer_bytes,
                    const std::int64_t* strides, bool writing) {
  if (image == nullptr || asked == nullptr || buffer == nullptr) return fail_errno(EINVAL, "a null pointer");
  if (writing && !image->pool->writable()) {
    last_error() = image->pool->path() + ": opened for reading only";
    return -EBADF;
  }
  if (writing && asked->level != 0)
    return fail({Errc::kInvalidArgument, image->pool->path() + ": a window of a level is only read"});
  if (!writing)
    if (const auto read = read_by_channel(image, *asked, buffer, buffer_bytes, strides); read) return *read;
  if (!writing && strides == nullptr)
    if (const auto read = read_small_window(image, *asked, buffer, buffer_bytes); read) return *read;
  mdfs_ioc_window window = *asked;
  auto bound = image->pool->bind(window);
  if (!bound.ok()) return fail(bound.error());
  const int fd = *bound;
  const auto close_and = [&](int result) {
    ::close(fd);
    return result;
  };
  // The daemon has accepted the window: its rank and lengths are those of a window of the image.
  const StridedLayout layout{{window.length, window.rank},
                             {strides, strides == nullptr ? 0 : window.rank},
                             static_cast<std::size_t>(window.bytes / samples_of(window))};
  std::uint64_t needed = window.bytes;
  if (strides != nullptr) {
    const auto end = reach(layout);
    if (!end.ok()) return close_and(fail(end.error()));
    needed = *end;
  }
  if (needed > buffer_bytes)
    return close_and(fail({Errc::kInvalidArgument, "a buffer of " + std::to_string(buffer_bytes) +
                                                       " bytes; the window needs " + std::to_string(needed)}));
  Transfer transfer(fd, image->pool->path(), writing);
  const auto move = [&](std::uint64_t begin, std::uint64_t bytes) {
    return strides != nullptr ? transfer.strided(layout, buffer, begin, bytes)
                              : transfer.packed(buffer + begin, begin, bytes);
  };
  const CutWindow cut{
      {window.start, window.rank}, {window.length, window.rank}, std::span(image->extent).first(window.rank)};
  const std::uint64_t size = layout.sample_bytes;
  const int result =
      !writing && asked->level == 0 && exceeds_cache(*image, cut, size)
          ? in_order_of_extents(cut, [&](auto first, auto count) { return move(first * size, count * size); })
          : move(0, window.bytes);
  if (result < 0) return close_and(result);
  image->pool->put(fd);
  return static_cast<ssize_t>(window.bytes);
}

}  // namespace mdfs::client
