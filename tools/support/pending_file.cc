// A file that takes its name only when it is complete.
// SPDX-License-Identifier: Apache-2.0
#include "support/pending_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace mdfs::tools {
namespace {

// The descriptor of this program that the path names, or -1.
int named_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view number = path.substr(folder.size());
    int fd = -1;
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), fd);
    if (problem == std::errc() && end == number.data() + number.size() && fd >= 0) return fd;
  }
  return -1;
}

// A pipe or a link that another user may have put there for this program.
bool is_planted(const struct stat& there, const struct stat& folder) {
  if (!S_ISLNK(there.st_mode) && !S_ISFIFO(there.st_mode)) return false;  // only root makes devices
  const bool shared = (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return shared && there.st_uid != 0 && there.st_uid != ::geteuid() && there.st_uid != folder.st_uid;
}

bool is_direct(const struct stat& status) { return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode); }

}  // namespace

Result<File> PendingFile::open_direct(const std::string& target, const FilePlace& place) {
  struct stat there {};
  struct stat folder {};
  struct stat opened {};
  if (::fstat(place.folder.fd(), &folder) != 0 ||
      ::fstatat(place.folder.fd(), place.base.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0)
    return from_errno(errno, target);
  if (is_planted(there, folder))
    return Error{Errc::kAccessDenied,
                 target + ": a link or pipe of another user, in a folder that others may write; name another file"};
  const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (S_ISLNK(there.st_mode) ? 0 : O_NOFOLLOW);
  File file(::openat(place.folder.fd(), place.base.c_str(), flags), target);
  if (file.fd() < 0 || ::fstat(file.fd(), &opened) != 0) return from_errno(errno, target);
  if (!is_direct(opened)) return Error{Errc::kBusy, target + ": it was replaced while it was opened"};
  return file;
}

Result<PendingFile> PendingFile::create(const std::string& target, bool overwrite) {
  if (const int fd = named_descriptor(target); fd >= 0) {
    PendingFile pending(target, FilePlace{}, Kind::kDirect, overwrite);
    pending.file_ = File(::fcntl(fd, F_DUPFD_CLOEXEC, 3), target);
    if (pending.file_.fd() < 0) return from_errno(errno, target);
    return pending;
  }
  MDFS_TRY_ASSIGN(FilePlace place, FilePlace::of(target));
  struct stat there {};
  if (::fstatat(place.folder.fd(), place.base.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    struct stat leads_to = there;
    const bool nowhere = S_ISLNK(there.st_mode) && ::fstatat(place.folder.fd(), place.base.c_str(), &leads_to, 0) != 0;
    if (S_ISDIR(leads_to.st_mode)) return Error{Errc::kIsDirectory, target};
    if (!nowhere && is_direct(leads_to)) {
      MDFS_TRY_ASSIGN(File file, open_direct(target, place));
      PendingFile pending(target, std::move(place), Kind::kDirect, overwrite);
      pending.file_ = std::move(file);
      return pending;
    }
    if (!overwrite) return Error{Errc::kExists, target + ": give --force to replace it"};
  } else if (errno != ENOENT) {
    return from_errno(errno, target);
  }
  // The path of a descriptor gives it its name later.
  const bool proc = ::access("/proc/self/fd", F_OK) == 0;
  const int nameless =
      proc ? ::openat(place.folder.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : (errno = EOPNOTSUPP, -1);
  if (nameless >= 0) {
    PendingFile pending(target, std::move(place), Kind::kNameless, overwrite);
    pending.file_ = File(nameless, target);
    return pending;
  }
  // EISDIR: a kernel that does not know the flag.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS) return from_errno(errno, target);
  auto exclusive = ExclusiveFile::create(place);
  if (!exclusive.ok()) return Error{exclusive.error().code, target};
  PendingFile pending(target, std::move(place), Kind::kHidden, overwrite);
  pending.exclusive_.emplace(std::move(*exclusive));
  return pending;
}

// linkat replaces nothing: a random name first, then a rename.
Status PendingFile::link_over() {
  const int folder = place_.folder.fd();
  MDFS_TRY_ASSIGN(const std::string name, random_hidden_name());
  const Leftover leftover(place_.prefix + name);
  if (::linkat(AT_FDCWD, path().c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return from_errno(errno, target_);
  if (::renameat(folder, name.c_str(), folder, place_.base.c_str()) == 0) return {};
  const int problem = errno;
  ::unlinkat(folder, name.c_str(), 0);
  return from_errno(problem, target_);
}

Status PendingFile::commit() {
  // Delayed writes fail here, before the file takes the name of an older one.
  if (is_regular() && ::fsync(file().fd()) != 0) return from_errno(errno, target_);
  // Some filesystems report a failed write when a descriptor is closed.
  if (const int copy = ::fcntl(file().fd(), F_DUPFD_CLOEXEC, 3); copy < 0 || (::close(copy) != 0 && errno != EINTR))
    return from_errno(errno, target_);
  switch (kind_) {
    case Kind::kDirect:
      return {};
    case Kind::kHidden:
      return exclusive_->commit(place_, overwrite_);
    case Kind::kNameless:
      break;
  }
  if (::linkat(AT_FDCWD, path().c_str(), place_.folder.fd(), place_.base.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  if (errno != EEXIST) return from_errno(errno, target_);
  if (!overwrite_)
    return Error{Errc::kExists, target_ + ": another program has just created it; give --force to replace it"};
  return link_over();
}

Status write_text_file(const std::string& path, std::string_view text, bool overwrite) {
  MDFS_TRY_ASSIGN(PendingFile file, PendingFile::create(path, overwrite));
  MDFS_TRY(file.file().write(as_bytes(text)));
  return file.commit();
}

}  // namespace mdfs::tools
