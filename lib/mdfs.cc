// The C API of libmdfs.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/mdfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "channel.h"
#include "convert.h"
#include "geometry/window_spec.h"
#include "handle_pool.h"
#include "read_order.h"
#include "strides.h"

struct mdfs_image {
  std::unique_ptr<mdfs::client::HandlePool> pool;
  std::uint64_t sample_bytes = 0, element_bytes = 0;  // never change; 0: unknown
  std::array<std::uint32_t, MDFS_IOC_MAX_RANK> extent{};
  mdfs::client::ImageChannel channel{};  // ends before the pool
};

namespace mdfs::client {
namespace {

constexpr std::size_t kStagingBytes = 4u << 20;          // of a call with strides
constexpr std::uint64_t kLeastBetweenVisits = 4u << 20;  // less is in every cache
constexpr std::size_t kReadsAtOnce = 16;    // of the slots of the channel, which other threads need as well
constexpr std::size_t kThreadsAtOnce = 16;  // that read windows through the kernel

thread_local std::string last_error;

int fail(const Error& error) {
  last_error = error.message();
  return -error.posix_errno();
}

// Keeps the errno of the daemon, which is part of the interface.
int fail_errno(int problem, const std::string& where) {
  last_error = from_errno(problem, where).message();
  return -problem;
}

// No exception leaves the library.
template <typename Function>
auto guarded(Function function) -> decltype(function()) {
  try {
    last_error.clear();
    return function();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (...) {
    return -EIO;
  }
}

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
  if (asked.row_offset >= disks || asked.plane_offset >= disks)
    return ": a row or plane offset is less than the number of disks, " + std::to_string(disks);
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

// The bytes of the window, if it can be one of the image.
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

// The taker of a window of so many bytes, which puts its samples into a buffer. Nothing: they do not fit. It refers to
// the window and the strides.
std::optional<Taker> taker_of(const mdfs_image& image, const mdfs_ioc_window& asked, std::uint64_t bytes,
                              std::byte* buffer, std::size_t buffer_bytes, const std::int64_t* strides) {
  const std::uint64_t sample_bytes = asked.channel < 0 ? image.sample_bytes : image.element_bytes;
  if (strides == nullptr) {
    if (bytes > buffer_bytes) return std::nullopt;
    return Taker{sample_bytes, [buffer](std::uint64_t offset, ConstBytes samples) {
                   std::memcpy(buffer + offset, samples.data(), samples.size());
                 }};
  }
  const StridedLayout layout{{asked.length, asked.rank}, {strides, asked.rank}, sample_bytes};
  const auto end = reach(layout);
  if (!end.ok() || *end > buffer_bytes) return std::nullopt;
  return Taker{sample_bytes, [buffer, layout](std::uint64_t offset, ConstBytes samples) {
                 scatter(layout, offset / layout.sample_bytes, samples, buffer);
               }};
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

ssize_t move_window(mdfs_image* image, const mdfs_ioc_window* asked, std::byte* buffer, std::size_t buffer_bytes,
                    const std::int64_t* strides, bool writing) {
  if (image == nullptr || asked == nullptr || buffer == nullptr) return fail_errno(EINVAL, "a null pointer");
  if (writing && !image->pool->writable()) {
    last_error = image->pool->path() + ": opened for reading only";
    return -EBADF;
  }
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
      !writing && exceeds_cache(*image, cut, size)
          ? in_order_of_extents(cut, [&](auto first, auto count) { return move(first * size, count * size); })
          : move(0, window.bytes);
  if (result < 0) return close_and(result);
  image->pool->put(fd);
  return static_cast<ssize_t>(window.bytes);
}

// All that the channel reads, several at once. The results of the others stay as they are.
void read_many_by_channel(mdfs_image* image, std::span<mdfs_window_read> reads) {
  std::uint32_t number = 0;
  const auto channel = image->channel.current(image->pool->plain(), number, reads.size());
  if (channel == nullptr) return;
  struct UnderWay {
    mdfs_window_read* read;
    Taker taker;
    Channel::Pending pending;
  };
  std::deque<UnderWay> under_way;
  const auto finish_first = [&] {
    const UnderWay& first = under_way.front();
    if (channel->finish(first.pending, first.taker)) first.read->result = static_cast<ssize_t>(first.pending.bytes);
    under_way.pop_front();
  };
  for (mdfs_window_read& read : reads) {
    const auto bytes = read.buffer == nullptr ? std::nullopt : bytes_of(*image, read.window);
    if (!bytes) continue;
    const auto taker =
        taker_of(*image, read.window, *bytes, static_cast<std::byte*>(read.buffer), read.buffer_bytes, read.strides);
    if (!taker) continue;
    if (under_way.size() == kReadsAtOnce) finish_first();
    auto pending = channel->start(number, read.window, *bytes);
    while (!pending && !under_way.empty()) {  // no room
      finish_first();
      pending = channel->start(number, read.window, *bytes);
    }
    if (pending) under_way.push_back({&read, *taker, *pending});
  }
  while (!under_way.empty()) finish_first();
}

constexpr ssize_t kNotRead = 0;

// Those that are not read yet, through the kernel. Returns the message of the first error.
std::string read_many_by_kernel(mdfs_image* image, std::span<mdfs_window_read> reads) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards the two below
  std::string message;
  std::size_t first_error = reads.size();
  const auto work = [&] {
    for (std::size_t i = next++; i < reads.size(); i = next++) {
      mdfs_window_read& read = reads[i];
      if (read.result != kNotRead) continue;
      read.result = guarded([&]() -> ssize_t {
        return move_window(image, &read.window, static_cast<std::byte*>(read.buffer), read.buffer_bytes, read.strides,
                           false);
      });
      if (read.result >= 0) continue;
      const std::lock_guard lock(mutex);
      if (i < first_error) std::tie(first_error, message) = std::pair(i, last_error);
    }
  };
  const auto left = static_cast<std::size_t>(
      std::count_if(reads.begin(), reads.end(), [](const auto& read) { return read.result == kNotRead; }));
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < std::min(left, kThreadsAtOnce)) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // with fewer
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return message;
}

}  // namespace
}  // namespace mdfs::client

