// Inodes, and the small items that belong to them: symbolic links, inline bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "format/kept.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 62;

// mdfs_inode. Field meanings: ondisk.h. Times are nanoseconds since 1970.
struct Inode {
  std::uint32_t mode = 0;
  std::uint32_t links = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t stored_bytes = 0;
  std::int64_t atime_ns = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::int64_t btime_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t flags = 0;  // MDFS_INODE_*
  std::uint64_t parent = 0;
  std::uint64_t base = 0;
  std::uint64_t placement = 0;
  std::uint64_t data_generation = 0;
  std::uint64_t entries = 0;
  std::uint32_t reach = 0;
  std::uint8_t protection = 0;     // lost disks that the data survive; of a directory: of new names in it
  std::uint8_t group_members = 0;  // extents of a group: 1 are copies; 0 without protection
  std::uint8_t spare_disks = 0;    // of the root: lost disks for whose rebuild room stays free
  Kept<sizeof(mdfs_inode::reserved)> reserved{};

  bool operator==(const Inode&) const = default;
  bool is_directory() const;
  bool is_regular() const;
  bool is_symlink() const;
  bool is_image() const { return (flags & MDFS_INODE_IMAGE) != 0; }
  // The samples of a level, which can be made again. Levels of older volumes lack the flag.
  bool is_level() const { return (flags & MDFS_INODE_LEVEL) != 0; }
  bool is_inline() const { return (flags & MDFS_INODE_INLINE) != 0; }
  // What is written gets a second copy on another disk. Protection from more lost disks is that of later versions.
  bool has_copies() const { return protection == 1; }
  // Extents of an image that are to share one parity in place of their copies; 1: none do.
  std::uint8_t group_width() const { return has_copies() && group_members > 1 ? group_members : std::uint8_t{1}; }
  // `width`: 1, or extents that are to share a parity (geometry::is_parity_width()).
  void set_copies(bool wanted, unsigned width = 1) {
    protection = wanted ? 1 : 0;
    group_members = wanted ? static_cast<std::uint8_t>(width) : 0;
  }
  // The d_type of the entries of this inode.
  std::uint8_t entry_type() const { return static_cast<std::uint8_t>((mode >> 12) & 15); }
};

ByteVector encode(const Inode& inode);
// Checks: inode.length, inode.mode (no known file type, or bits beyond the type and 07777), inode.flags (unknown, or
// not fitting the type), inode.size, inode.stored-bytes, inode.parent (zero for a directory, or not zero elsewhere),
// inode.entries (not zero elsewhere than in a directory), inode.protection (more than 2 disks; without groups, or
// groups without protection, or of other than 1, 2, 4 or 8 extents; elsewhere than in a file or directory),
// inode.spare-disks (more than MDFS_MAX_DISKS - 2; elsewhere than in a directory).
Result<Inode> decode_inode(ConstBytes value);

// Checks: symlink.length (1..4095), symlink.nul.
Result<std::string> decode_symlink(ConstBytes value);
// Checks: inline.length (at most MDFS_MAX_INLINE).
Status check_inline(ConstBytes value);

}  // namespace mdfs::format
