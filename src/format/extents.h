// Extent tables: pages of records, and the runs of extents that lie scattered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/result.h"
#include "format/kept.h"
#include "format/key.h"
#include "format/pointer.h"
#include "format/run.h"
#include "format/stored_extent.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

inline constexpr unsigned kMaxPlaces = 64;
// A zstd frame of MDFS_MAX_EXTENT bytes that do not shrink stays well below this.
inline constexpr std::uint32_t kMaxStoredBytes = 2 * MDFS_MAX_EXTENT;

// The blocks of stored bytes that lie in one run from a packed address on.
Run run_at(std::uint64_t address, std::uint64_t stored_bytes, std::uint32_t block_size);

// The common properties of all records of an image.
struct ExtentTableShape {
  std::uint8_t codec = MDFS_CODEC_ZSTD;
  std::uint32_t extent_bytes = 0;  // decoded

  bool operator==(const ExtentTableShape&) const = default;
  // Checksums of a record. zstd: 1; raw: one for each sub-block of MDFS_SUB_BLOCK bytes.
  unsigned checksums() const;
  // Bytes of an encoded record.
  std::uint16_t record_bytes() const;
  // Places of a page: those of geometry::page_box for records of this size.
  unsigned places() const;
};

// mdfs_extent_record.
struct ExtentRecord {
  std::uint64_t address = 0;  // packed; MDFS_SCATTERED: see the runs item
  std::uint64_t birth = 0;    // generation of the blocks
  std::uint64_t written = 0;  // generation of the contents; a move keeps it; at most `birth`
  std::uint32_t stored_bytes = 0;
  Checksums crc32c;  // checksums() of the shape

  bool operator==(const ExtentRecord&) const = default;
  bool is_scattered() const { return address == MDFS_SCATTERED; }
  // The stored bytes. A scattered extent has no runs here; read_extent() adds the runs. block_size in bytes.
  StoredExtent stored(const ExtentTableShape& shape, std::uint32_t block_size) const;
  // The record of stored bytes. The runs of a scattered extent also need their own item.
  static ExtentRecord of(const StoredExtent& extent);
};

// One page of records: at most shape.places() of them, each at its place. Kept in its encoded form, so that a cached
// page takes as many bytes as on the disk. A value; no thread contract.
class ExtentPage {
 public:
  explicit ExtentPage(const ExtentTableShape& shape) : shape_(shape) {}

  const ExtentTableShape& shape() const { return shape_; }
  bool empty() const { return present_ == 0; }
  unsigned count() const;
  bool has(unsigned place) const { return place < kMaxPlaces && ((present_ >> place) & 1) != 0; }

  // The record at a place; absent: a hole.
  std::optional<ExtentRecord> get(unsigned place) const;
  // Where the extent at a place lies. Absent: it is a hole, or scattered.
  std::optional<GroupPiece> piece(unsigned place, std::uint32_t block_size) const;
  // Inserts or replaces. Aborts unless the place is below shape().places(), the record has shape().checksums(), and its
  // generations are valid.
  void set(unsigned place, const ExtentRecord& record);
  // Makes the extent at this place a hole; nothing happens if it is one.
  void erase(unsigned place);

  // The value of the page's item. An empty page has none (abort): erase the item.
  ByteVector encode() const;
  // Checks: extents.length, extents.checksum-type (another than CRC-32C: kNewerFormat), extents.record-bytes,
  // extents.present (count, places within the box), extents.record (generations, stored bytes in range: exactly the
  // extent for raw; a disk below 64; padding zero).
  static Result<ExtentPage> decode(ConstBytes value, const ExtentTableShape& shape);

  bool operator==(const ExtentPage&) const = default;

 private:
  std::size_t offset_of(unsigned place) const;  // in records_, of a present place or where it would go

  ExtentTableShape shape_;
  std::uint64_t present_ = 0;
  Kept<sizeof(mdfs_extent_page::reserved)> reserved_{};
  ByteVector records_;
};

// Largest number of runs in one item.
inline constexpr std::size_t kMaxExtentRuns = MDFS_MAX_ITEM / sizeof(mdfs_extent_run);
// The value of the item with the runs of a scattered extent, in order of its bytes: 1 to kMaxExtentRuns runs, none
// empty (else abort).
ByteVector encode_extent_runs(const Runs& runs);
// Checks: extent-runs.length (whole runs, one at least), extent-runs.run (no empty run, a disk below 64),
// extent-runs.blocks (their sum is `blocks`).
Result<Runs> decode_extent_runs(ConstBytes value, std::uint64_t blocks);
// The key of that item, for the extent at a place of the page with the key `page`.
Key extent_runs_key(const Key& page, unsigned place);

// The stored bytes of the extent at a place of a page, without its copy (extent_copies.h); without a record is_stored()
// is false. The runs of a scattered extent come from `items`, which has get(const Key&), as store::Items and
// store::Transaction do. Absent: that item is missing, or the extent has been replaced since the page was read.
template <typename Items>
Result<std::optional<StoredExtent>> read_extent(Items& items, const Key& key, const ExtentPage& page, unsigned place,
                                                std::uint32_t block_size) {
  const std::optional<ExtentRecord> record = page.get(place);
  if (!record) return std::optional(StoredExtent());
  StoredExtent extent = record->stored(page.shape(), block_size);
  if (!extent.has_runs_item) return std::optional(std::move(extent));
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> runs, items.get(extent_runs_key(key, place)));
  if (!runs) return std::optional<StoredExtent>();
  MDFS_TRY_ASSIGN(extent.runs, decode_extent_runs(*runs, ceil_div(extent.stored_bytes, block_size)));
  return std::optional(std::move(extent));
}

}  // namespace mdfs::format
