// The data of all files and images as pieces on the disks, to be read in the order in which they lie there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "format/extents.h"
#include "format/operation.h"
#include "store/check/stored_data.h"
#include "store/store.h"
#include "store/verifier.h"

namespace mdfs::volume {

// An extent, or a run of blocks of a file, as the tree described it when it was asked.
struct StoredPiece : store::StoredData {
  std::uint64_t birth = 0;
  format::ExtentTableShape shape;      // of an extent
  std::optional<std::uint64_t> strip;  // offset of the item, where the bytes of the extent lie in a strip
};

// Takes pieces out of the tree in the order of its keys. One thread; other threads may change the tree meanwhile.
class PieceCollector {
 public:
  PieceCollector(store::Store& store, store::Verifier& verifier) : store_(store), verifier_(verifier) {}

  // Some more items from `next` on, which moves on; false when there are no more. Items that cannot be read are noted
  // in the record.
  bool collect(format::Key& next, std::vector<StoredPiece>& pieces, format::OperationRecord& record);
  // Does the tree still say so? Also if it cannot be asked.
  bool is_current(const StoredPiece& piece);

 private:
  void take(const std::vector<store::Item>& items, std::vector<StoredPiece>& pieces, format::OperationRecord& record);
  Result<std::optional<format::ExtentTableShape>> shape_of(std::uint64_t object);
  Status take_extents(const store::Item& item, std::vector<StoredPiece>& pieces);
  Status take_strip(const store::Item& item, std::vector<StoredPiece>& pieces);
  Status take_cell(const store::Item& item, std::vector<StoredPiece>& pieces) const;
  Result<std::optional<StoredPiece>> extent(const format::Key& key, unsigned place, const format::ExtentRecord& record,
                                            const format::ExtentTableShape& shape);

  store::Store& store_;
  store::Verifier& verifier_;
  std::uint64_t shape_object_ = 0;  // whose shape is kept
  std::optional<format::ExtentTableShape> shape_;
};

// Reads pieces, all disks at once, each from its beginning to its end. One thread.
class PieceReader {
 public:
  static constexpr std::size_t kReadBytes = 1u << 20;

  PieceReader(store::Store& store, PieceCollector& collector) : store_(store), collector_(collector) {}

  // Takes the pieces over and sorts them. Those on stale disks are left out; those on disks that are missing, or that
  // lie nowhere, are noted in the record.
  void begin(std::vector<StoredPiece> pieces, format::OperationRecord& record);
  bool done() const;
  void forget();
  // About kReadBytes of each disk; what was read and found is counted in the record. Returns the bytes read.
  std::uint64_t step(format::OperationRecord& record);

 private:
  struct Disk {
    std::vector<std::uint32_t> order;  // of the pieces that begin on it
    std::size_t next = 0;
  };
  // A part of a disk that is read at once, and the pieces in it.
  struct Span {
    unsigned disk = 0;
    std::uint64_t start = 0, end = 0;  // bytes
    std::size_t first = 0, last = 0;   // in Disk::order
    bool together = true;              // else a piece too large or in several runs, read by itself
  };
  // kLost: on a disk that is missing or has failed; kLeftOut: on a stale one.
  enum class Where : std::uint8_t { kHere, kLost, kLeftOut, kNowhere };
  static void note_lost(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks,
                        format::OperationRecord& record);
  static Where place_of(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks);
  std::uint64_t first_byte(const StoredPiece& piece) const;
  std::uint64_t end_byte(const StoredPiece& piece) const;
  Span next_span(unsigned disk) const;
  Status check_alone(const StoredPiece& piece);
  void judge(const StoredPiece& piece, Status status, format::OperationRecord& record);

  store::Store& store_;
  PieceCollector& collector_;
  std::vector<StoredPiece> pieces_;
  std::vector<Disk> disks_;
};

}  // namespace mdfs::volume
