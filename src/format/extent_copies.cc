// Second copies of extents.
// SPDX-License-Identifier: Apache-2.0
#include "format/extent_copies.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

constexpr std::size_t kGroupBytes = sizeof(mdfs_group) + sizeof(mdfs_parity);  // of one extent with one copy

}  // namespace

ExtentCopy ExtentCopy::of(const StoredExtent& extent) {
  MDFS_CHECK(extent.has_copy());
  const std::uint64_t address = extent.copy.size() == 1 ? extent.copy.front().address().packed() : MDFS_SCATTERED;
  return {address, extent.copy_birth, extent.stored_bytes};
}

std::optional<ExtentCopy> CopyPage::get(unsigned place) const {
  const auto found = copies_.find(place);
  return found == copies_.end() ? std::nullopt : std::optional(found->second);
}

void CopyPage::set(unsigned place, const ExtentCopy& copy) {
  MDFS_CHECK(place < kMaxPlaces && copy.birth != 0 && copy.stored_bytes != 0 && group_of(place) == nullptr);
  copies_[place] = copy;
}

const ParityGroup* CopyPage::group_of(unsigned place) const {
  const auto found =
      std::find_if(groups_.begin(), groups_.end(), [&](const ParityGroup& group) { return group.has(place); });
  return found == groups_.end() ? nullptr : &*found;
}

void CopyPage::add_group(ParityGroup group) {
  MDFS_CHECK(group.members != 0);
  for (unsigned place = 0; place < kMaxPlaces; ++place)
    MDFS_CHECK(!group.has(place) || (group_of(place) == nullptr && !copies_.contains(place)));
  const auto behind = std::find_if(groups_.begin(), groups_.end(),
                                   [&](const ParityGroup& one) { return one.lowest() > group.lowest(); });
  groups_.insert(behind, std::move(group));
}

void CopyPage::erase_group(unsigned place) {
  std::erase_if(groups_, [&](const ParityGroup& group) { return group.has(place); });
}

void CopyPage::leave_group(unsigned place, ExtentRecord as_it_was) {
  const ParityGroup* const found = group_of(place);
  MDFS_CHECK(found != nullptr && !as_it_was.is_scattered());
  ParityGroup group = *found;
  erase_group(place);
  group.members &= ~(std::uint64_t{1} << place);
  as_it_was.crc32c = {};
  as_it_was.written = as_it_was.birth;
  group.leavers.push_back(std::move(as_it_was));
  add_group(std::move(group));
}

std::size_t CopyPage::encoded_bytes(const ExtentTableShape& shape) const {
  std::size_t bytes = sizeof(mdfs_group_page) + copies_.size() * kGroupBytes;
  for (const ParityGroup& group : groups_) bytes += group.encoded_bytes(shape);
  return bytes;
}

ByteVector CopyPage::encode(const ExtentTableShape& shape) const {
  MDFS_CHECK(!empty());
  ByteVector out(sizeof(mdfs_group_page));
  out.reserve(encoded_bytes(shape));
  MDFS_PUT(out, 0, mdfs_group_page, count, static_cast<std::uint16_t>(count()));
  MDFS_PUT(out, 0, mdfs_group_page, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  put_bytes(out, offsetof(mdfs_group_page, reserved), reserved_);
  auto group = groups_.begin();
  for (const auto& [place, copy] : copies_) {
    for (; group != groups_.end() && group->lowest() < place; ++group) format::encode(*group, shape, out);
    const std::size_t base = out.size();
    out.resize(base + kGroupBytes);
    MDFS_PUT(out, base, mdfs_group, members, std::uint64_t{1} << place);
    MDFS_PUT(out, base, mdfs_group, parity_count, std::uint8_t{1});
    const std::size_t parity = base + sizeof(mdfs_group);
    MDFS_PUT(out, parity, mdfs_parity, address, copy.address);
    MDFS_PUT(out, parity, mdfs_parity, birth, copy.birth);
    MDFS_PUT(out, parity, mdfs_parity, stored_bytes, copy.stored_bytes);
  }
  for (; group != groups_.end(); ++group) format::encode(*group, shape, out);
  return out;
}

Result<CopyPage> CopyPage::decode(ConstBytes value, const ExtentTableShape& shape) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_group_page), "copies.length");
  if (MDFS_GET(value, 0, mdfs_group_page, checksum_type) != MDFS_CHECKSUM_CRC32C)
    return {Errc::kNewerFormat, "copies.checksum-type"};
  CopyPage page;
  get_bytes(value, offsetof(mdfs_group_page, reserved), page.reserved_);
  const std::size_t count = MDFS_GET(value, 0, mdfs_group_page, count);
  MDFS_FORMAT_REQUIRE(count >= 1 && count <= shape.places(), "copies.group");
  std::uint64_t seen = 0;  // members of the groups before
  int lowest = -1;         // of the group before
  ConstBytes rest = value.subspan(sizeof(mdfs_group_page));
  for (std::size_t i = 0; i < count; ++i) {
    MDFS_FORMAT_REQUIRE(rest.size() >= kGroupBytes, "copies.length");
    const auto members = MDFS_GET(rest, 0, mdfs_group, members);
    if (MDFS_GET(rest, 0, mdfs_group, parity_count) > 1) return {Errc::kNewerFormat, "copies.parities"};
    MDFS_FORMAT_REQUIRE(MDFS_GET(rest, 0, mdfs_group, parity_count) == 1, "copies.group");
    MDFS_FORMAT_REQUIRE((members & seen) == 0 && std::countr_zero(members) > lowest, "copies.group");
    MDFS_FORMAT_REQUIRE(static_cast<unsigned>(std::bit_width(members)) <= shape.places(), "copies.group");
    seen |= members;
    lowest = std::countr_zero(members);
    if (std::popcount(members) > 1 || MDFS_GET(rest, 0, mdfs_group, leaver_count) > 0) {
      MDFS_TRY_ASSIGN(ParityGroup group, decode_group(rest, shape));
      page.groups_.push_back(std::move(group));
      continue;
    }
    const std::size_t parity = sizeof(mdfs_group);
    const ExtentCopy copy{MDFS_GET(rest, parity, mdfs_parity, address), MDFS_GET(rest, parity, mdfs_parity, birth),
                          MDFS_GET(rest, parity, mdfs_parity, stored_bytes)};
    MDFS_FORMAT_REQUIRE(members != 0, "copies.group");
    MDFS_FORMAT_REQUIRE(copy.is_scattered() || Address::unpack(copy.address).disk < MDFS_MAX_DISKS, "copies.copy");
    MDFS_FORMAT_REQUIRE(copy.birth != 0, "copies.copy");
    MDFS_FORMAT_REQUIRE(copy.stored_bytes >= 1 && copy.stored_bytes <= kMaxStoredBytes, "copies.copy");
    page.copies_.emplace(static_cast<unsigned>(lowest), copy);
    rest = rest.subspan(kGroupBytes);
  }
  MDFS_FORMAT_REQUIRE(rest.empty(), "copies.length");
  return page;
}

Key copies_key(const Key& page) { return {page.object, MDFS_KIND_PARITY, page.offset}; }

Key copy_runs_key(const Key& page, unsigned place) {
  return {page.object, MDFS_KIND_PARITY_RUNS, page.offset * kMaxPlaces + place};
}

}  // namespace mdfs::format
