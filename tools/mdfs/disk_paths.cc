// Looks at paths, at locks of files, and at the open files of processes.
// SPDX-License-Identifier: Apache-2.0
#include "disk_paths.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/text.h"
#include "device/backing.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;

// What is wrong with the path of a disk in use, or nothing. A daemon holds a lock on each of its files.
std::string wrong_at(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return errno == ENOENT ? "nothing is at its path any more" : "";
  if (!S_ISREG(st.st_mode)) return S_ISBLK(st.st_mode) ? "" : "its path is no disk any more";
  return device::is_file_in_use(path).value_or(true) ? "" : "another file is at its path";
}

struct DeletedFile {
  std::string open;  // as a path below /proc
  std::string path;  // that it had
};

// The open file that had this name, of which the beginning may be missing.
std::optional<DeletedFile> open_deleted_file(std::string name) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (name.starts_with(kEllipsis)) name.erase(0, kEllipsis.size());
  name += kDeleted;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string number = process.path().filename();
    if (!std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    for (const auto& file : fs::directory_iterator(process.path() / "fd", error)) {
      const std::string target = fs::read_symlink(file.path(), error);
      if (!error && target.ends_with(name))
        return DeletedFile{file.path(), target.substr(0, target.size() - kDeleted.size())};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> moved_disks(const mdfs_ioc_volume& volume) {
  std::vector<std::string> lines;
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = volume.disks[i];
    const std::string path = text_of(disk.name);
    if (!is_readable(disk.state) || !path.starts_with('/')) continue;
    if (const std::string wrong = wrong_at(path); !wrong.empty())
      lines.push_back(
          fmt::format("disk {} ({}) was moved: {}; mount it next time by its new path", i, printable(path), wrong));
  }
  return lines;
}

std::vector<std::string> rescues(const mdfs_ioc_volume& volume) {
  std::vector<std::string> lines;
  for (const std::uint32_t i : disk_numbers(volume)) {
    const auto& disk = volume.disks[i];
    if (disk.state != static_cast<std::uint32_t>(DiskState::kDeleted)) continue;
    if (const auto file = open_deleted_file(text_of(disk.name)))
      lines.push_back(
          fmt::format("disk {}: copy it with: cp --sparse=always {} {}", i, file->open, shell_word(file->path)));
  }
  return lines;
}

}  // namespace mdfs::tools
