// Second copies of extents.
// SPDX-License-Identifier: Apache-2.0
#include "format/extent_copies.h"

#include <bit>

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
  MDFS_CHECK(place < kMaxPlaces && copy.birth != 0 && copy.stored_bytes != 0);
  copies_[place] = copy;
}

ByteVector CopyPage::encode() const {
  MDFS_CHECK(!empty());
  ByteVector out(sizeof(mdfs_group_page) + copies_.size() * kGroupBytes);
  MDFS_PUT(out, 0, mdfs_group_page, count, static_cast<std::uint16_t>(copies_.size()));
  MDFS_PUT(out, 0, mdfs_group_page, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  put_bytes(out, offsetof(mdfs_group_page, reserved), reserved_);
  std::size_t base = sizeof(mdfs_group_page);
  for (const auto& [place, copy] : copies_) {
    MDFS_PUT(out, base, mdfs_group, members, std::uint64_t{1} << place);
    MDFS_PUT(out, base, mdfs_group, parity_count, std::uint8_t{1});
    const std::size_t parity = base + sizeof(mdfs_group);
    MDFS_PUT(out, parity, mdfs_parity, address, copy.address);
    MDFS_PUT(out, parity, mdfs_parity, birth, copy.birth);
    MDFS_PUT(out, parity, mdfs_parity, stored_bytes, copy.stored_bytes);
    base += kGroupBytes;
  }
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
  std::uint64_t before = 0;  // members of the group before
  for (std::size_t i = 0, base = sizeof(mdfs_group_page); i < count; ++i, base += kGroupBytes) {
    MDFS_FORMAT_REQUIRE(value.size() >= base + sizeof(mdfs_group), "copies.length");
    const auto members = MDFS_GET(value, base, mdfs_group, members);
    if (std::popcount(members) > 1 || MDFS_GET(value, base, mdfs_group, parity_count) > 1)
      return {Errc::kNewerFormat, "copies.group-of-many"};
    MDFS_FORMAT_REQUIRE(members > before && MDFS_GET(value, base, mdfs_group, parity_count) == 1, "copies.group");
    MDFS_FORMAT_REQUIRE(static_cast<unsigned>(std::bit_width(members)) <= shape.places(), "copies.group");
    MDFS_FORMAT_REQUIRE(value.size() >= base + kGroupBytes, "copies.length");
    before = members;
    const std::size_t parity = base + sizeof(mdfs_group);
    const ExtentCopy copy{MDFS_GET(value, parity, mdfs_parity, address), MDFS_GET(value, parity, mdfs_parity, birth),
                          MDFS_GET(value, parity, mdfs_parity, stored_bytes)};
    MDFS_FORMAT_REQUIRE(copy.is_scattered() || Address::unpack(copy.address).disk < MDFS_MAX_DISKS, "copies.copy");
    MDFS_FORMAT_REQUIRE(copy.birth != 0, "copies.copy");
    MDFS_FORMAT_REQUIRE(copy.stored_bytes >= 1 && copy.stored_bytes <= kMaxStoredBytes, "copies.copy");
    page.copies_.emplace(static_cast<unsigned>(std::countr_zero(members)), copy);
  }
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_group_page) + count * kGroupBytes, "copies.length");
  return page;
}

Key copies_key(const Key& page) { return {page.object, MDFS_KIND_PARITY, page.offset}; }

Key copy_runs_key(const Key& page, unsigned place) {
  return {page.object, MDFS_KIND_PARITY_RUNS, page.offset * kMaxPlaces + place};
}

}  // namespace mdfs::format
