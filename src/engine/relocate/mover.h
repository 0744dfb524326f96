// Moves stored bytes to other blocks, by copy-on-write: for defragmentation, and for disks that join or are drained.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"
#include "store/store.h"

namespace mdfs::engine {

class OpenObject;
struct Core;

// Called before each piece of work with the bytes that the piece reads and then writes. The engine holds no lock, so
// the function may wait as long as it likes. An error ends the work, which returns it.
using Pace = std::function<Status(std::uint64_t bytes)>;

// Moves of one object. The stored bytes are copied unchanged, without decoding.
struct MoveRequest {
  // Extents, or cells ({number}) of an ordinary file, each once; holes are skipped.
  std::vector<geometry::Coord> extents;
  // Moves the second copies of the extents, not the extents; those without a copy are skipped.
  bool of_copies = false;
  // The disk for an extent, or its copy; absent: the disk that the placement names for it. A disk that holds the other
  // copy has no room.
  std::function<unsigned(const geometry::Coord&)> disk;
  // The extents of a disk move into at most so many contiguous runs, in the order of Groups, or stay where they are. 0:
  // all extents that find space move, in as few runs as possible, an extent in several pieces if necessary.
  std::uint32_t most_runs = 1;
  // With one target disk: exactly this block (store::AllocationRequest); 0: any block.
  std::uint64_t at_block = 0;
  // For the tree nodes that the move changes, and for as many blocks as the move frees. Further blocks never come from
  // a reserve.
  store::Purpose purpose = store::Purpose::kNormal;
  // Returns how many blocks of this run other objects can use once its extent has moved; absent: none.
  std::function<std::uint64_t(const store::Run&)> freed;
  // Before each piece of the copying. Its error is the error of the move, and nothing has been moved.
  Pace pace;
};

struct MoveOutcome {
  std::uint64_t moved = 0;               // extents
  std::uint64_t moved_bytes = 0;         // of whole blocks
  std::uint64_t changed = 0;             // written or removed by others meanwhile, which is kept
  std::vector<geometry::Coord> no_room;  // found no space, and stay
  struct Damaged {
    geometry::Coord extent{};
    std::uint64_t number = 0;  // page * 64 + place of an extent, or first byte of a cell
    store::Run place;          // its first run
    Error error;               // of the read, or of the checksum
  };
  std::vector<Damaged> damaged;  // stay where they are

  MoveOutcome& operator+=(MoveOutcome&& other);
};

// The result of Engine::relocate.
struct RelocationOutcome {
  std::uint64_t extents = 0;  // that have relocated home
  std::uint64_t bytes = 0;    // that have moved, of whole blocks; of strips: that were consolidated

  RelocationOutcome& operator+=(const RelocationOutcome& other) {
    extents += other.extents;
    bytes += other.bytes;
    return *this;
  }
};

// A move allocates target runs, reads the stored bytes, verifies checksums and writes. One transaction then gives the
// unchanged records their new places, and frees the old blocks. A crash leaves the old or the new records, both whole.
// A concurrent writer wins. Readers of the old blocks find the same bytes for two more commits, or look again. Cached
// bytes stay valid, because they are the same. Size, times and data generation do not change. Does not commit: a
// following Store::commit makes the move durable. Any thread.
class Mover {
 public:
  explicit Mover(Core& core) : core_(core) {}

  // Memory is bounded by a piece, for any number of extents.
  Result<MoveOutcome> move(OpenObject& object, const MoveRequest& request);

 private:
  static constexpr std::uint64_t kPieceBytes = 512u << 10;  // read and written at once; at least an extent

  struct Part;
  struct Job;
  Status look_up(OpenObject& object, Job& job, const std::vector<geometry::Coord>& extents);
  Status find_room(OpenObject& object, Job& job);
  bool place(const OpenObject& object, Job& job, std::size_t first, std::size_t last, std::uint32_t& runs_left);
  bool scatter(const OpenObject& object, Job& job, Part& part);
  Result<store::Run> allocate(const OpenObject& object, Job& job, std::uint16_t disk, std::uint32_t blocks);
  Status copy(OpenObject& object, Job& job);
  Status copy_piece(OpenObject& object, Job& job, std::size_t first, std::size_t last);
  Status read_again(OpenObject& object, Part& part);
  Result<bool> is_current(const OpenObject& object, const Part& part);
  template <typename Reader>
  Result<bool> is_current(Reader& reader, const OpenObject& object, const Part& part);
  Status publish(OpenObject& object, Job& job);
  void give_back(Part& part);

  Core& core_;
};

}  // namespace mdfs::engine
