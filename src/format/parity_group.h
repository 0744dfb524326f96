// Parity groups: several extents of a page, and a parity from which any one of them can be made again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/extents.h"
#include "geometry/parity_box.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// Members and leavers of one group.
inline constexpr unsigned kMostGroupPieces = geometry::kMostParityWidth;

// One group, with several members or with leavers. All pieces are contiguous.
struct ParityGroup {
  std::uint64_t members = 0;          // bit i: the extent at place i of the page; one at least
  ExtentRecord parity;                // `written` is its birth
  std::vector<ExtentRecord> leavers;  // without checksums

  bool operator==(const ParityGroup&) const = default;
  bool has(unsigned place) const { return place < kMaxPlaces && (members >> place & 1) != 0; }
  unsigned lowest() const;
  // Of the item.
  std::size_t encoded_bytes(const ExtentTableShape& shape) const;
  // The parity, with all members and leavers as its other pieces. Absent: a member has no record, or is scattered,
  // which is damage.
  std::optional<StoredExtent> stored_parity(const ExtentPage& page, std::uint32_t block_size) const;
  // The other pieces of a member. Empty: as above.
  OtherPieces others_of(unsigned place, const ExtentPage& page, std::uint32_t block_size) const;
  // The runs of the parity and the leavers, which belong to no extent.
  std::vector<Run> own_runs(std::uint32_t block_size) const;
};

// Appends the group to the item.
void encode(const ParityGroup& group, const ExtentTableShape& shape, ByteVector& out);
// A group at the beginning of the bytes, which are then behind it. Checks: copies.length, copies.group (members within
// the page, at most kMostGroupPieces with the leavers), copies.parity (a disk below 64, a generation, stored bytes in
// range; padding zero).
Result<ParityGroup> decode_group(ConstBytes& bytes, const ExtentTableShape& shape);

// Adds bytes to a parity, or to what it is to make again. `bytes` are not more than `sum` has (abort).
void add_to_parity(MutableBytes sum, ConstBytes bytes);

}  // namespace mdfs::format
