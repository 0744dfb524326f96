// Second copies of the blocks of ordinary files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/relocate/protection.h"
#include "format/cell_copies.h"
#include "geometry/geometry.h"

namespace mdfs::engine {

class OpenObject;
struct Core;

// What is to be done with the blocks of a cell, as masks. Pure.
struct CellWork {
  std::uint32_t first = 0;    // get a new first piece, because that is bad, and the copy stays
  std::uint32_t copy = 0;     // get a new copy, because there is none, or it is bad
  std::uint32_t damaged = 0;  // nothing has the bytes
  bool again = false;         // both pieces have to be made, one after the other
};
// `bad_first`, `bad_copy`: pieces that are not to stay. `held`: blocks whose bytes are in memory.
CellWork work_on_cell(const format::CellPieces& cell, std::uint32_t bad_first, std::uint32_t bad_copy,
                      std::uint32_t held);

// Protector for cells (engine/relocate/protector.h). The pieces of each block lie on two disks; those of different
// blocks of a cell may lie anywhere. Positions are numbers of cells. Any thread.
class CellProtector {
 public:
  explicit CellProtector(Core& core) : core_(core) {}

  Result<ProtectOutcome> run(OpenObject& object, const ProtectRequest& request);
  Result<ProtectionState> look(const OpenObject& object, std::uint64_t& cell);
  Result<std::vector<geometry::Coord>> find(const OpenObject& object, bool copies, std::uint64_t& cell);

 private:
  static constexpr std::size_t kCellsAtOnce = 32;  // read and written; 4 MiB

  struct NewPiece;
  struct Part;
  struct Job;
  Status look_up(OpenObject& object, Job& job, std::uint64_t cell);
  Status run_batch(OpenObject& object, Job& job);
  Status read(OpenObject& object, Job& job);
  Status judge(OpenObject& object, Job& job, Part& part);
  // The bytes of a block, from a place. False: they cannot be read, or do not match.
  bool read_block(const format::BlockPlace& place, MutableBytes to);
  Status write(OpenObject& object, Job& job);
  void place(const OpenObject& object, Job& job, Part& part);
  Status publish(OpenObject& object, Job& job);
  template <typename Visit>
  Status each_cell(const OpenObject& object, std::uint64_t& cell, const Visit& visit);

  Core& core_;
};

}  // namespace mdfs::engine
