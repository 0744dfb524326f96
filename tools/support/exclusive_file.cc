// A file under a hidden, unique name, until it gets its own name.
// SPDX-License-Identifier: Apache-2.0
#include "support/exclusive_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace mdfs::tools {
namespace {

// Few enough to look at all of them for files of killed programs. Where all are taken, names are random.
constexpr unsigned kNumberedNames = 16;
constexpr unsigned kRandomTries = 16;

std::string numbered_name(unsigned number) { return fmt::format(".part-{}-{}", ::geteuid(), number); }

// Holds back the signals that remove leftovers, while a file exists that is not registered yet.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, number);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool own_regular(const struct stat& status) { return S_ISREG(status.st_mode) && status.st_uid == ::geteuid(); }

// Removes a file of the caller's that no living program holds. True if the name is free now.
bool remove_abandoned(int folder, const std::string& name) {
  struct stat named {};
  if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  if (!own_regular(named)) return false;
  const File file(::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), name);
  struct stat opened {};
  if (file.fd() < 0 || ::fstat(file.fd(), &opened) != 0 || !same_file(named, opened)) return false;
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) return false;
  // A program that took its own name meanwhile has left this one.
  if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  return same_file(named, opened) && ::unlinkat(folder, name.c_str(), 0) == 0;
}

// Opens what was just made and locks it. kExists: another program took it for abandoned; choose another name.
Result<File> open_made(int folder, const std::string& name, const std::string& path) {
  File file(::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), path);
  if (file.fd() < 0 && errno == ENOENT) return Error{Errc::kExists, path};
  if (file.fd() < 0) return from_errno(errno, path);
  struct stat opened {};
  if (::fstat(file.fd(), &opened) != 0) return from_errno(errno, path);
  if (!own_regular(opened)) return Error{Errc::kAccessDenied, path + ": another user replaced it"};
  // Without locks of the filesystem nothing is ever taken for abandoned.
  if (::flock(file.fd(), LOCK_EX) != 0 && errno != EOPNOTSUPP && errno != ENOLCK && errno != EINVAL)
    return from_errno(errno, path);
  struct stat named {};
  if (::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(named, opened))
    return Error{Errc::kExists, path};
  return file;
}

}  // namespace

Result<FilePlace> FilePlace::of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  FilePlace place;
  place.prefix = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  place.base = slash == std::string::npos ? path : path.substr(slash + 1);
  if (place.base.empty()) return Error{Errc::kUsage, "'" + path + "': must be the name of a file"};
  const int folder = ::open(place.prefix.empty() ? "." : place.prefix.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return from_errno(errno, place.prefix.empty() ? path : fmt::format("{}: its directory {}", path, place.prefix));
  place.folder = File(folder, place.prefix);
  // Before anything is made in the folder.
  struct stat st {};
  if (::fstatat(folder, place.base.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENAMETOOLONG)
    return from_errno(errno, path);
  return place;
}

std::string path_of_descriptor(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

Result<std::string> random_hidden_name() {
  std::array<std::uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
    return from_errno(errno, "random numbers for a name");
  return fmt::format(".part-{:016x}{:016x}", bits[0], bits[1]);
}

Result<ExclusiveFile> ExclusiveFile::create(const FilePlace& place) {
  return create(place, [&](const std::string& path) -> Status {
    const std::string name = path.substr(place.prefix.size());
    const File file(::openat(place.folder.fd(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
                    path);
    if (file.fd() >= 0) return {};
    if (errno == EEXIST) return Error{Errc::kExists, path};
    return from_errno(errno, path);
  });
}

Result<ExclusiveFile> ExclusiveFile::create(const FilePlace& place, const Maker& make) {
  const int folder = place.folder.fd();
  unsigned free = kNumberedNames;
  for (unsigned number = kNumberedNames; number-- > 0;)
    if (remove_abandoned(folder, numbered_name(number))) free = number;
  for (unsigned tries = 0; tries < kNumberedNames + kRandomTries; ++tries) {
    std::string name;
    if (free + tries < kNumberedNames) {
      name = numbered_name(free + tries);
    } else {
      MDFS_TRY_ASSIGN(name, random_hidden_name());
    }
    std::string path = place.prefix + name;
    const SignalsHeld held;
    const Status made = make(path);
    if (!made.ok() && made.error().code == Errc::kExists) continue;
    MDFS_TRY(made);
    auto file = open_made(folder, name, path);
    if (!file.ok() && file.error().code == Errc::kExists) continue;
    if (!file.ok()) ::unlinkat(folder, name.c_str(), 0);
    MDFS_TRY_ASSIGN(File opened, std::move(file));
    auto leftover = std::make_unique<Leftover>(path);
    return ExclusiveFile(std::move(opened), std::move(path), std::move(leftover));
  }
  return Error{Errc::kExists, place.prefix + ".part-*: every name that was tried is taken"};
}

ExclusiveFile::ExclusiveFile(ExclusiveFile&& other) noexcept
    : file_(std::move(other.file_)), path_(std::exchange(other.path_, {})), leftover_(std::move(other.leftover_)) {}

ExclusiveFile::~ExclusiveFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status ExclusiveFile::commit(const FilePlace& place, bool replace) {
  const int folder = place.folder.fd();
  const std::string name = path_.substr(place.prefix.size());
  const std::string target = place.prefix + place.base;
  if (::renameat2(folder, name.c_str(), folder, place.base.c_str(), replace ? 0 : RENAME_NOREPLACE) != 0) {
    // Some filesystems know no flags of rename; a second name is exclusive everywhere.
    if (errno != EINVAL || replace) return from_errno(errno, target);
    if (::linkat(folder, name.c_str(), folder, place.base.c_str(), 0) != 0) return from_errno(errno, target);
    if (::unlinkat(folder, name.c_str(), 0) != 0) return from_errno(errno, path_);
  }
  path_.clear();
  leftover_.reset();
  return {};
}

}  // namespace mdfs::tools
