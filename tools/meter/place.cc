// Looking at a place, and making the files there.
// SPDX-License-Identifier: Apache-2.0
#include "meter/place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "meter/noise.h"
#include "support/interruption.h"
#include "support/progress.h"

namespace mdfs::tools {
namespace {

constexpr const char* kDropCaches = "/proc/sys/vm/drop_caches";
constexpr const char* kMounts = "/proc/self/mountinfo";
constexpr std::uint64_t kFillBytes = 1u << 20;  // of one write
constexpr std::uint64_t kSpareShare = 16;       // one part of so many stays free beside the files

// The type of a mounted filesystem by the number of its mount; empty if it is not listed. A line of the list is "36 35
// 98:0 /root /mount options - type source options".
std::string type_of_mount(std::uint64_t number) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(kMounts, "re"), std::fclose);
  if (!file) return {};
  std::string text;
  for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) text.push_back(static_cast<char>(c));
  for (const std::string& line : lines_of(text)) {
    std::uint64_t found = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), found);
    const std::size_t type = line.find(" - ");
    if (failure != std::errc{} || found != number || type == std::string::npos) continue;
    return printable(line.substr(type + 3, line.find(' ', type + 3) - type - 3));
  }
  return {};
}

Error no_direct(const std::string& path) {
  return {Errc::kNotSupported, path + ": the filesystem refuses O_DIRECT; leave --direct out"};
}

}  // namespace

Result<MeterPlace> MeterPlace::look(const std::string& path, const meter::Profile& profile, unsigned clients,
                                    std::uint64_t most_bytes, bool direct) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE | STATX_SIZE | STATX_MNT_ID, &status) != 0)
    return from_errno(errno, path);
  MeterPlace place;
  place.path_ = path;
  place.direct_ = direct;
  if ((status.stx_mask & STATX_MNT_ID) != 0) place.filesystem_ = type_of_mount(status.stx_mnt_id);
  if (S_ISDIR(status.stx_mode)) {
    MDFS_TRY_ASSIGN(place.files_, meter::files_within(profile, clients, most_bytes));
    place.bytes_ = meter::all_bytes(profile, place.files_, clients);
    return place;
  }
  if (!S_ISREG(status.stx_mode)) return Error{Errc::kInvalidArgument, path + ": must be a directory or a file"};
  if (profile.writes > 0)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: a file is only read, and the profile {} writes; name a directory, or take a profile "
                             "with writes = 0",
                             path, profile.name)};
  place.is_file_ = true;
  place.files_ = {1, align_down(status.stx_size, meter::kAlignment)};
  place.bytes_ = place.files_.file_bytes;
  if (place.bytes_ == 0)
    return Error{Errc::kInvalidArgument, fmt::format("{}: {}; a file of {} or more is read", path,
                                                     format_size(status.stx_size), format_size(meter::kAlignment))};
  return place;
}

Status MeterPlace::prepare(const meter::Profile& profile, const std::atomic<bool>& interrupted) {
  if (is_file_) return {};
  struct statvfs space {};
  if (::statvfs(path_.c_str(), &space) != 0) return from_errno(errno, path_);
  const std::uint64_t free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (bytes_ > free_bytes - free_bytes / kSpareShare)
    return Error{Errc::kNoSpace, fmt::format("{}: {} are free, and the files need {}; choose a smaller --size", path_,
                                             format_size(free_bytes), format_size(bytes_))};
  MDFS_TRY_ASSIGN(ScratchFolder folder, ScratchFolder::create(path_));
  folder_.emplace(std::move(folder));
  return fill(profile, interrupted);
}

Status MeterPlace::fill(const meter::Profile& profile, const std::atomic<bool>& interrupted) {
  const bool full = profile.begin == meter::Begin::kFull;
  const std::uint64_t file_bytes = full ? files_.file_bytes : 0;
  Noise noise(std::min(kFillBytes, files_.file_bytes), 0);
  Progress progress("writing files", full ? bytes_ : 0);
  for (std::uint64_t number = 0; number < bytes_ / files_.file_bytes; ++number) {
    auto file = folder_->make(O_RDWR | (direct_ ? O_DIRECT : 0));
    if (!file.ok() && direct_ && file.error().code == Errc::kInvalidArgument) return no_direct(path_);
    if (!file.ok()) return file.error();
    for (std::uint64_t offset = 0; offset < file_bytes; offset += kFillBytes) {
      if (interrupted) return stopped_by_signal();
      const std::uint64_t bytes = std::min(kFillBytes, file_bytes - offset);
      MDFS_TRY(file->write_at(offset, noise.next(bytes)));
      progress.add(bytes);
    }
    MDFS_TRY(file->close());
  }
  return {};
}

Status MeterPlace::begin(const meter::Profile& profile, bool drop_caches, const std::atomic<bool>& interrupted) {
  // File by file: syncfs(2) does not reach filesystems in FUSE.
  for (std::size_t i = 0; folder_ && i < folder_->count(); ++i) {
    if (interrupted) return stopped_by_signal();
    MDFS_TRY_ASSIGN(const File file, folder_->open(i, O_RDWR));
    if (profile.begin == meter::Begin::kEmpty && ::ftruncate(file.fd(), 0) != 0) return from_errno(errno, file.name());
    if (::fdatasync(file.fd()) != 0) return from_errno(errno, file.name());
  }
  if (!drop_caches) return {};
  MDFS_TRY_ASSIGN(File drop, File::open(kDropCaches, O_WRONLY));
  const std::string_view all = "3\n";
  return drop.write(as_bytes(all));
}

Result<File> MeterPlace::open(const meter::Profile& profile, unsigned client, unsigned file) const {
  const int direct = direct_ ? O_DIRECT : 0;
  const std::size_t number = profile.shared ? file : std::size_t{client} * files_.files + file;
  auto opened = is_file_ ? File::open(path_, O_RDONLY | direct) : folder_->open(number, O_RDWR | direct);
  if (!opened.ok() && direct_ && opened.error().code == Errc::kInvalidArgument) return no_direct(path_);
  return opened;
}

Status MeterPlace::remove() { return folder_ ? folder_->remove() : Status(); }

Status may_drop_caches() {
  const auto drop = File::open(kDropCaches, O_WRONLY);
  if (drop.ok()) return {};
  return Error{Errc::kNotPermitted,
               fmt::format("--drop-caches: {}; only root can drop the caches of the kernel", drop.error().message())};
}

}  // namespace mdfs::tools
