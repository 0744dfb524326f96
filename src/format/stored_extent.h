// The blocks of an extent's stored bytes, and their checksums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/small_vector.h"
#include "format/run.h"

namespace mdfs::format {

// Nearly all extents lie in one run, and have one checksum or a few.
using Runs = SmallVector<Run, 1>;
using PieceRuns = SmallVector<Run, 2>;  // of an extent with its copy
// A run that continues the last one becomes part of it.
void append_run(Runs& runs, const Run& run);
using Checksums = SmallVector<std::uint32_t, 4>;

// A piece of a parity group: another member, one that left it, or the parity.
struct GroupPiece {
  Run run;
  std::uint32_t stored_bytes = 0;
  bool operator==(const GroupPiece&) const = default;
};

// The other pieces of the group of an extent: the exclusive or of all of them, each continued by zeros, begins with its
// bytes. Empty: the extent is in no group of several. A value: copies share the list.
class OtherPieces {
 public:
  OtherPieces() = default;
  // `members`: places of the page, a bit each, the extent's own included.
  OtherPieces(std::uint64_t members, std::vector<GroupPiece> pieces)
      : pieces_(std::make_shared<const List>(members, std::move(pieces))) {}

  bool empty() const { return pieces_ == nullptr; }
  explicit operator bool() const { return !empty(); }
  const std::vector<GroupPiece>& pieces() const;
  std::uint64_t members() const { return empty() ? 0 : pieces_->first; }
  std::uint64_t disks() const;  // a bit each
  bool operator==(const OtherPieces& other) const;

 private:
  using List = std::pair<std::uint64_t, std::vector<GroupPiece>>;
  std::shared_ptr<const List> pieces_;
};

// Stored bytes of an extent, of its part in a strip, or of a run of a file's cell, as items of the tree describe them.
// The engine, the mover, the scrub and the checker read, verify, move and free stored bytes by this value. How an item
// names an address is known here in src/format only. The bytes with their copy, or with the other pieces of their
// group, are the pieces of a protected extent; no two of them have blocks on one disk. All extents of an image share a
// codec, which its geometry names. A value; pure.
struct StoredExtent {
  Runs runs;                       // in the order of the bytes; none: nothing is stored
  std::uint64_t birth = 0;         // generation of the blocks
  std::uint64_t written = 0;       // generation of the bytes; a move keeps it
  std::uint32_t stored_bytes = 0;  // bytes behind them, up to the end of the last block, have no meaning
  std::uint32_t part_bytes = 0;    // bytes under each checksum; the last part may be shorter
  Checksums crc32c;                // of each part
  bool has_runs_item = false;      // the tree has the runs in an item of their own, which goes with the extent
  Runs copy{};                     // of the second copy; none: the bytes have one copy
  std::uint64_t copy_birth = 0;    // generation of its blocks
  bool copy_has_runs_item = false;
  OtherPieces others{};  // of the parity group; then there is no copy

  bool operator==(const StoredExtent&) const = default;
  bool is_stored() const { return !runs.empty(); }
  bool is_contiguous() const { return runs.size() == 1; }
  // The first block, by which stored bytes are named and sorted. Needs is_stored().
  const Run& first() const { return runs.front(); }
  bool has_copy() const { return !copy.empty(); }
  // The bytes are elsewhere as well: in the copy, or in the other pieces of the group.
  bool is_protected() const { return has_copy() || !others.empty(); }
  // Of all pieces: the runs to free, count, hold or check. `runs` and `copy` are for reading and moving the bytes.
  PieceRuns all_runs() const;
  // All blocks that belong to the bytes, and those of one piece.
  std::uint64_t blocks() const;
  std::uint64_t piece_blocks() const { return blocks_of(runs); }
  static std::uint64_t blocks_of(const Runs& runs);
  // The same bytes by the other piece: `runs` and `copy` change places. Needs has_copy().
  StoredExtent by_copy() const;
  // Bit i: disk i has some of the blocks, or all. Disks from MDFS_MAX_DISKS on, which only damage can name, are left
  // out.
  std::uint64_t disks() const;
  // No two pieces have blocks on one disk.
  bool pieces_are_apart() const;
  // Those of the copy, or of the other pieces of the group: where these bytes may not lie.
  std::uint64_t other_disks() const { return disks_of(copy) | others.disks(); }
  static std::uint64_t disks_of(const Runs& runs);
  // Is this the number-th part?
  bool matches_part(std::size_t number, ConstBytes bytes) const;
  // Are these the stored bytes? Bytes behind stored_bytes are ignored.
  bool matches(ConstBytes bytes) const;
};

// Verifies stored bytes while they pass, piece by piece. The value must outlive this object.
class PassingBytes {
 public:
  explicit PassingBytes(const StoredExtent& extent) : extent_(extent) {}
  // The next bytes. Bytes behind stored_bytes are ignored.
  void take(ConstBytes bytes);
  // All stored bytes have passed and match.
  bool match() const { return match_ && done_ == extent_.stored_bytes; }

 private:
  const StoredExtent& extent_;
  std::uint32_t done_ = 0;
  std::uint32_t crc_ = 0;
  bool match_ = true;
};

}  // namespace mdfs::format
