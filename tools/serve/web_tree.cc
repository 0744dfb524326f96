// Opening and listing below the root.
// SPDX-License-Identifier: Apache-2.0
#include "serve/web_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace mdfs::serve {
namespace {

constexpr unsigned kAttempts = 16;  // a rename beside ".." makes the kernel look again

int open_at(int root, const char* path, int flags) {
  open_how how{};
  // The kernel refuses other flags beside O_PATH.
  const int more = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY;
  how.flags = static_cast<std::uint64_t>(flags | more | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Opened open_below(int root, const std::string& path, int flags) {
  const std::size_t begin = path.find_first_not_of('/');
  const std::string relative = begin == std::string::npos ? "." : path.substr(begin);
  if (relative.find('\0') != std::string::npos) return {Descriptor(-1), ENOENT};
  for (unsigned attempt = 1;; ++attempt) {
    const int fd = open_at(root, relative.c_str(), flags);
    if (fd >= 0) return {Descriptor(fd), 0};
    if ((errno != EINTR && errno != EAGAIN) || attempt == kAttempts) return {Descriptor(-1), errno};
  }
}

Listing list(Descriptor directory) {
  Listing listing;
  DIR* const stream = ::fdopendir(directory.get());
  if (stream == nullptr) {
    listing.error = errno;
    return listing;
  }
  directory.release();  // the stream closes it
  errno = 0;
  while (const dirent* const found = ::readdir(stream)) {
    const std::string name = found->d_name;
    if (name == "." || name == "..") continue;
    if (listing.entries.size() == kMaxListed) {
      listing.more = true;
      break;
    }
    Entry entry{name, found->d_type == DT_DIR, false};
    struct stat st {};
    const std::string view = name + "@";
    entry.is_image = found->d_type == DT_REG &&
                     ::fstatat(::dirfd(stream), view.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    listing.entries.push_back(std::move(entry));
    errno = 0;
  }
  if (!listing.more) listing.error = errno;
  ::closedir(stream);
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return listing;
}

}  // namespace mdfs::serve
