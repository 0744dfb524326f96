// Inodes.
// SPDX-License-Identifier: Apache-2.0
#include "format/inode.h"

#include <sys/stat.h>

#include "format/fields.h"
#include "geometry/parity_box.h"

namespace mdfs::format {
namespace {

constexpr std::uint64_t kKnownFlags = MDFS_INODE_IMAGE | MDFS_INODE_INLINE | MDFS_INODE_LEVEL;
constexpr std::uint32_t kModeBits = S_IFMT | 07777;
constexpr unsigned kMostLostDisks = 2;

bool known_type(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
      return true;
    default:
      return false;
  }
}

Status check(const Inode& inode) {
  MDFS_FORMAT_REQUIRE(known_type(inode.mode) && (inode.mode & ~kModeBits) == 0, "inode.mode");
  MDFS_FORMAT_REQUIRE((inode.flags & ~kKnownFlags) == 0, "inode.flags");
  MDFS_FORMAT_REQUIRE(inode.flags == 0 || inode.is_regular(), "inode.flags");
  MDFS_FORMAT_REQUIRE(!(inode.is_image() && inode.is_inline()), "inode.flags");
  MDFS_FORMAT_REQUIRE(!inode.is_level() || inode.is_image(), "inode.flags");
  MDFS_FORMAT_REQUIRE(inode.size <= kMaxFileBytes, "inode.size");
  MDFS_FORMAT_REQUIRE(!inode.is_inline() || inode.size <= MDFS_MAX_INLINE, "inode.size");
  MDFS_FORMAT_REQUIRE(inode.stored_bytes <= kMaxFileBytes, "inode.stored-bytes");
  MDFS_FORMAT_REQUIRE(inode.is_directory() == (inode.parent != 0), "inode.parent");
  MDFS_FORMAT_REQUIRE(inode.is_directory() || inode.entries == 0, "inode.entries");
  MDFS_FORMAT_REQUIRE(inode.protection <= kMostLostDisks, "inode.protection");
  MDFS_FORMAT_REQUIRE((inode.protection == 0) == (inode.group_members == 0), "inode.protection");
  MDFS_FORMAT_REQUIRE(inode.group_members == 0 || geometry::is_parity_width(inode.group_members), "inode.protection");
  MDFS_FORMAT_REQUIRE(inode.protection == 0 || inode.is_regular() || inode.is_directory(), "inode.protection");
  MDFS_FORMAT_REQUIRE(inode.spare_disks <= MDFS_MAX_DISKS - 2, "inode.spare-disks");
  MDFS_FORMAT_REQUIRE(inode.spare_disks == 0 || inode.is_directory(), "inode.spare-disks");
  return {};
}

}  // namespace

bool Inode::is_directory() const { return S_ISDIR(mode); }
bool Inode::is_regular() const { return S_ISREG(mode); }
bool Inode::is_symlink() const { return S_ISLNK(mode); }

ByteVector encode(const Inode& inode) {
  ByteVector out(sizeof(mdfs_inode));
  MDFS_PUT(out, 0, mdfs_inode, mode, inode.mode);
  MDFS_PUT(out, 0, mdfs_inode, links, inode.links);
  MDFS_PUT(out, 0, mdfs_inode, uid, inode.uid);
  MDFS_PUT(out, 0, mdfs_inode, gid, inode.gid);
  MDFS_PUT(out, 0, mdfs_inode, size, inode.size);
  MDFS_PUT(out, 0, mdfs_inode, stored_bytes, inode.stored_bytes);
  MDFS_PUT(out, 0, mdfs_inode, atime_ns, inode.atime_ns);
  MDFS_PUT(out, 0, mdfs_inode, mtime_ns, inode.mtime_ns);
  MDFS_PUT(out, 0, mdfs_inode, ctime_ns, inode.ctime_ns);
  MDFS_PUT(out, 0, mdfs_inode, btime_ns, inode.btime_ns);
  MDFS_PUT(out, 0, mdfs_inode, device, inode.device);
  MDFS_PUT(out, 0, mdfs_inode, flags, inode.flags);
  MDFS_PUT(out, 0, mdfs_inode, parent, inode.parent);
  MDFS_PUT(out, 0, mdfs_inode, base, inode.base);
  MDFS_PUT(out, 0, mdfs_inode, placement, inode.placement);
  MDFS_PUT(out, 0, mdfs_inode, data_generation, inode.data_generation);
  MDFS_PUT(out, 0, mdfs_inode, entries, inode.entries);
  put_bytes(out, offsetof(mdfs_inode, reserved), inode.reserved);
  MDFS_PUT(out, 0, mdfs_inode, reach, inode.reach);
  MDFS_PUT(out, 0, mdfs_inode, protection, inode.protection);
  MDFS_PUT(out, 0, mdfs_inode, group_members, inode.group_members);
  MDFS_PUT(out, 0, mdfs_inode, spare_disks, inode.spare_disks);
  return out;
}

Result<Inode> decode_inode(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_inode), "inode.length");
  Inode inode;
  inode.mode = MDFS_GET(value, 0, mdfs_inode, mode);
  inode.links = MDFS_GET(value, 0, mdfs_inode, links);
  inode.uid = MDFS_GET(value, 0, mdfs_inode, uid);
  inode.gid = MDFS_GET(value, 0, mdfs_inode, gid);
  inode.size = MDFS_GET(value, 0, mdfs_inode, size);
  inode.stored_bytes = MDFS_GET(value, 0, mdfs_inode, stored_bytes);
  inode.atime_ns = MDFS_GET(value, 0, mdfs_inode, atime_ns);
  inode.mtime_ns = MDFS_GET(value, 0, mdfs_inode, mtime_ns);
  inode.ctime_ns = MDFS_GET(value, 0, mdfs_inode, ctime_ns);
  inode.btime_ns = MDFS_GET(value, 0, mdfs_inode, btime_ns);
  inode.device = MDFS_GET(value, 0, mdfs_inode, device);
  inode.flags = MDFS_GET(value, 0, mdfs_inode, flags);
  inode.parent = MDFS_GET(value, 0, mdfs_inode, parent);
  inode.base = MDFS_GET(value, 0, mdfs_inode, base);
  inode.placement = MDFS_GET(value, 0, mdfs_inode, placement);
  inode.data_generation = MDFS_GET(value, 0, mdfs_inode, data_generation);
  inode.entries = MDFS_GET(value, 0, mdfs_inode, entries);
  get_bytes(value, offsetof(mdfs_inode, reserved), inode.reserved);
  inode.reach = MDFS_GET(value, 0, mdfs_inode, reach);
  inode.protection = MDFS_GET(value, 0, mdfs_inode, protection);
  inode.group_members = MDFS_GET(value, 0, mdfs_inode, group_members);
  inode.spare_disks = MDFS_GET(value, 0, mdfs_inode, spare_disks);
  MDFS_TRY(check(inode));
  return inode;
}

Result<std::string> decode_symlink(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(!value.empty() && value.size() <= MDFS_MAX_SYMLINK, "symlink.length");
  const std::string_view text = as_text(value);
  MDFS_FORMAT_REQUIRE(text.find('\0') == std::string_view::npos, "symlink.nul");
  return std::string(text);
}

Status check_inline(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() <= MDFS_MAX_INLINE, "inline.length");
  return {};
}

}  // namespace mdfs::format
