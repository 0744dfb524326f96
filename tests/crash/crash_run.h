// Records a workload, rebuilds every state that a power cut could leave behind, and judges each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "device/testing/replay.h"
#include "memory_volume.h"
#include "workload.h"

namespace mdfs::crash {

// One disk fails its requests of a kind, the first `nth` of them excepted, from the first operation on.
struct Failure {
  unsigned disk = 0;
  device::Op op = device::Op::kFlush;
  std::uint64_t nth = 0;
};

struct RunOptions {
  unsigned disks = 2;
  std::uint64_t disk_bytes = 4u << 20;
  std::uint64_t seed = 1;
  device::CutBounds bounds;
  std::size_t known = 0;  // so many operations in front have been a sequence of their own: no cuts before they return
  unsigned thorough_every = 8;  // states that are also written to again, checked by the checker and mounted again
  unsigned depth = 1;           // 2: a second cut while the first is recovered from
  // Every so-many-th state is also mounted without each disk in turn, and then with all; and of every so-many-th kill
  // the disks are mounted again. What these second sessions do is cut everywhere, and every so-many-th of them is
  // killed, and a third session is cut. 0: never.
  unsigned absent_every = 0;
  unsigned kill_every = 0;
  unsigned kill_again_every = 0;
  // At every so-many-th kill a byte of one write of the newest commit is spoiled; needs is_protected.
  unsigned rot_every = 0;
  device::CutBounds boot_bounds{0, 3, 6, 2, 1, false};
  std::optional<Failure> failure;
  // All images have second copies, and every state is also read without each disk in turn. Three disks and more.
  bool is_protected = false;
  unsigned group_members = 1;  // with is_protected: extents that share a parity
  bool spoiled = false;        // disk 0 has a bad copy of every node to begin with
  // For the canaries: with each of these faults planted something must be seen to be lost.
  bool flushes_lie = false;       // no flush has kept anything
  bool mount_flush_lies = false;  // the flush that a mount makes before it writes has kept nothing
  bool believes_absent = false;   // a commit counts as whole although only an absent disk could prove it (-o degraded)
};

// Counts over all runs; any thread.
struct Totals {
  std::atomic<std::uint64_t> states{0};
  std::atomic<std::uint64_t> lost{0};  // states
  std::mutex mutex;                    // guards distinct
  std::unordered_set<std::uint64_t> distinct;
};

// Disks with the files of make_base().
test::MemoryDisks make_base_disks(const RunOptions& options);

// Runs the operations on clones of the base disks and tries all cuts and kills, those during the unmounting included.
// Describes the first error with its cut, or "". `struck`, unless null: a request failed as options.failure says.
std::string try_operations(const std::vector<Operation>& operations, const test::MemoryDisks& base,
                           const RunOptions& options, Totals& totals, bool* struck = nullptr);

// What the checker has to say of the disks that have labels, or "". `raw`: as a cut has left them, when a label or a
// commit slot may be half written. `remade`, unless null: of a commit that is not finalized, the objects of which data
// are damaged and the commit counts all the same. They are levels, which the caller looks at.
std::string check_disks(const test::MemoryDisks& disks, Environment& environment, bool raw,
                        std::set<std::uint64_t>* remade = nullptr);

}  // namespace mdfs::crash
