// What block devices stand on.
// SPDX-License-Identifier: Apache-2.0
#include "device/backing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "device/unique_fd.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostLevels = 16;  // of devices on devices

std::string line_of(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The directory of the whole device in /sys: of a partition, that of its disk.
fs::path whole_device(const fs::path& link) {
  std::error_code error;
  fs::path directory = fs::canonical(link, error);
  if (!error && fs::exists(directory / "partition", error)) directory = directory.parent_path();
  return error ? fs::path() : directory;
}

// The loop devices at the bottom, itself included.
void collect_loops(const fs::path& device, unsigned levels, std::set<fs::path>& loops) {
  std::error_code error;
  if (device.empty() || levels == 0) return;
  if (fs::exists(device / "loop" / "backing_file", error)) loops.insert(device);
  for (const auto& slave : fs::directory_iterator(device / "slaves", error))
    collect_loops(whole_device(slave.path()), levels - 1, loops);
}

bool is_file_held(const std::string& path, OpenMode mode) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.open()) return false;
  struct flock lock {};
  lock.l_type = mode == OpenMode::kReadWrite ? F_WRLCK : F_RDLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_device_held(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
  return !fd.open() && errno == EBUSY;
}

bool is_same_file(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::optional<std::string> user_below(dev_t device, OpenMode mode) {
  std::set<fs::path> loops;
  collect_loops(whole_device(fmt::format("/sys/dev/block/{}:{}", major(device), minor(device))), kMostLevels, loops);
  std::error_code error;
  for (const fs::path& loop : loops) {
    const std::string file = line_of(loop / "loop" / "backing_file");
    if (is_file_held(file, mode)) return fmt::format("the file {} below it, which another program holds", file);
    // Whether who holds it reads or writes cannot be seen.
    for (const auto& other : fs::directory_iterator("/sys/block", error)) {
      const std::string name = other.path().filename().string();
      if (whole_device(other.path()) == loop || !fs::exists(other.path() / "loop" / "backing_file", error)) continue;
      if (is_same_file(line_of(other.path() / "loop" / "backing_file"), file) && is_device_held("/dev/" + name))
        return fmt::format("the loop device {}, on the same file {}", name, file);
    }
  }
  return std::nullopt;
}

}  // namespace mdfs::device
