// A store in memory for tests of the layers above it: the items in a map, the blocks on memory disks, no commits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/testing/memory_disk.h"
#include "store/store.h"

namespace mdfs::test {

// Keeps the contract of store::Store but for the disks: nothing of the tree is ever written to one. Blocks are given
// out by first fit; those freed are reused at once. Holds an empty root directory, as format_volume makes it.
class FakeStore : public store::Store {
 public:
  explicit FakeStore(unsigned disks = 4, std::uint64_t disk_bytes = 64u << 20, std::uint32_t block_size = 4096);
  ~FakeStore() override;

  // What transact() with Purpose::kNormal, allocate() and reserve() answer while set: kNoSpace.
  void set_full(bool full) { full_ = full; }
  // What allocate() answers while set, in spite of reservations: kNoSpace.
  void refuse_blocks(bool refuse) { refuses_blocks_ = refuse; }
  void set_read_only(bool read_only) { read_only_ = read_only; }
  std::uint64_t commits() const { return commits_; }
  // Called at the end of each transaction, before the next one begins. Not while there are any.
  void after_transactions(std::function<void()> call) { after_transaction_ = std::move(call); }
  // Requests to this disk go to `front`, which is borrowed and passes on what it likes. Before any other use.
  void put_in_front(unsigned index, device::Disk& front) { disks_[index].front = &front; }
  device::MemoryDisk& memory_disk(unsigned index) { return *disks_[index].disk; }
  std::map<format::Key, ByteVector> items() const;
  std::uint64_t used_blocks() const;  // allocated and published
  // Calls of get() and scan(), outside of transactions.
  std::uint64_t lookups() const { return lookups_; }

  const Uuid& volume_uuid() const override { return uuid_; }
  std::string volume_name() const override { return "fake"; }
  std::uint32_t block_size() const override { return block_size_; }
  geometry::AllocationPolicy policy() const override { return geometry::AllocationPolicy::kScatter; }
  std::uint64_t features_incompat() const override { return MDFS_INCOMPAT_KNOWN; }
  std::uint64_t features_ro_compat() const override { return ro_compat_; }
  void add_features_ro_compat(std::uint64_t bits) override { ro_compat_ |= bits; }
  std::uint64_t generation() const override { return commits_; }
  bool read_only() const override { return read_only_; }
  std::string read_only_reason() const override { return read_only_ ? "set by the test" : ""; }
  unsigned disk_count() const override { return static_cast<unsigned>(disks_.size()); }
  store::DiskInfo disk_info(unsigned index) const override;
  // The last disk counts as missing, or not; it is read and written all the same.
  void set_missing(bool missing) { missing_ = missing; }
  device::Disk& disk(unsigned index) override {
    if (disks_[index].front != nullptr) return *disks_[index].front;
    return *disks_[index].disk;
  }

  Result<std::optional<ByteVector>> get(const format::Key& key) override;
  Result<std::vector<store::Item>> scan(const format::Key& first, const format::Key& last, std::size_t limit) override;
  using Store::reserve;
  using Store::transact;
  Status transact(store::Purpose purpose, const std::function<Status(store::Transaction&)>& change,
                  const store::Reservation* reservation) override;
  Status commit() override;
  bool dirty() const override { return dirty_; }
  Result<store::Run> allocate(const store::AllocationRequest& request, store::Reservation* reservation) override;
  void abandon(const store::Run& run) override;
  void release_preallocations(std::uint64_t) override {}
  Result<store::Run> freeze_range(unsigned, std::uint32_t, const std::vector<store::Run>&) override {
    return Error{Errc::kNoSpace, "not in memory"};
  }
  void thaw_range(const store::Run&) override {}
  bool reserve_run(const store::Run&) override { return true; }
  void release_run(const store::Run&) override {}
  bool is_free(const store::Run& run) override;
  Status commit_freed() override { return commit(); }
  Result<store::Reservation> reserve(const store::SpaceAmount& amount, store::Purpose purpose) override;
  store::SpaceInfo space() const override;
  std::vector<std::uint64_t> free_of_disks() const override;
  Result<std::vector<store::ZoneUse>> zone_use(unsigned, std::uint64_t, std::size_t) override {
    return std::vector<store::ZoneUse>{};  // a disk of no zones
  }

 private:
  class FakeTransaction;
  enum class BlockState : std::uint8_t { kFree, kAllocated, kPublished };
  struct FakeDisk {
    std::unique_ptr<device::MemoryDisk> disk;
    device::Disk* front = nullptr;
    std::vector<BlockState> blocks;
    std::uint64_t free_blocks = 0;
    std::uint64_t first_free = 1;  // none is free below it
  };
  void give_back(const store::SpaceAmount& amount) override;
  void set_state(const store::Run& run, BlockState from, BlockState to);
  std::uint64_t free_blocks() const;

  const Uuid uuid_{{1, 2, 3}};
  const std::uint32_t block_size_;
  std::atomic<bool> full_{false};
  std::atomic<bool> refuses_blocks_{false};
  std::atomic<bool> read_only_{false};
  std::atomic<std::uint64_t> ro_compat_{MDFS_RO_COMPAT_LEVELS};
  std::atomic<bool> missing_{false};
  std::atomic<bool> dirty_{false};
  std::atomic<std::uint64_t> commits_{1};
  std::atomic<std::uint64_t> lookups_{0};
  std::mutex transaction_mutex_;  // held by transact()
  std::function<void()> after_transaction_;
  mutable std::mutex mutex_;  // guards all below
  std::map<format::Key, ByteVector> items_;
  std::vector<FakeDisk> disks_;
  std::uint64_t next_object_ = MDFS_OBJECT_FIRST;
  std::uint64_t objects_ = 1;
  store::SpaceAmount reserved_;
};

}  // namespace mdfs::test
