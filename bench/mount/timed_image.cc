// An open image and windows of it, for the timer.
// SPDX-License-Identifier: Apache-2.0
#include "timed_image.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

constexpr int kPlacementTries = 20000;

}  // namespace

void die(const std::string& what) {
  std::fprintf(stderr, "window_timer: %s\n", what.c_str());
  std::exit(1);
}
void die_errno(const std::string& what) { die(what + ": " + std::strerror(errno)); }

std::span<const char> map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat st {};
  if (fd < 0 || ::fstat(fd, &st) != 0) die_errno(path);
  const auto size = static_cast<std::size_t>(st.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) die_errno(path);
  ::close(fd);
  return {static_cast<const char*>(at), size};
}

void read_whole(int fd, char* out, std::uint64_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0) die_errno("pread");
    if (got == 0) die("pread: unexpected end");
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::uint64_t>(got);
  }
}

TimedImage::TimedImage(int fd, const std::string& lengths) {
  geometry_.struct_bytes = sizeof geometry_;
  if (::ioctl(fd, MDFS_IOC_GET_GEOMETRY, &geometry_) != 0) die_errno("not an image");
  const char* at = lengths.data();
  const char* end = at + lengths.size();
  for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
    const auto parsed = std::from_chars(at, end, lengths_[axis]);
    if (parsed.ec != std::errc()) die("--window: one length for each axis, as in 512x512");
    if (lengths_[axis] == 0) lengths_[axis] = geometry_.shape[axis];
    if (lengths_[axis] > geometry_.shape[axis]) die("--window is larger than the image");
    at = parsed.ptr;
    if (axis + 1u < geometry_.rank && (at == end || *at++ != 'x')) die("--window: one length for each axis");
  }
  if (at != end) die("--window: one length for each axis");
}

std::uint64_t TimedImage::sample_bytes() const {
  static constexpr std::array<std::uint8_t, 12> kBytes = {0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8};
  if (geometry_.type == 0 || geometry_.type >= kBytes.size()) die("unknown element type");
  return std::uint64_t{kBytes[geometry_.type]} * geometry_.channels;
}

std::uint64_t TimedImage::window_bytes() const {
  std::uint64_t bytes = sample_bytes();
  for (unsigned axis = 0; axis < geometry_.rank; ++axis) bytes *= lengths_[axis];
  return bytes;
}

bool TimedImage::too_near(const mdfs_ioc_window& a, const mdfs_ioc_window& b, std::uint64_t apart) const {
  for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
    const std::uint64_t distance = std::max(a.start[axis], b.start[axis]) - std::min(a.start[axis], b.start[axis]);
    if (distance >= lengths_[axis] + apart) return false;
  }
  return true;
}

std::vector<mdfs_ioc_window> TimedImage::place(std::mt19937_64& generator, std::uint64_t count, std::uint64_t apart,
                                               std::uint64_t align) const {
  std::vector<mdfs_ioc_window> placed;
  for (int attempt = 0; placed.size() < count; ++attempt) {
    if (attempt > kPlacementTries) die("no room for so many windows so far apart");
    mdfs_ioc_window window{};
    window.struct_bytes = sizeof window;
    window.rank = geometry_.rank;
    window.channel = -1;
    for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
      window.length[axis] = lengths_[axis];
      window.start[axis] = generator() % ((geometry_.shape[axis] - lengths_[axis]) / align + 1) * align;
    }
    const auto near = [&](const mdfs_ioc_window& other) { return too_near(window, other, apart); };
    if (apart > 0 && std::any_of(placed.begin(), placed.end(), near)) continue;
    placed.push_back(window);
    attempt = 0;
  }
  return placed;
}

DiskTimes TimedImage::disk_times_ms(int fd, const mdfs_ioc_window& window, double rate, double iops) const {
  mdfs_ioc_plan plan{};
  plan.window = window;
  if (::ioctl(fd, MDFS_IOC_PLAN, &plan) != 0) die_errno("plan");
  if (plan.cached > 0) die("a cold window is in the cache");
  DiskTimes times{};
  for (unsigned disk = 0; disk < std::min<unsigned>(plan.disk_count, MDFS_IOC_MAX_DISKS); ++disk) {
    const auto& load = plan.disks[disk];
    if (rate > 0) times[disk] = static_cast<double>(load.bytes) / rate * 1000;
    if (iops > 0) times[disk] = std::max(times[disk], static_cast<double>(load.requests) / iops * 1000);
  }
  return times;
}

// each(offset in the canonical bytes, offset in the window, bytes)
template <typename Each>
void TimedImage::for_each_row(const mdfs_ioc_window& window, Each each) const {
  const std::uint64_t element = sample_bytes();
  const unsigned fastest = geometry_.rank - 1u;
  const std::uint64_t row_bytes = lengths_[fastest] * element;
  const std::uint64_t rows = window_bytes() / row_bytes;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t left = row;
    std::uint64_t offset = window.start[fastest];
    std::uint64_t stride = geometry_.shape[fastest];
    for (unsigned axis = fastest; axis-- > 0;) {
      offset += (window.start[axis] + left % lengths_[axis]) * stride;
      left /= lengths_[axis];
      stride *= geometry_.shape[axis];
    }
    each(offset * element, row * row_bytes, row_bytes);
  }
}

void TimedImage::copy(const mdfs_ioc_window& window, std::span<const char> source, char* out) const {
  for_each_row(window, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    std::memcpy(out + to, source.data() + from, bytes);
  });
}

bool TimedImage::equal(const mdfs_ioc_window& window, std::span<const char> source, const char* found) const {
  bool same = true;
  for_each_row(window, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    same = same && from + bytes <= source.size() && std::memcmp(source.data() + from, found + to, bytes) == 0;
  });
  return same;
}

}  // namespace bench
