// Opens disks by the table of schemes, and creates files for disks.
// SPDX-License-Identifier: Apache-2.0
#include "device/open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "base/real_path.h"

namespace mdfs::device {
namespace {

// The first row that accepts the name; null: none does.
const DiskScheme* scheme_of(const std::string& disk, std::span<const DiskScheme> table) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const DiskScheme& scheme) { return scheme.is_name(disk); });
  return found == table.end() ? nullptr : &*found;
}

// Neither opened nor looked into: opening a FIFO would wait, opening a tape would rewind it.
Error no_disk(const std::string& disk) {
  struct stat st {};
  if (::stat(disk.c_str(), &st) != 0) return from_errno(errno, disk);
  if (S_ISDIR(st.st_mode)) return {Errc::kInvalidArgument, disk + " is a directory, not a disk"};
  std::string names;
  for (const DiskScheme& scheme : scheme_table())
    names += fmt::format("{} a {}", names.empty() ? "" : " nor", scheme.name);
  return {Errc::kInvalidArgument, fmt::format("{} is neither{}", disk, names)};
}

Error no_function(const std::string& disk) {
  return {Errc::kNotSupported, disk + ": disks of its kind are made, resized and removed by other programs"};
}

Status sync_directory_of(const std::string& path) {
  auto parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) parent = ".";
  UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || ::fsync(fd.get()) != 0) return from_errno(errno, parent.string());
  return {};
}

Status allocate(const std::string& path, int fd, std::uint64_t size_bytes, bool sparse) {
  const auto size = static_cast<off_t>(size_bytes);
  // posix_fallocate returns the error and writes zeros where the filesystem cannot allocate.
  const int error = !sparse ? ::posix_fallocate(fd, 0, size) : ::ftruncate(fd, size) != 0 ? errno : 0;
  if (error == EFBIG)
    return {Errc::kTooBig, fmt::format("{}: {} bytes exceed the largest file there", path, size_bytes)};
  if (error == ENOSPC) return {Errc::kTooBig, fmt::format("{}: no space for {} bytes", path, size_bytes)};
  if (error != 0) return from_errno(error, path);
  return {};
}

}  // namespace

Result<UniqueFd> open_disk_descriptor(const std::string& path, OpenMode mode) {
  const DiskScheme* const scheme = scheme_of(path, scheme_table());
  return scheme == nullptr ? no_disk(path) : scheme->open(path, mode);
}

Result<UniqueFd> open_descriptor_when_free(const std::string& path, OpenMode mode,
                                           std::chrono::steady_clock::time_point patience) {
  constexpr auto kStep = std::chrono::milliseconds(10);
  for (;;) {
    auto fd = open_disk_descriptor(path, mode);
    if (fd.ok() || fd.error().code != Errc::kBusy || std::chrono::steady_clock::now() > patience) return fd;
    std::this_thread::sleep_for(kStep);
  }
}

Result<std::unique_ptr<Disk>> adopt_disk(const std::string& name, UniqueFd fd, std::shared_ptr<UringContext> context) {
  for (const DiskScheme& scheme : scheme_table())
    if (scheme.is_open(fd.get())) return scheme.adopt(name, std::move(fd), std::move(context));
  return no_disk(name);
}

Result<std::unique_ptr<Disk>> open_disk(const std::string& path, OpenMode mode, std::shared_ptr<UringContext> context) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_disk_descriptor(path, mode));
  return adopt_disk(path, std::move(fd), std::move(context));
}

Result<std::unique_ptr<Disk>> open_disk_when_free(const std::string& path, OpenMode mode,
                                                  const std::shared_ptr<UringContext>& context,
                                                  std::chrono::steady_clock::time_point patience) {
  MDFS_TRY_ASSIGN(UniqueFd fd, open_descriptor_when_free(path, mode, patience));
  return adopt_disk(path, std::move(fd), context);
}

bool is_path(const std::string& disk, std::span<const DiskScheme> table) {
  const DiskScheme* const scheme = scheme_of(disk, table);
  return scheme == nullptr || scheme->is_path;
}

bool is_remote(const std::string& disk) {
  const DiskScheme* const scheme = scheme_of(disk, scheme_table());
  return scheme != nullptr && scheme->is_remote;
}

Status create_disk(const std::string& disk, std::uint64_t size_bytes, bool replace) {
  const DiskScheme* const scheme = scheme_of(disk, scheme_table());
  return scheme == nullptr || scheme->create == nullptr ? no_function(disk) : scheme->create(disk, size_bytes, replace);
}

Status grow_disk(const std::string& disk, std::uint64_t size_bytes) {
  const DiskScheme* const scheme = scheme_of(disk, scheme_table());
  return scheme == nullptr || scheme->grow == nullptr ? no_function(disk) : scheme->grow(disk, size_bytes);
}

Result<std::vector<std::string>> take_disk_over(const std::string& disk) {
  const DiskScheme* const scheme = scheme_of(disk, scheme_table());
  if (scheme != nullptr && scheme->take_over != nullptr) return scheme->take_over(disk);
  return Error{Errc::kNotSupported, disk + ": only processes of this machine write to it; end them"};
}

Status remove_disk(const std::string& disk) {
  const DiskScheme* const scheme = scheme_of(disk, scheme_table());
  return scheme == nullptr || scheme->remove == nullptr ? no_function(disk) : scheme->remove(disk);
}

Result<std::string> full_name(const std::string& disk, std::span<const DiskScheme> table) {
  if (!is_path(disk, table)) return disk;
  std::optional<std::string> path = real_path(without_last_slashes(disk));
  if (!path) return from_errno(errno, disk);
  return *std::move(path);
}

Status create_file_disk(const std::string& path, std::uint64_t size_bytes, bool sparse) {
  if (size_bytes == 0 || size_bytes % kAlignment != 0 || size_bytes > std::numeric_limits<off_t>::max()) {
    return {Errc::kInvalidArgument,
            fmt::format("{}: a disk of {} bytes (must be a multiple of {})", path, size_bytes, kAlignment)};
  }
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.open()) return from_errno(errno, path);
  Status status = allocate(path, fd.get(), size_bytes, sparse);
  if (status.ok() && ::fsync(fd.get()) != 0) status = from_errno(errno, path);
  if (status.ok()) status = sync_directory_of(path);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

}  // namespace mdfs::device
