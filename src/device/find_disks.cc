// Looking through directories and block devices for labels.
// SPDX-License-Identifier: Apache-2.0
#include "device/find_disks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "device/same_disk.h"
#include "device/unique_fd.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

// Entries of a directory that are tried.
constexpr std::size_t kMaxEntries = 4096;

Result<std::uint64_t> size_of(int fd, const struct stat& st, const std::string& path) {
  if (S_ISREG(st.st_mode)) return static_cast<std::uint64_t>(st.st_size);
  std::uint64_t bytes = 0;
  if (ioctl(fd, BLKGETSIZE64, &bytes) != 0) return from_errno(errno, path);
  return bytes;
}

constexpr std::string_view kUuidPrefix = "UUID=";

// What has been found so far.
class Search {
 public:
  // From now on disks of other volumes are passed over, or refused if they are named.
  Status want(std::string_view text) {
    const auto uuid = Uuid::parse(text);
    if (!uuid) return Error{Errc::kUsage, fmt::format("'{}{}' is no UUID", kUuidPrefix, text)};
    if (volume_ && *volume_ != *uuid) return Error{Errc::kUsage, "two volumes are named"};
    volume_ = uuid;
    named_one_ = true;
    return {};
  }

  // A disk that the caller names: everything about it must be right.
  Status add_named(const std::string& path) {
    auto label = read_label(path);
    if (!label.ok()) return std::move(label).error();
    if (!volume_) volume_ = label->volume_uuid;
    if (label->volume_uuid != *volume_)
      return Error{Errc::kForeignDisk, fmt::format("{} is of volume {}, others are of {}", path,
                                                   label->volume_uuid.to_string(), volume_->to_string())};
    return add(path, *label, true);
  }

  // Every entry of a directory: what holds no label is passed over.
  Status add_directory(const std::string& path) {
    MDFS_TRY(try_entries(path));
    if (!first_ && !newer_.empty()) return Error{Errc::kNewerFormat, newer_};
    if (!first_ && !volume_) return Error{Errc::kForeignDisk, path + " holds no disk of an MDFS volume"};
    return {};
  }

  Status try_entries(const std::string& path) {
    std::vector<std::string> entries;
    std::error_code failure;
    for (fs::directory_iterator it(path, failure), end; !failure && it != end; it.increment(failure)) {
      if (entries.size() == kMaxEntries) break;
      entries.push_back(it->path().string());
    }
    if (failure) return from_errno(failure.value(), path);
    std::sort(entries.begin(), entries.end());
    for (const std::string& entry : entries) MDFS_TRY(try_candidate(entry));
    return {};
  }

  // Not named by anybody: taken if it belongs, passed over if not.
  Status try_candidate(const std::string& path) {
    struct stat st {};
    if (stat(path.c_str(), &st) != 0 || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))) return {};
    const auto label = read_label(path);
    if (!label.ok()) {
      if (label.error().code == Errc::kNewerFormat && newer_.empty()) newer_ = path;
      return {};
    }
    if (!volume_) volume_ = label->volume_uuid;
    if (label->volume_uuid != *volume_) {
      if (!named_one_) return Error{Errc::kForeignDisk, "disks of several volumes lie there: name one disk"};
      return {};
    }
    return add(path, *label, false);
  }

  bool any() const { return first_.has_value(); }
  std::string volume() const { return volume_ ? volume_->to_string() : ""; }
  bool complete() const { return first_ && found_.size() >= format::count_disks(first_->members); }
  void disk_was_named() { named_one_ = true; }

  FoundDisks finish() const {
    FoundDisks result{.volume_uuid = first_->volume_uuid, .volume_name = first_->name, .paths = {}, .missing = {}};
    for (std::size_t i = 0; i < first_->members.size(); ++i) {
      if (first_->members[i].is_hole()) continue;
      const auto disk = found_.find(first_->members[i].uuid);
      if (disk != found_.end()) {
        result.paths.push_back(disk->second.path);
      } else {
        result.missing.push_back(fmt::format("disk {} ({})", i, first_->members[i].uuid.to_string()));
      }
    }
    return result;
  }

 private:
  struct Found {
    std::string path;
    bool named = false;
  };

  Status add(const std::string& path, const format::Label& label, bool named) {
    // A disk that has left, or was away while others came, has an older table.
    if (!first_ || label.membership > first_->membership) first_ = label;
    const auto [place, is_new] = found_.emplace(label.disk_uuid, Found{path, named});
    if (is_new) return {};
    const Found& other = place->second;
    const bool same = is_same_disk(path, other.path);
    if (named && same) return Error{Errc::kInvalidArgument, path + " is given twice"};
    if (same || (other.named && !named)) return {};
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} and {} are copies of one disk: name the right one", other.path, path)};
  }

  std::optional<Uuid> volume_;
  std::optional<format::Label> first_;  // of this volume
  std::map<Uuid, Found> found_;
  bool named_one_ = false;
  std::string newer_;  // holds a volume of a later version
};