using namespace mdfs::client;

extern "C" {

const char* mdfs_version(void) { return MDFS_VERSION_STRING; }

const char* mdfs_last_error(void) { return last_error.c_str(); }

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

int mdfs_parse_window(mdfs_image* image, const char* spec, struct mdfs_ioc_window* window) {
  return guarded([&] {
    if (image == nullptr || spec == nullptr || window == nullptr) return fail_errno(EINVAL, "a null pointer");
    mdfs_ioc_geometry answer;
    if (const int result = get_geometry(image->pool->plain(), image->pool->path(), answer); result < 0) return result;
    const auto geometry = to_geometry(answer);
    if (!geometry.ok()) return fail(geometry.error());
    const auto parsed = mdfs::geometry::parse_window(*geometry, spec);
    if (!parsed.ok()) return fail(parsed.error());
    *window = from_window(*geometry, *parsed);
    window->bytes = mdfs::geometry::window_bytes(*geometry, *parsed);
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
    const std::span all(reads, count);
    for (mdfs_window_read& read : all) read.result = kNotRead;
    read_many_by_channel(image, all);
    const std::string message = read_many_by_kernel(image, all);
    last_error = message;
    const auto wrong = std::find_if(all.begin(), all.end(), [](const auto& read) { return read.result < 0; });
    return wrong == all.end() ? 0 : static_cast<int>(wrong->result);
  });
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
    if (::ioctl(image->pool->plain(), MDFS_IOC_PLAN, plan) != 0) return fail_errno(errno, image->pool->path());
    return 0;
  });
}

int mdfs_sync(mdfs_image* image) {
  return guarded([&] {
    if (image == nullptr) return fail_errno(EINVAL, "a null pointer");
    if (::fsync(image->pool->plain()) != 0) return fail_errno(errno, image->pool->path());
    return 0;
  });
}

}  // extern "C"
