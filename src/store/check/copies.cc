// Copies of extents and their records.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/copies.h"

#include <fmt/format.h>

#include <algorithm>

namespace mdfs::store {
namespace {

using format::Key;

std::optional<format::ExtentPage> records_of(ItemLookup& items, const Key& key, const format::ExtentTableShape& shape) {
  const auto value = items.get(key);
  if (!value.ok() || !*value) return std::nullopt;
  auto page = format::ExtentPage::decode(**value, shape);
  return page.ok() ? std::optional(std::move(*page)) : std::nullopt;
}

std::optional<format::CopyPage> copies_of(ItemLookup& items, const Key& key, const format::ExtentTableShape& shape) {
  const auto value = items.get(key);
  if (!value.ok() || !*value) return std::nullopt;
  auto page = format::CopyPage::decode(**value, shape);
  return page.ok() ? std::optional(std::move(*page)) : std::nullopt;
}

void drop_piece(const CopyPageRef& ref, unsigned place, const std::string& where, FindingId id,
                const CopyChecks& checks) {
  checks.findings.add(id, where, {ref.key.object});
  const auto [edit, is_new] = checks.edits.items.try_emplace(ref.key, FixRecords());
  if (auto* const fix = std::get_if<FixRecords>(&edit->second)) {
    fix->shape = ref.shape;
    fix->erase.insert(place);
  }
}

// All members have records, and no two pieces lie on one disk.
void check_group(const CopyPageRef& ref, const Key& key, const std::optional<format::ExtentPage>& records,
                 const format::ParityGroup& group, const CopyChecks& checks) {
  const unsigned place = group.lowest();
  const std::string where = fmt::format("object {}, item {}, group of place {}", key.object, to_string(ref.key), place);
  auto parity = records ? group.stored_parity(*records, checks.block_size) : std::nullopt;
  if (!parity) return drop_piece(ref, place, where, FindingId::kCopyStray, checks);
  if (!checks.blocks.hold(parity->runs)) return;  // reported with the item
  for (const format::GroupPiece& piece : parity->others.pieces())
    if (!checks.blocks.hold({piece.run})) return;
  if (!parity->pieces_are_apart()) return drop_piece(ref, place, where, FindingId::kPiecesTogether, checks);
  if (!checks.on_data) return;
  checks.on_data({std::move(*parity), key.object, key.offset * format::kMaxPlaces + place, true, true});
}

}  // namespace

void check_copies(const std::vector<CopyPageRef>& pages, const CopyChecks& checks) {
  ItemLookup& items = checks.items;
  for (const CopyPageRef& ref : pages) {
    const Key key{ref.key.object, MDFS_KIND_EXTENTS, ref.key.offset};
    const auto copies = copies_of(items, ref.key, ref.shape);
    if (!copies) continue;
    const auto records = records_of(items, key, ref.shape);
    for (const format::ParityGroup& group : copies->groups()) check_group(ref, key, records, group, checks);
    for (const auto& [place, copy] : copies->copies()) {
      const std::string where = fmt::format("object {}, item {}, place {}", key.object, to_string(ref.key), place);
      const auto drop = [&, place = place, scattered = copy.is_scattered()](FindingId id) {
        drop_piece(ref, place, where, id, checks);
        if (scattered) checks.edits.items[format::copy_runs_key(key, place)] = EraseItem{};
      };
      if (!records || !records->has(place)) {
        drop(FindingId::kCopyStray);
        continue;
      }
      const auto extent = format::read_extent(items, key, *records, place, checks.block_size);
      if (!extent.ok() || !*extent || !(*extent)->is_stored()) continue;  // reported with the record
      StoredData data{**extent, key.object, key.offset * format::kMaxPlaces + place, true, true};
      const auto found = format::read_copy(items, key, *copies, place, checks.block_size, data);
      if (copy.stored_bytes != data.stored_bytes) drop(FindingId::kCopyStray);
      if (!found.ok() || !*found || !checks.blocks.hold(data.runs) || !checks.blocks.hold(data.copy)) continue;
      if (!data.pieces_are_apart()) {
        drop(FindingId::kPiecesTogether);
      } else if (checks.on_data) {
        static_cast<format::StoredExtent&>(data) = data.by_copy();
        checks.on_data(std::move(data));
      }
    }
  }
}

std::optional<format::StoredExtent> both_pieces(ItemLookup& items, const format::ExtentTableShape& shape,
                                                std::uint32_t block_size, const StoredData& data) {
  if (!data.is_extent) return std::nullopt;
  if (data.has_copy()) return data;
  const Key key{data.object, MDFS_KIND_EXTENTS, data.where / format::kMaxPlaces};
  const auto place = static_cast<unsigned>(data.where % format::kMaxPlaces);
  const auto copies = copies_of(items, format::copies_key(key), shape);
  const auto records = records_of(items, key, shape);
  if (!copies || !records) return std::nullopt;
  const auto both = format::read_pieces(items, key, *records, &*copies, place, block_size);
  if (!both.ok() || !*both || !(*both)->is_protected() || !((*both)->runs == data.runs)) return std::nullopt;
  return **both;
}

}  // namespace mdfs::store