// A device that others are built on (a disk under device-mapper or a partition table) shows its label there too.
bool has_holders(const fs::path& in_sys) {
  std::error_code failure;
  return !fs::is_empty(in_sys / "holders", failure) && !failure;
}

Status search_block_devices(Search& search) {
  std::error_code failure;
  std::vector<fs::path> devices;
  for (fs::directory_iterator it("/sys/class/block", failure), end; !failure && it != end; it.increment(failure))
    devices.push_back(it->path());
  std::sort(devices.begin(), devices.end());
  for (const fs::path& device : devices) {
    if (search.complete()) return {};
    if (!has_holders(device)) MDFS_TRY(search.try_candidate("/dev/" + device.filename().string()));
  }
  return {};
}

bool is_directory(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_block_device(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISBLK(st.st_mode);
}

}  // namespace

Result<format::Label> read_label(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.open()) return from_errno(errno, path);
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return from_errno(errno, path);
  if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
    return Error{Errc::kInvalidArgument, path + " is neither a block device nor a file"};
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, size_of(fd.get(), st, path));
  const std::uint64_t end = align_down(bytes, MDFS_LABEL_AREA);
  std::optional<Error> error;
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{MDFS_LABEL_AREA}, end - 2 * MDFS_LABEL_AREA, end - MDFS_LABEL_AREA}) {
    if (end < MDFS_LABELS_PER_DISK * MDFS_LABEL_AREA) break;
    ByteVector sector(MDFS_SECTOR);
    if (::pread(fd.get(), sector.data(), sector.size(), static_cast<off_t>(offset)) != ssize_t{MDFS_SECTOR}) continue;
    auto label = format::decode_label(sector);
    if (label.ok()) return label;
    // A label of a later version says more than a place without one.
    if (!error || label.error().code == Errc::kNewerFormat) error = label.error();
  }
  if (error && error->code == Errc::kNewerFormat) return Error{Errc::kNewerFormat, path};
  return Error{Errc::kForeignDisk, path + " holds no MDFS volume"};
}

Result<FoundDisks> find_disks(const std::vector<std::string>& named) {
  if (named.empty()) return Error{Errc::kUsage, "no disk is named"};
  Search search;
  bool block_devices = false;
  for (const std::string& path : named) {
    if (is_directory(path)) continue;
    if (path.starts_with(kUuidPrefix)) {
      MDFS_TRY(search.want(std::string_view(path).substr(kUuidPrefix.size())));
      block_devices = true;
      continue;
    }
    MDFS_TRY(search.add_named(path));
    search.disk_was_named();
    block_devices = block_devices || is_block_device(path);
  }
  for (const std::string& path : named)
    if (is_directory(path)) MDFS_TRY(search.add_directory(path));
  for (const std::string& path : named) {
    if (search.complete()) break;
    if (is_directory(path) || is_block_device(path) || path.starts_with(kUuidPrefix)) continue;
    const fs::path parent = fs::path(path).parent_path();
    MDFS_TRY(search.try_entries(parent.empty() ? "." : parent.string()));
  }
  // A loop device on a file of the volume is a second door to the same disk: where files are named, devices are not
  // mixed in.
  if (!search.complete() && block_devices) MDFS_TRY(search_block_devices(search));
  if (!search.any()) return Error{Errc::kNotFound, "no disk of volume " + search.volume() + " on this machine"};
  return search.finish();
}

}  // namespace mdfs::device
