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

}  // namespace

Result<std::optional<ByteVector>> ItemLookup::get(const Key& key) {
  auto kept = std::find_if(leaves_.begin(), leaves_.end(),
                           [&](const Leaf& leaf) { return !(key < leaf.ref->lower) && !(leaf.ref->upper < key); });
  if (kept == leaves_.end()) {
    const auto ref = std::partition_point(tree_.leaves.begin(), tree_.leaves.end(),
                                          [&](const NodeRef& one) { return one.upper < key; });
    if (ref == tree_.leaves.end() || ref->lost) return std::optional<ByteVector>();
    std::vector<LoadedNode> loaded = loader_.load({&*ref, 1});
    if (leaves_.size() == kKept) leaves_.pop_back();
    leaves_.insert(leaves_.begin(), {&*ref, std::move(loaded.front().node)});
    kept = leaves_.begin();
  }
  std::rotate(leaves_.begin(), kept, kept + 1);
  if (!leaves_.front().node) return std::optional<ByteVector>();
  const std::vector<format::LeafItem>& list = leaves_.front().node->items;
  const auto item = std::lower_bound(list.begin(), list.end(), key,
                                     [](const format::LeafItem& one, const Key& wanted) { return one.key < wanted; });
  if (item == list.end() || item->key != key) return std::optional<ByteVector>();
  return std::optional(item->value);
}

void check_copies(const std::vector<CopyPageRef>& pages, ItemLookup& items, std::uint32_t block_size,
                  Findings& findings, Edits& edits, const DataVisitor& on_data) {
  for (const CopyPageRef& ref : pages) {
    const Key key{ref.key.object, MDFS_KIND_EXTENTS, ref.key.offset};
    const auto copies = copies_of(items, ref.key, ref.shape);
    if (!copies) continue;
    const auto records = records_of(items, key, ref.shape);
    for (const auto& [place, copy] : copies->copies()) {
      const std::string where = fmt::format("object {}, item {}, place {}", key.object, to_string(ref.key), place);
      const auto drop = [&, place = place, scattered = copy.is_scattered()](FindingId id) {
        findings.add(id, where, {key.object});
        const auto [edit, is_new] = edits.items.try_emplace(ref.key, FixRecords());
        if (auto* const fix = std::get_if<FixRecords>(&edit->second)) {
          fix->shape = ref.shape;
          fix->erase.insert(place);
        }
        if (scattered) edits.items[format::copy_runs_key(key, place)] = EraseItem{};
      };
      if (!records || !records->has(place)) {
        drop(FindingId::kCopyStray);
        continue;
      }
      const auto extent = format::read_extent(items, key, *records, place, block_size);
      if (!extent.ok() || !*extent || !(*extent)->is_stored()) continue;  // reported with the record
      StoredData data{**extent, key.object, key.offset * format::kMaxPlaces + place, true, true};
      const auto found = format::read_copy(items, key, *copies, place, block_size, data);
      if (copy.stored_bytes != data.stored_bytes) drop(FindingId::kCopyStray);
      if (!found.ok() || !*found) continue;
      if ((format::StoredExtent::disks_of(data.runs) & format::StoredExtent::disks_of(data.copy)) != 0) {
        drop(FindingId::kPiecesTogether);
      } else if (on_data) {
        static_cast<format::StoredExtent&>(data) = data.by_copy();
        on_data(std::move(data));
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
  if (!both.ok() || !*both || !(*both)->has_copy() || !((*both)->runs == data.runs)) return std::nullopt;
  return **both;
}

}  // namespace mdfs::store
