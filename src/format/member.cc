// Members of a volume.
// SPDX-License-Identifier: Apache-2.0
#include "format/member.h"

#include <algorithm>
#include <set>

#include "format/fields.h"
#include "format/pointer.h"

namespace mdfs::format {

std::size_t count_disks(const std::vector<Member>& members) {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [](const Member& member) { return !member.is_hole(); }));
}

std::uint64_t counted_disks(const std::vector<Member>& members) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!members[i].is_hole() && !members[i].is_out()) bits |= disk_bit(static_cast<unsigned>(i));
  return bits;
}

void encode(const Member& member, MutableBytes out, std::size_t base) {
  put_uuid(out, base + offsetof(mdfs_member, uuid), member.uuid);
  MDFS_PUT(out, base, mdfs_member, blocks, member.blocks);
  MDFS_PUT(out, base, mdfs_member, weight, member.weight);
  MDFS_PUT(out, base, mdfs_member, flags, member.flags);
  MDFS_PUT(out, base, mdfs_member, marks, member.marks);
}

Member decode_member(ConstBytes bytes, std::size_t base) {
  return {get_uuid(bytes, base + offsetof(mdfs_member, uuid)), MDFS_GET(bytes, base, mdfs_member, blocks),
          MDFS_GET(bytes, base, mdfs_member, weight), MDFS_GET(bytes, base, mdfs_member, flags),
          MDFS_GET(bytes, base, mdfs_member, marks)};
}

Status check_members(const std::vector<Member>& members, const char* check) {
  std::set<Uuid> seen;
  bool take_data = false;
  for (const Member& member : members) {
    if ((member.flags & ~kKnownMemberFlags) != 0) return Error{Errc::kNewerFormat, check};
    if (member.is_hole()) {
      if (member != Member::hole()) return Error{Errc::kCorrupt, check};
      continue;
    }
    const bool named = !member.uuid.is_nil() && seen.insert(member.uuid).second;
    take_data = take_data || member.takes_data();
    if (!named || member.blocks < 1 || member.blocks > Address::kMaxBlock) return Error{Errc::kCorrupt, check};
  }
  if (!take_data) return Error{Errc::kCorrupt, check};
  return {};
}

}  // namespace mdfs::format
