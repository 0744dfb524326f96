// Reading tree nodes from the disks, each from the first of its copies that verifies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "store/tree.h"

namespace mdfs::store {

// A copy of a node that could not be read or did not verify. `key` and `level` lead to the node in the tree.
struct BadCopy {
  format::Pointer pointer;
  std::size_t copy = 0;
  Key key;
  std::uint16_t level = 0;
  std::string why;
  bool unreadable = false;  // else it was read, and did not verify
};

// Any thread may call any method.
class NodeIo {
 public:
  // disks[i] answers for disk i of the volume (a missing one with errors); borrowed. `salt` decides which copy of a
  // node is read first: another one at each mount, so that over time all copies are read, and repaired if they are bad.
  NodeIo(const Uuid& volume_uuid, std::uint32_t block_size, std::vector<device::Disk*> disks, std::uint64_t salt)
      : volume_uuid_(volume_uuid), block_size_(block_size), disks_(std::move(disks)), salt_(salt) {}

  // All at once, one copy of each; then the other copies of those that failed. The error names all copies.
  std::vector<Result<ConstNodePtr>> load(std::span<const NodeWanted> wanted);

  // Is what was read from a copy the node?
  Status check_copy(const NodeWanted& wanted, ConstBytes bytes) const;
  // To be written anew, as if it had been found by load(); false if there are too many already.
  bool note_bad(BadCopy bad);

  // What was found bad since the last call, at most kMaxBadCopies; the node itself was good in another copy.
  // An entry may be stale: the node may have been freed while it was read.
  std::vector<BadCopy> take_bad_copies();
  bool has_bad_copies() const { return has_bad_copies_; }
  static constexpr std::size_t kMaxBadCopies = 256;

 private:
  // Spreads reads over the copies, while one mount reads a node always from the same one.
  std::size_t first_choice(const format::Pointer& pointer) const {
    return static_cast<std::size_t>((pointer.crc32c ^ salt_) % pointer.copies);
  }
  Result<ConstNodePtr> check(const NodeWanted& wanted, const Status& read, ConstBytes bytes) const;
  Result<ConstNodePtr> load_from_others(const NodeWanted& wanted, std::size_t tried, const Error& first_error);
  std::uint64_t byte_offset(const format::Address& address) const { return address.block * block_size_; }
  device::Disk* disk_of(const format::Address& address) const;

  Uuid volume_uuid_;
  std::uint32_t block_size_;
  std::vector<device::Disk*> disks_;
  std::uint64_t salt_;
  std::atomic<bool> has_bad_copies_{false};
  std::mutex mutex_;  // guards bad_copies_
  std::vector<BadCopy> bad_copies_;
};

}  // namespace mdfs::store
