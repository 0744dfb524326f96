// Reads pieces of data in the order of the disks, and compares them with their checksums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/background_pace.h"
#include "base/result.h"
#include "format/operation.h"
#include "store/members.h"
#include "volume/piece_collector.h"

namespace mdfs::maintenance {

using volume::PieceCollector;
using volume::StoredPiece;

// Reads pieces, on all disks at once, each disk from its beginning to its end. One thread.
class PieceReader {
 public:
  static constexpr std::size_t kReadBytes = kScrubReadBytes;

  PieceReader(store::Members& members, std::uint32_t block_size, PieceCollector& collector)
      : members_(members), block_size_(block_size), collector_(collector) {}

  // Takes the pieces and sorts them. Leaves out pieces on stale disks. Pieces on missing disks, or without a valid
  // place, are noted in the record.
  void begin(std::vector<StoredPiece> pieces, format::OperationRecord& record);
  bool done() const;
  void forget();
  // Writes a damaged piece anew from the other one, or makes an extent a hole that can be built again. False: it
  // cannot.
  using Repair = std::function<bool(const StoredPiece&)>;
  // Reads about kReadBytes of each disk and counts the results in the record. Returns the bytes read.
  std::uint64_t step(format::OperationRecord& record, const Repair& repair);

 private:
  struct Disk {
    std::vector<std::uint32_t> order;  // of the pieces that begin on it
    std::size_t next = 0;
  };
  // A part of a disk that is read at once, with its pieces.
  struct Span {
    unsigned disk = 0;
    std::uint64_t start = 0, end = 0;  // bytes
    std::size_t first = 0, last = 0;   // in Disk::order
    bool together = true;              // else one large or divided piece, read by itself
  };
  // kLost: on a disk that is missing or has failed; kLeftOut: on a stale one.
  enum class Where : std::uint8_t { kHere, kLost, kLeftOut, kNowhere };
  static bool is_there(const format::Runs& runs, const std::vector<store::DiskInfo>& disks);
  // All that the bytes can be made from.
  static bool are_others_there(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks);
  static void note_lost(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks,
                        format::OperationRecord& record);
  static Where place_of(const StoredPiece& piece, const std::vector<store::DiskInfo>& disks);
  std::uint64_t first_byte(const StoredPiece& piece) const;
  std::uint64_t end_byte(const StoredPiece& piece) const;
  Span next_span(unsigned disk) const;
  Status check_alone(const StoredPiece& piece);
  void judge(const StoredPiece& piece, Status status, format::OperationRecord& record, const Repair& repair);

  store::Members& members_;
  const std::uint32_t block_size_;
  PieceCollector& collector_;
  std::vector<StoredPiece> pieces_;
  std::vector<Disk> disks_;
};

}  // namespace mdfs::maintenance
