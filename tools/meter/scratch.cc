// Making and removing the files of a measurement, by descriptors of their folders.
// SPDX-License-Identifier: Apache-2.0
#include "meter/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

namespace mdfs::tools {
namespace {

constexpr unsigned kMode = 0600;
constexpr const char* kPattern = ".mdfs-meter-XXXXXX";

std::string name_of_file(std::size_t number) { return fmt::format("file-{}", number); }

}  // namespace

Result<ScratchFolder> ScratchFolder::create(const std::string& below) {
  MDFS_TRY_ASSIGN(File parent, File::open(below, O_RDONLY | O_DIRECTORY));
  std::string path = below + "/" + kPattern;
  if (::mkdtemp(path.data()) == nullptr) return from_errno(errno, below + ": no folder for the files can be made");
  std::string name = path.substr(below.size() + 1);
  const int folder = ::openat(parent.fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) {
    const int problem = errno;
    ::unlinkat(parent.fd(), name.c_str(), AT_REMOVEDIR);
    return from_errno(problem, path);
  }
  return ScratchFolder(std::move(parent), File(folder, path), std::move(name), path);
}

ScratchFolder::~ScratchFolder() {
  if (folder_.fd() >= 0) (void)remove();
}

Result<File> ScratchFolder::make(int flags) {
  const std::string name = name_of_file(count_);
  const int fd = ::openat(folder_.fd(), name.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd < 0) {
    const int problem = errno;
    // Where O_DIRECT is refused, Linux has made the file already.
    if (problem != EEXIST) ::unlinkat(folder_.fd(), name.c_str(), 0);
    return from_errno(problem, path_ + "/" + name);
  }
  ++count_;
  return File(fd, path_ + "/" + name);
}

Result<File> ScratchFolder::open(std::size_t number, int flags) const {
  const std::string name = name_of_file(number);
  const int fd = ::openat(folder_.fd(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return from_errno(errno, path_ + "/" + name);
  return File(fd, path_ + "/" + name);
}

Status ScratchFolder::remove() {
  if (folder_.fd() < 0) return {};
  std::optional<Error> first;
  const auto note = [&](const std::string& what) {
    if (!first && errno != ENOENT) first = from_errno(errno, what + ": not removed");
  };
  for (std::size_t number = 0; number < count_; ++number) {
    const std::string name = name_of_file(number);
    if (::unlinkat(folder_.fd(), name.c_str(), 0) != 0) note(path_ + "/" + name);
  }
  if (::unlinkat(below_.fd(), name_.c_str(), AT_REMOVEDIR) != 0) note(path_);
  folder_ = File();
  return first ? Status(*first) : Status();
}

}  // namespace mdfs::tools
