// Lines of the trace, a buffer of them, and the file.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/trace_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "geometry/window_spec.h"

namespace mdfs::fuse {
namespace {

constexpr double kSmallestShare = 1e-4;  // of a trace

model::TraceImage as_traced(volume::Ino ino, const volume::ImageInfo& info) {
  model::TraceImage image{.object = ino, .geometry = info.geometry, .base = info.base, .compressed_share = {}};
  if (info.geometry.codec != geometry::Codec::kRaw && info.size_bytes > 0)
    image.compressed_share = std::clamp(static_cast<double>(info.stored_bytes) / static_cast<double>(info.size_bytes),
                                        kSmallestShare, model::kMaxCompressedShare);
  return image;
}

}  // namespace

TraceRecorder::TraceRecorder(std::string path, device::UniqueFd fd, std::uint64_t cache_bytes)
    : path_(std::move(path)), start_(Clock::now()), fd_(std::move(fd)), buffer_(model::kTraceHeader) {
  buffer_.reserve(2 * kBufferBytes);
  buffer_ += to_line(model::TraceCache{cache_bytes});
}

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::create(const std::string& path, std::uint64_t cache_bytes) {
  // Refuses a symbolic link. A file of another user, or with a second name, stays as it is.
  device::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd.open() && errno == ELOOP) return Error{Errc::kExists, path + ": a trace does not follow a symbolic link"};
  if (!fd.open()) return from_errno(errno, path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return from_errno(errno, path);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink != 1)
    return Error{Errc::kExists, path + ": a trace replaces only a file that belongs to the caller and has one name"};
  if (::ftruncate(fd.get(), 0) != 0) return from_errno(errno, path);
  return std::unique_ptr<TraceRecorder>(new TraceRecorder(path, std::move(fd), cache_bytes));
}

TraceRecorder::~TraceRecorder() {
  if (const Status status = finish(); !status.ok()) spdlog::error("{}", status.error().message());
}

bool TraceRecorder::knows(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  return known_.contains(ino);
}

void TraceRecorder::introduce(const model::TraceImage& image) {
  std::string line = to_line(image);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMaxKnown) known_.clear();
  std::string& known = known_[image.object];
  if (known == line) return;
  add(line);
  known = std::move(line);
}

void TraceRecorder::window(volume::Volume& volume, volume::Ino image, const geometry::Window& window, bool write,
                           Clock::time_point when, pid_t client) {
  const auto info = volume.image_info(image);
  if (!info.ok() || !geometry::check(info->geometry, window).ok()) return;  // gone, or cut short, meanwhile
  introduce(as_traced(image, *info));
  geometry::Window pixels = window;
  pixels.channel.reset();  // channels lie together
  const model::TraceRequest request{.time_s = seconds(when),
                                    .window = geometry::to_spec(info->geometry, pixels),
                                    .range = std::nullopt,
                                    .client = static_cast<std::uint64_t>(client),
                                    .object = image,
                                    .write = write,
                                    .bytes = geometry::window_bytes(info->geometry, window)};
  const std::lock_guard lock(mutex_);
  add(to_line(request));
}

void TraceRecorder::bytes(volume::Volume& volume, volume::Ino file, std::uint64_t offset, std::uint64_t length,
                          bool write, Clock::time_point when, pid_t client) {
  if (length == 0) return;
  if (!knows(file)) {
    const auto info = volume.image_info(file);
    introduce(info.ok() ? as_traced(file, *info)
                        : model::TraceImage{.object = file, .geometry = {}, .base = 0, .compressed_share = {}});
  }
  const model::TraceRequest request{.time_s = seconds(when),
                                    .window = {},
                                    .range = model::ByteRange{offset, length},
                                    .client = static_cast<std::uint64_t>(client),
                                    .object = file,
                                    .write = write,
                                    .bytes = length};
  const std::lock_guard lock(mutex_);
  add(to_line(request));
}

void TraceRecorder::forget(volume::Ino ino) {
  const std::lock_guard lock(mutex_);
  known_.erase(ino);
}

void TraceRecorder::add(const std::string& line) {
  if (!error_.ok()) return;
  buffer_ += line;
  if (buffer_.size() >= kBufferBytes) write_out();
}

void TraceRecorder::write_out() {
  std::size_t done = 0;
  while (done < buffer_.size() && error_.ok()) {
    const ssize_t count = ::write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error_ = from_errno(errno, path_ + ": the trace ends early");
    } else {
      done += static_cast<std::size_t>(count);
    }
  }
  buffer_.clear();
}

Status TraceRecorder::finish() {
  const std::lock_guard lock(mutex_);
  if (error_.ok()) write_out();
  return std::exchange(error_, {});
}

}  // namespace mdfs::fuse
