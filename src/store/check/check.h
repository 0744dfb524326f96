// The checker: finds and repairs damage on the disks of an unmounted volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "device/disk.h"
#include "store/check/findings.h"

namespace mdfs::store {

enum class RepairMode : std::uint8_t {
  kNothing,  // -n: writes nothing
  kPreen,    // -p: repairs from good copies or derived data only; does not touch the tree if more is needed
  kAll,      // -y: all possible repairs
};

enum class CheckPhase : std::uint8_t { kTree, kSpace, kData, kRepair };
std::string_view name(CheckPhase phase);

// `done` of `total` in units of the phase (nodes, disks, bytes, rounds); total 0: unknown. Called from any thread, one
// call at a time.
using CheckProgress = std::function<void(CheckPhase phase, std::uint64_t done, std::uint64_t total)>;

struct CheckOptions {
  RepairMode repair = RepairMode::kNothing;
  bool data = false;  // also the checksum of every extent and block of a file
  // Bound on the checker's memory. A quarter is for the map of blocks; a smaller map needs more passes over the volume.
  // An eighth is for the places of data that are read at once. The rest is for the tree, its objects and the changes of
  // a repair. kNoMemory: the rest does not suffice.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::optional<std::uint64_t> map_bytes;  // for the map of blocks, instead of a quarter

  std::uint64_t bytes_for_map() const { return map_bytes.value_or(memory_bytes / 4); }
  std::uint64_t bytes_for_data() const { return memory_bytes / 8; }
  std::uint64_t bytes_for_tree() const { return memory_bytes / 8 * 5; }
  // Checks an older commit (recovery.h). A repair makes it the newest, and gives up those after it. A repair that would
  // lose more is refused without kAll.
  std::optional<std::uint64_t> rollback;
  CheckProgress progress;
};

struct CheckReport {
  Uuid volume_uuid;
  std::string volume_name;
  std::uint64_t generation = 0;  // of the checked commit
  bool finalized = true;         // else the next mount finalizes it, and repairs bad copies of its nodes
  std::uint64_t nodes = 0;
  std::uint64_t items = 0;
  std::uint64_t objects = 0;
  std::uint64_t used_blocks = 0;  // on the present disks
  unsigned passes = 0;            // through the tree
  std::uint64_t data_bytes = 0;   // verified
  std::uint64_t total_findings = 0;
  std::uint64_t lasting_findings = 0;  // of these, without those of space pages, which a repair derives anew
  std::vector<Finding> findings;       // at most Findings::kLimit
  bool changed = false;                // something was written
  std::string repair_error;            // the reason why the repair could not be completed; else empty

  // Findings other than notes that are still there.
  std::uint64_t remaining() const;
  // As fsck(8): 0 nothing found, 1 all repaired, 4 some findings remain.
  int exit_code() const;
};

// Takes all disks of the volume, in any order. The caller holds them locked; no other program may write to them. Errors
// are those of Store::open(), for disks without a recognizable volume.
Result<CheckReport> check_volume(std::vector<std::unique_ptr<device::Disk>> disks, const CheckOptions& options,
                                 Environment& environment);

}  // namespace mdfs::store
