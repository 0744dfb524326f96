// The item beside a page of records: second copies of extents, and parity groups of several extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/result.h"
#include "format/extents.h"
#include "format/kept.h"
#include "format/key.h"
#include "format/parity_group.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_parity of a group of one extent. Its checksums are those of the extent's record.
struct ExtentCopy {
  std::uint64_t address = 0;  // packed; MDFS_SCATTERED: see the runs item
  std::uint64_t birth = 0;    // generation of the blocks
  std::uint32_t stored_bytes = 0;

  bool operator==(const ExtentCopy&) const = default;
  bool is_scattered() const { return address == MDFS_SCATTERED; }
  // Of an extent with a copy (else abort). The runs of a scattered copy also need their own item.
  static ExtentCopy of(const StoredExtent& extent);
};

// The copies and the parity groups of the extents of one page. An extent has a copy, or it is in one group, or neither.
// A value; no thread contract.
class CopyPage {
 public:
  bool empty() const { return copies_.empty() && groups_.empty(); }
  unsigned count() const { return static_cast<unsigned>(copies_.size() + groups_.size()); }
  // The copies by place.
  const std::map<unsigned, ExtentCopy>& copies() const { return copies_; }
  std::optional<ExtentCopy> get(unsigned place) const;
  // Inserts or replaces. Aborts unless the place is below kMaxPlaces and in no group, and the birth and the bytes are
  // not 0.
  void set(unsigned place, const ExtentCopy& copy);
  // Nothing happens if the extent at this place has no copy.
  void erase(unsigned place) { copies_.erase(place); }

  // The groups of several, by their lowest places.
  const std::vector<ParityGroup>& groups() const { return groups_; }
  // The group of the extent at this place; null: it is in none. Until the next change.
  const ParityGroup* group_of(unsigned place) const;
  // Aborts unless the group has members, none of which has a copy or is in another group.
  void add_group(ParityGroup group);
  // Nothing happens if the extent at this place is in no group.
  void erase_group(unsigned place);
  // The extent is no member any more; what it was stays a piece of the group, which must have another member (else
  // abort).
  void leave_group(unsigned place, ExtentRecord as_it_was);

  // Bytes of the value.
  std::size_t encoded_bytes(const ExtentTableShape& shape) const;
  // The value of the item. An empty page has none (abort): erase the item.
  ByteVector encode(const ExtentTableShape& shape) const;
  // Checks: copies.length, copies.checksum-type and copies.parities (several: kNewerFormat), copies.group (one group at
  // least, in order of their lowest members, within the page, no extent in two), copies.copy (a disk below 64, a
  // generation, stored bytes in range), and those of decode_group().
  static Result<CopyPage> decode(ConstBytes value, const ExtentTableShape& shape);

  bool operator==(const CopyPage&) const = default;

 private:
  Kept<sizeof(mdfs_group_page::reserved)> reserved_{};
  std::map<unsigned, ExtentCopy> copies_;
  std::vector<ParityGroup> groups_;
};

// The key of the copies of a page of records, and that of the runs of a scattered copy.
Key copies_key(const Key& page);
Key copy_runs_key(const Key& page, unsigned place);

// Adds the copy of the extent at a place, if it has one. Items as in read_extent(). False: the runs of a scattered copy
// are missing, or the copy is of other bytes; or the extent has been replaced since the page was read.
template <typename Items>
Result<bool> read_copy(Items& items, const Key& key, const CopyPage& page, unsigned place, std::uint32_t block_size,
                       StoredExtent& extent) {
  const std::optional<ExtentCopy> copy = page.get(place);
  if (!copy || !extent.is_stored()) return true;
  if (copy->stored_bytes != extent.stored_bytes) return false;
  extent.copy_birth = copy->birth;
  const std::uint64_t blocks = ceil_div(copy->stored_bytes, block_size);
  extent.copy_has_runs_item = copy->is_scattered();
  if (!extent.copy_has_runs_item) {
    extent.copy = {run_at(copy->address, copy->stored_bytes, block_size)};
    return true;
  }
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> runs, items.get(copy_runs_key(key, place)));
  if (!runs) return false;
  MDFS_TRY_ASSIGN(extent.copy, decode_extent_runs(*runs, blocks));
  return true;
}

// read_extent() with the copy, or the other pieces of the group. `copies` may be null: none of the page has any.
template <typename Items>
Result<std::optional<StoredExtent>> read_pieces(Items& items, const Key& key, const ExtentPage& page,
                                                const CopyPage* copies, unsigned place, std::uint32_t block_size) {
  MDFS_TRY_ASSIGN(std::optional<StoredExtent> extent, read_extent(items, key, page, place, block_size));
  if (!extent || copies == nullptr) return extent;
  if (const ParityGroup* const group = copies->group_of(place); group != nullptr && extent->is_stored()) {
    extent->others = group->others_of(place, page, block_size);
    return extent;
  }
  MDFS_TRY_ASSIGN(const bool found, read_copy(items, key, *copies, place, block_size, *extent));
  return found ? extent : std::optional<StoredExtent>();
}

}  // namespace mdfs::format
