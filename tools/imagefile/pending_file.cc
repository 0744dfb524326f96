// A file that takes its name only when it is complete.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/pending_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace mdfs::imagefile {

Result<PendingFile> PendingFile::create(const std::string& target, bool overwrite) {
  static std::atomic<unsigned> counter{0};
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return Error{Errc::kIsDirectory, target};
    if (!S_ISREG(status.st_mode)) return PendingFile(target, target, overwrite);
    if (!overwrite) return Error{Errc::kExists, target + ": give --force to replace it"};
  } else if (errno != ENOENT) {
    return from_errno(errno, target);
  }
  const std::size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  const std::string base = slash == std::string::npos ? target : target.substr(slash + 1);
  if (base.empty()) return Error{Errc::kUsage, "'" + target + "': no name of a file"};
  if (!folder.empty() && ::stat(folder.c_str(), &status) != 0) return from_errno(errno, target);
  return PendingFile(target, fmt::format("{}.part-{}-{}-{}", folder, ::getpid(), ++counter, base), overwrite);
}

PendingFile::PendingFile(std::string target, std::string path, bool overwrite)
    : target_(std::move(target)), path_(std::move(path)), overwrite_(overwrite) {
  if (!direct()) leftover_ = std::make_unique<tools::Leftover>(path_);
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      leftover_(std::move(other.leftover_)),
      overwrite_(other.overwrite_),
      done_(std::exchange(other.done_, true)) {}

PendingFile::~PendingFile() {
  if (!done_ && !direct()) ::unlink(path_.c_str());
}

Status PendingFile::commit() {
  if (!direct() &&
      ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), overwrite_ ? 0 : RENAME_NOREPLACE) != 0)
    return from_errno(errno, target_);
  done_ = true;
  return {};
}

}  // namespace mdfs::imagefile
