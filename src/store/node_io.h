// Reads tree nodes from the disks, each from the first copy that is valid. A copy whose disk takes long is not waited
// for while another one can be read (device/hedging.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "device/hedging.h"
#include "device/stoppable_reads.h"
#include "mdfs/ondisk.h"
#include "store/tree.h"

namespace mdfs::store {

// A copy of a node that could not be read or is not valid. `key` and `level` lead to the node in the tree.
struct BadCopy {
  format::Pointer pointer;
  std::size_t copy = 0;
  Key key;
  std::uint16_t level = 0;
  std::string why;
  bool unreadable = false;  // else it was read, and is not valid
};

// Any thread may call any method.
class NodeIo {
 public:
  // disks[i] is disk i of the volume (a missing one answers with errors); borrowed. `salt` decides which copy of a node
  // is read first. Each mount has another salt, so that in time all copies are read, and repaired where they are bad.
  NodeIo(const Uuid& volume_uuid, std::uint32_t block_size, std::vector<device::Disk*> disks, std::uint64_t salt)
      : volume_uuid_(volume_uuid), block_size_(block_size), disks_(std::move(disks)), salt_(salt) {}

  // The copies on these disks, a bit each, are read before others.
  void prefer(std::uint64_t disks) { preferred_ = disks; }

  // Reads all nodes at once, one copy of each, and then the other copies of those that failed. The error names all
  // copies. kCancelled once is_stopped(): nothing is said about the copies then.
  std::vector<Result<ConstNodePtr>> load(std::span<const NodeWanted> wanted);

  // Checks whether the bytes of a copy are the wanted node.
  Status check_copy(const NodeWanted& wanted, ConstBytes bytes) const;
  // Adds a copy to be written anew, as if load() had found it. False if there are too many already.
  bool note_bad(BadCopy bad);

  // The bad copies that were found since the last call, at most kMaxBadCopies; another copy of each node was good. An
  // entry may be stale, because its node may have been freed during the read.
  std::vector<BadCopy> take_bad_copies();
  bool has_bad_copies() const { return has_bad_copies_; }
  static constexpr std::size_t kMaxBadCopies = 256;

 private:
  static constexpr std::int64_t kPassedByNs = 1'000'000'000;  // after a read that was late

  // Spreads reads over the copies, or over those on preferred disks. Within one mount a node is always read from the
  // same copy first, unless that lies on a disk that is late.
  std::size_t first_choice(const format::Pointer& pointer, std::int64_t now_ns) const;
  bool is_late(const format::Address& address, std::int64_t now_ns) const;
  // Until other copies are asked; absent: they are not.
  std::optional<std::chrono::nanoseconds> patience(std::span<const format::Address> addresses,
                                                   std::int64_t now_ns) const;
  Result<ConstNodePtr> check(const NodeWanted& wanted, const Status& read, ConstBytes bytes) const;
  Result<ConstNodePtr> load_from_others(const NodeWanted& wanted, std::size_t tried, const Error& first_error);
  std::uint64_t byte_offset(const format::Address& address) const { return address.block * block_size_; }
  device::Disk* disk_of(const format::Address& address) const;

  Uuid volume_uuid_;
  std::uint32_t block_size_;
  std::vector<device::Disk*> disks_;
  std::uint64_t salt_;
  device::StoppableReads reads_;
  device::HedgeBudget hedges_;
  std::atomic<std::uint64_t> preferred_{0};
  std::array<std::atomic<std::int64_t>, MDFS_MAX_DISKS> late_until_ns_{};
  std::atomic<bool> has_bad_copies_{false};
  std::mutex mutex_;  // guards bad_copies_
  std::vector<BadCopy> bad_copies_;
};

}  // namespace mdfs::store
