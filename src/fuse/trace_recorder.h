// Records the requests to a mount, in the lines that mdfs-sim replay reads (model/trace.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "device/unique_fd.h"
#include "geometry/geometry.h"
#include "model/trace.h"
#include "volume/volume.h"

namespace mdfs::fuse {

// Any thread may call any method. Lines wait in a buffer of at most kBufferBytes before they go to the file; when that
// fails the recording ends, and finish() returns the error. Objects are introduced where they first appear, and again
// when their geometry has changed; at most kMaxKnown of them are remembered.
class TraceRecorder {
 public:
  static constexpr std::size_t kBufferBytes = 64u << 10;
  static constexpr std::size_t kMaxKnown = 65536;
  using Clock = std::chrono::steady_clock;

  // Creates or truncates the file. `cache_bytes`: of the mount.
  static Result<std::unique_ptr<TraceRecorder>> create(const std::string& path, std::uint64_t cache_bytes);
  ~TraceRecorder();

  // Records a window requested at `when`; `volume` gives the geometry of the image.
  void window(volume::Volume& volume, volume::Ino image, const geometry::Window& window, bool write,
              Clock::time_point when, pid_t client);
  // Records bytes of the plain file or image; an empty range is not recorded.
  void bytes(volume::Volume& volume, volume::Ino file, std::uint64_t offset, std::uint64_t length, bool write,
             Clock::time_point when, pid_t client);
  // Notes that the object has changed its kind or geometry.
  void forget(volume::Ino ino);

  // Writes everything to the file. Returns the first error.
  Status finish();

 private:
  TraceRecorder(std::string path, device::UniqueFd fd, std::uint64_t cache_bytes);
  double seconds(Clock::time_point when) const { return std::chrono::duration<double>(when - start_).count(); }
  bool knows(volume::Ino ino);
  // Adds a line that introduces the object, unless the same line was already added.
  void introduce(const model::TraceImage& image);
  void add(const std::string& line);  // the caller holds mutex_
  void write_out();                   // the caller holds mutex_

  const std::string path_;
  const Clock::time_point start_;
  device::UniqueFd fd_;
  std::mutex mutex_;  // guards all below
  std::string buffer_;
  std::unordered_map<std::uint64_t, std::string> known_;  // the line that introduced an object
  Status error_;
};

}  // namespace mdfs::fuse
