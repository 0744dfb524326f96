// Signatures through libblkid, MDFS labels by their magic.
// SPDX-License-Identifier: Apache-2.0
#include "device/probe.h"

#include <blkid/blkid.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <mdfs/ondisk.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "device/open.h"
#include "device/unique_fd.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

struct FreeProbe {
  void operator()(blkid_probe probe) const { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<std::remove_pointer_t<blkid_probe>, FreeProbe>;

// A signature that stays after this many rounds cannot be wiped.
constexpr int kMaxSignatures = 64;
// Labels lie in these last bytes for any block size.
constexpr std::uint64_t kTailBytes = 2 * MDFS_LABEL_AREA + MDFS_MAX_BLOCK_SIZE;
constexpr std::size_t kReadBytes = 1u << 20;
constexpr std::size_t kMagicBytes = 8;

Result<UniqueFd> open_for(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.open()) return from_errno(errno, path);
  return fd;
}

Result<Probe> make_probe(const std::string& path, int fd) {
  Probe probe(blkid_new_probe());
  if (!probe || blkid_probe_set_device(probe.get(), fd, 0, 0) != 0) return {Errc::kIo, path + ": cannot be probed"};
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(),
                                    BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE | BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM);
  blkid_probe_enable_partitions(probe.get(), 1);
  blkid_probe_set_partitions_flags(probe.get(), BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
  return probe;
}

std::string value_of(blkid_probe probe, const char* name) {
  const char* value = nullptr;
  if (blkid_probe_lookup_value(probe, name, &value, nullptr) != 0 || value == nullptr) return {};
  return value;
}

// Of the signature that blkid_do_probe() has just found.
std::string describe(blkid_probe probe) {
  const std::string type = value_of(probe, "TYPE");
  const std::string usage = value_of(probe, "USAGE");
  const std::string table = value_of(probe, "PTTYPE");
  if (type.empty()) return table.empty() ? "an unknown signature" : table + " partition table";
  if (usage == "filesystem") return type + " filesystem";
  if (usage == "raid") return type + " (RAID)";
  if (usage == "crypto") return type + " (encrypted)";
  return type;
}

Result<std::uint64_t> size_of(const std::string& path, int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return from_errno(errno, path);
  if (!S_ISBLK(st.st_mode)) return static_cast<std::uint64_t>(st.st_size);
  std::uint64_t size = 0;
  if (::ioctl(fd, BLKGETSIZE64, &size) != 0) return from_errno(errno, path);
  return size;
}

bool is_magic(const void* bytes) {
  return std::memcmp(bytes, MDFS_LABEL_MAGIC, kMagicBytes) == 0 ||
         std::memcmp(bytes, MDFS_COMMIT_MAGIC, kMagicBytes) == 0;
}

bool has_magic(int fd, std::uint64_t offset) {
  char magic[kMagicBytes];
  return ::pread(fd, magic, sizeof magic, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof magic) &&
         is_magic(magic);
}

// Places where a label or a commit slot may lie, at both ends.
std::set<std::uint64_t> label_places(std::uint64_t size) {
  std::set<std::uint64_t> places;
  const std::uint64_t last = align_down(size, MDFS_SECTOR);
  for (std::uint64_t at = 0; at < 2 * MDFS_LABEL_AREA && at < last; at += MDFS_SECTOR) places.insert(at);
  for (std::uint64_t at = last - std::min(last, kTailBytes); at < last; at += MDFS_SECTOR) places.insert(at);
  return places;
}

Status wipe_labels(const std::string& path, int fd, std::uint64_t size) {
  const ByteVector zeros(MDFS_SECTOR);
  for (const std::uint64_t place : label_places(size)) {
    if (!has_magic(fd, place)) continue;
    if (::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(place)) != static_cast<ssize_t>(zeros.size())) {
      return from_errno(errno, path);
    }
  }
  return {};
}

// Of a disk that is no path: only MDFS writes to it.
Result<std::vector<std::uint64_t>> labels_on(Disk& disk) {
  std::vector<std::uint64_t> found;
  AlignedBuffer sector(MDFS_SECTOR);
  for (const std::uint64_t place : label_places(disk.size_bytes())) {
    MDFS_TRY(read(disk, place, sector.bytes()));
    if (is_magic(sector.data())) found.push_back(place);
  }
  return found;
}

