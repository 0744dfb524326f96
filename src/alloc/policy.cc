// The table of allocation policies.
// SPDX-License-Identifier: Apache-2.0
#include "alloc/policy.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "mdfs/ondisk.h"

namespace mdfs::alloc {
namespace {

using enum geometry::AllocationPolicy;

std::uint64_t begin_scattered(const NewGroup& group) { return group.map.draw_zone(group.random.next()); }

std::uint64_t begin_first(const NewGroup& group) { return group.map.first_zone(group.blocks); }

std::uint64_t begin_near(const NewGroup& group) {
  const BlockRange data = group.map.data_range();
  for (const std::uint64_t block : {group.near_block, group.last_stored})
    if (block >= data.begin && block < data.end) return block;
  return data.begin;
}

constexpr PolicyInfo kTable[] = {
    {kDefault, "default", "what the mount says, else the volume, else scatter", false, false, begin_scattered},
    {kScatter, "scatter", "in a zone drawn over the whole disk, by free space", true, false, begin_scattered},
    {kFirst, "first", "in the lowest zone with room", true, true, begin_first},
    {kNear, "near", "behind the object's last group, else behind what was stored last", true, false, begin_near},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  return std::size(kTable) == geometry::kAllocationPolicies;
}
static_assert(in_order());
static_assert(static_cast<unsigned>(kDefault) == MDFS_POLICY_DEFAULT);
static_assert(static_cast<unsigned>(kScatter) == MDFS_POLICY_SCATTER);
static_assert(static_cast<unsigned>(kFirst) == MDFS_POLICY_FIRST);
static_assert(static_cast<unsigned>(kNear) == MDFS_POLICY_NEAR);

}  // namespace

std::uint64_t SplitMix::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::span<const PolicyInfo> policy_table() { return kTable; }

const PolicyInfo& info(AllocationPolicy id) {
  MDFS_CHECK(static_cast<std::size_t>(id) < std::size(kTable));
  return kTable[static_cast<std::size_t>(id)];
}

std::string_view name(AllocationPolicy id) { return info(id).name; }

Result<AllocationPolicy> parse_policy(std::string_view name) {
  for (const PolicyInfo& row : kTable)
    if (row.offered && row.name == name) return row.id;
  return Error{Errc::kInvalidArgument,
               fmt::format("allocation policy '{}' is unknown: must be {}", printable(name), policy_names())};
}

namespace {

std::string listed(std::string_view between, std::string_view before_last) {
  std::string list;
  std::size_t left = 0;
  for (const PolicyInfo& row : kTable) left += row.offered ? 1 : 0;
  for (const PolicyInfo& row : kTable) {
    if (!row.offered) continue;
    list += row.name;
    if (--left > 0) list += left == 1 ? before_last : between;
  }
  return list;
}

}  // namespace

std::string policy_names() { return listed(", ", " or "); }
std::string policy_list() { return listed(",", ","); }

}  // namespace mdfs::alloc
