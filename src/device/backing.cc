// What stands on what.
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
#include <vector>

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

bool is_device_held(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
  return !fd.open() && errno == EBUSY;
}

bool is_file(const std::string& path, const struct stat& file) {
  struct stat other {};
  return ::stat(path.c_str(), &other) == 0 && other.st_dev == file.st_dev && other.st_ino == file.st_ino;
}

// "loop3", of each loop device on this file.
std::vector<std::string> loops_on(const struct stat& file) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& device : fs::directory_iterator("/sys/block", error)) {
    const fs::path backing = device.path() / "loop" / "backing_file";
    if (fs::exists(backing, error) && is_file(line_of(backing), file))
      names.push_back(device.path().filename().string());
  }
  return names;
}

}  // namespace

std::optional<std::string> user_of_file(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  if (const std::vector<std::string> loops = loops_on(file); !loops.empty()) return "the loop device " + loops.front();
  std::ifstream swaps("/proc/swaps");
  for (std::string line; std::getline(swaps, line);)
    if (is_file(line.substr(0, line.find(' ')), file)) return "the swap space";
  return std::nullopt;
}

std::optional<bool> is_file_in_use(const std::string& path, OpenMode mode) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.open()) return std::nullopt;
  struct flock lock {};
  lock.l_type = mode == OpenMode::kReadWrite ? F_WRLCK : F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) return std::nullopt;
  return lock.l_type != F_UNLCK;
}

std::optional<std::string> user_below(dev_t device, OpenMode mode) {
  std::set<fs::path> loops;
  collect_loops(whole_device(fmt::format("/sys/dev/block/{}:{}", major(device), minor(device))), kMostLevels, loops);
  for (const fs::path& loop : loops) {
    const std::string file = line_of(loop / "loop" / "backing_file");
    if (is_file_in_use(file, mode).value_or(false))
      return fmt::format("the file {} below it, which another program holds", file);
    struct stat found {};
    if (::stat(file.c_str(), &found) != 0) continue;
    // /sys does not show whether another holder reads or writes.
    for (const std::string& other : loops_on(found))
      if (other != loop.filename() && is_device_held("/dev/" + other))
        return fmt::format("the loop device {}, on the same file {}", other, file);
  }
  return std::nullopt;
}

}  // namespace mdfs::device