Status wipe_labels(Disk& disk) {
  MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> places, labels_on(disk));
  AlignedBuffer zeros(MDFS_SECTOR);
  std::memset(zeros.data(), 0, zeros.size());
  for (const std::uint64_t place : places) MDFS_TRY(write(disk, place, zeros.bytes()));
  return flush(disk);
}

// Where there may be data at or after `offset`; `size` where there are none. A filesystem that knows no holes says
// `offset`.
Result<std::uint64_t> next_data(const std::string& path, int fd, std::uint64_t offset, std::uint64_t size) {
  const off_t found = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return static_cast<std::uint64_t>(found);
  if (errno == ENXIO) return size;
  if (errno == EINVAL || errno == EOPNOTSUPP) return offset;
  return from_errno(errno, path);
}

Result<bool> holds_only_zeros(const std::string& path, int fd, std::uint64_t size) {
  ByteVector buffer(kReadBytes);
  const ByteVector zeros(kReadBytes);
  for (std::uint64_t at = 0;;) {
    MDFS_TRY_ASSIGN(at, next_data(path, fd, at, size));
    if (at >= size) return true;
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(errno, path);
    if (got == 0) return true;  // cut short meanwhile
    if (std::memcmp(buffer.data(), zeros.data(), static_cast<std::size_t>(got)) != 0) return false;
    at += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

Result<std::optional<std::string>> recognise(const std::string& path) {
  if (!is_path(path)) {
    MDFS_TRY_ASSIGN(const auto disk, open_disk(path, OpenMode::kLook, nullptr));
    MDFS_TRY_ASSIGN(const std::vector<std::uint64_t> places, labels_on(*disk));
    return places.empty() ? std::optional<std::string>() : "MDFS volume";
  }
  MDFS_TRY_ASSIGN(const UniqueFd fd, open_for(path, O_RDONLY));
  MDFS_TRY_ASSIGN(const std::uint64_t size, size_of(path, fd.get()));
  for (const std::uint64_t place : label_places(size)) {
    if (has_magic(fd.get(), place)) return std::optional<std::string>("MDFS volume");
  }
  MDFS_TRY_ASSIGN(const Probe probe, make_probe(path, fd.get()));
  const int found = blkid_do_probe(probe.get());
  if (found < 0) return {Errc::kIo, path + ": cannot be probed"};
  if (found > 0) return std::optional<std::string>();
  return std::optional<std::string>(describe(probe.get()));
}

Result<std::optional<std::string>> find_contents(const std::string& path) {
  MDFS_TRY_ASSIGN(auto found, recognise(path));
  if (found || !is_path(path)) return found;
  MDFS_TRY_ASSIGN(const UniqueFd fd, open_for(path, O_RDONLY));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return from_errno(errno, path);
  if (!S_ISREG(st.st_mode)) return found;
  MDFS_TRY_ASSIGN(const bool empty, holds_only_zeros(path, fd.get(), static_cast<std::uint64_t>(st.st_size)));
  if (!empty) found = "data";
  return found;
}

Status wipe_signatures(const std::string& path, Disk* held) {
  if (!is_path(path) && held != nullptr) return wipe_labels(*held);
  if (!is_path(path)) {
    MDFS_TRY_ASSIGN(const auto disk, open_disk(path, OpenMode::kReadWrite, nullptr));
    return wipe_labels(*disk);
  }
  MDFS_TRY_ASSIGN(const UniqueFd fd, open_for(path, O_RDWR));
  MDFS_TRY_ASSIGN(const std::uint64_t size, size_of(path, fd.get()));
  MDFS_TRY(wipe_labels(path, fd.get(), size));
  MDFS_TRY_ASSIGN(const Probe probe, make_probe(path, fd.get()));
  int rounds = 0;
  for (int found = 0; (found = blkid_do_probe(probe.get())) != 1;) {
    if (found < 0 || ++rounds > kMaxSignatures) return {Errc::kIo, path + ": its old signatures cannot be wiped"};
    if (blkid_do_wipe(probe.get(), 0) != 0) return {Errc::kIo, path + ": cannot wipe the " + describe(probe.get())};
  }
  if (::fsync(fd.get()) != 0) return from_errno(errno, path);
  return {};
}

UdevText udev_text(const std::string& text) {
  std::vector<char> shown(4 * text.size() + 1), encoded(4 * text.size() + 1);
  if (blkid_safe_string(text.c_str(), shown.data(), shown.size()) != 0) return {};
  if (blkid_encode_string(text.c_str(), encoded.data(), encoded.size()) != 0) return {};
  return {shown.data(), encoded.data()};
}

}  // namespace mdfs::device
