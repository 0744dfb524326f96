// Which names are of one disk.
// SPDX-License-Identifier: Apache-2.0
#include "device/same_disk.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace mdfs::device {

namespace {

namespace fs = std::filesystem;

fs::path full_path(const std::string& path) {
  std::error_code unknown;
  fs::path full = fs::weakly_canonical(fs::absolute(path, unknown), unknown);
  return unknown ? fs::path(path) : full;
}

}  // namespace

bool is_same_disk(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  const bool have_one = ::stat(one.c_str(), &a) == 0;
  const bool have_other = ::stat(other.c_str(), &b) == 0;
  if (!have_one && !have_other) return full_path(one) == full_path(other);
  if (!have_one || !have_other) return false;
  if (S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode)) return a.st_rdev == b.st_rdev;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace mdfs::device
