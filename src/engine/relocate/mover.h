// Moving stored bytes to other blocks, by copy-on-write: for defragmentation, and for disks that come and go.
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

// Called before each piece of work with the bytes that it reads (and then writes), with no lock held: it may wait as
// long as it likes. After an error the work ends with it.
using Pace = std::function<Status(std::uint64_t bytes)>;

// What of one object is to go where. The stored bytes are copied as they are; nothing is decoded.
struct MoveRequest {
  // Extents, or cells ({number}) of an ordinary file, each once; holes are passed over.
  std::vector<geometry::Coord> extents;
  // The disk that takes an extent; absent: the one that the placement names.
  std::function<unsigned(const geometry::Coord&)> disk;
  // The extents of a disk come into at most so many contiguous runs, in the order of Groups, or stay where they are.
  // 0: all that have room move, in as few runs as can be had, an extent in several pieces if it must be.
  std::uint32_t most_runs = 1;
  // Of a disk that takes all of them: exactly here (store::AllocationRequest); 0: anywhere.
  std::uint64_t at_block = 0;
  // Of the tree nodes that the move changes, and of as many blocks as it makes free. Other blocks are never taken from
  // a reserve.
  store::Purpose purpose = store::Purpose::kNormal;
  // How many blocks of this run others can use once its extent has moved; absent: none.
  std::function<std::uint64_t(const store::Run&)> freed;
  // Before each piece of the copying. After an error nothing has been moved, and that is the error of the move.
  Pace pace;
};

struct MoveOutcome {
  std::uint64_t moved = 0;               // extents
  std::uint64_t moved_bytes = 0;         // of whole blocks
  std::uint64_t changed = 0;             // written or removed by others meanwhile: theirs counts
  std::vector<geometry::Coord> no_room;  // they are where they were
  struct Damaged {
    geometry::Coord extent{};
    std::uint64_t number = 0;  // page * 64 + place of an extent, or first byte of a cell
    store::Run place;          // its first run
    Error error;               // cannot be read, or its checksum does not match
  };
  std::vector<Damaged> damaged;  // left where they are

  MoveOutcome& operator+=(MoveOutcome&& other);
};

// What was relocated without being asked (Engine::relocate).
struct RelocationOutcome {
  std::uint64_t extents = 0;  // that have relocated home
  std::uint64_t bytes = 0;    // that have moved, of whole blocks; of strips: that were written whole

  RelocationOutcome& operator+=(const RelocationOutcome& other) {
    extents += other.extents;
    bytes += other.bytes;
    return *this;
  }
};

// Each move allocates the target runs, reads, verifies checksums, writes, and then in one transaction gives those
// records that are still as they were read their new places, and frees the old blocks. So a crash leaves old or new
// records, both whole; whoever writes meanwhile wins; readers of the old blocks read them, since they are not reused
// before two more commits, or look again. What is cached stays valid: the bytes are the same. Size, times and data
// generation do not change. Nothing is committed: a following Store::commit does that. Any thread.
class Mover {
 public:
  explicit Mover(Core& core) : core_(core) {}

  // Work in memory is bounded by a piece, whatever the number of extents.
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
  bool matches(const OpenObject& object, const Part& part) const;
  Result<bool> is_current(const OpenObject& object, const Part& part);
  Status publish(OpenObject& object, Job& job);
  void give_back(Part& part);

  Core& core_;
};

}  // namespace mdfs::engine
