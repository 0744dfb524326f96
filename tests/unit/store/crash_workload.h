// A recorded workload on a store, and what must hold after a power cut anywhere in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <random>

#include "base/aligned_buffer.h"
#include "device/testing/recorder_disk.h"
#include "device/testing/replay.h"
#include "store/check/check.h"
#include "store/labels.h"
#include "store_fixture.h"

namespace mdfs::store {

inline constexpr std::uint64_t kDiskBytes = 4u << 20;
inline constexpr std::uint64_t kDataObject = 1000;

// A volume whose items also own data blocks, so that a block reused too early shows as wrong data.
class Workload {
 public:
  // `blank` more disks are there, which are of no volume yet. The volume is made while the disks have kDiskBytes; then
  // they get `device_bytes`.
  Workload(std::size_t disks, std::uint64_t seed, std::size_t blank = 0, std::uint64_t device_bytes = kDiskBytes,
           const FormatOptions& options = {})
      : environment_(seed), random_(seed), disks_(make_disks(disks + blank, kDiskBytes)) {
    std::vector<device::Disk*> members;
    for (std::size_t i = 0; i < disks; ++i) members.push_back(disks_[i].get());
    EXPECT_OK(format_volume(members, options, environment_));
    if (device_bytes != kDiskBytes)
      for (const auto& disk : disks_) disk->resize(device_bytes);
    bases_ = clone_disks(disks_);
    std::vector<std::unique_ptr<device::Disk>> recorders;
    for (std::size_t i = 0; i < disks; ++i) recorders.push_back(recorder(i));
    StoreOptions store_options;
    store_options.node_cache_bytes = 64u << 10;
    auto store = Store::open(std::move(recorders), store_options, environment_);
    EXPECT_OK(store);
    store_ = std::move(*store);
    states_.emplace_back();
  }

  void run(int commits, int transactions) {
    for (int i = 0; i < commits; ++i) {
      for (int j = 0; j < transactions; ++j) change();
      EXPECT_OK(store_->commit());
      log_.mark("committed", states_.size() - 1);
      if (i % 3 != 1) continue;
      EXPECT_OK(store_->finalize());
    }
    change();  // never committed
  }

  Store& store() { return *store_; }
  // Ends the store, as a kill would.
  void close() { store_.reset(); }
  const Disks& disks() const { return disks_; }
  // Every write to this disk is recorded.
  std::unique_ptr<device::Disk> recorder(std::size_t disk) {
    return std::make_unique<device::RecorderDisk>(*disks_[disk], log_, static_cast<std::uint32_t>(disk));
  }

  // Copies the data blocks that lie on this disk to other places and frees them, in one transaction.
  void move_data_off(unsigned disk) {
    Model after = states_.back();
    const auto change = [&](Transaction& transaction) -> Status {
      for (auto item = after.lower_bound({kDataObject, 0, 0}); item != after.end(); ++item) {
        ByteVector& value = item->second;
        const Run old = run_of(value);
        if (old.disk != disk) continue;
        AllocationRequest request;
        request.disk = old.disk;
        request.blocks = old.blocks;
        request.owner = 16;
        MDFS_TRY_ASSIGN(const Run run, store_->allocate(request, nullptr));
        AlignedBuffer data(run.blocks * 4096);
        MDFS_TRY(device::read(store_->disk(old.disk), old.block * 4096, data.bytes()));
        MDFS_TRY(device::write(store_->disk(run.disk), run.block * 4096, data.bytes()));
        transaction.publish(run);
        transaction.free(old);
        store_le<std::uint64_t>(value, 0, run.disk);
        store_le<std::uint64_t>(value, 8, run.block);
        transaction.put(item->first, value);
      }
      return {};
    };
    ASSERT_OK(store_->transact(Purpose::kNormal, change));
    states_.push_back(std::move(after));
  }

  std::vector<device::Event> events() const { return log_.events(); }
  std::vector<const device::MemoryDisk*> bases() const {
    std::vector<const device::MemoryDisk*> bases;
    for (const auto& disk : bases_) bases.push_back(disk.get());
    return bases;
  }
  // State i is that after i transactions.
  const std::vector<Model>& states() const { return states_; }

 private:
  static Run run_of(const ByteVector& value) {
    return {static_cast<std::uint16_t>(load_le<std::uint64_t>(value, 0)), load_le<std::uint64_t>(value, 8),
            load_le<std::uint32_t>(value, 16)};
  }

  // A block of data on a disk, named by an item {disk, block, seed}.
  void add_data(Transaction& transaction, Model& after) {
    AllocationRequest request;
    request.disk = static_cast<std::uint16_t>(random_() % store_->disk_count());
    request.blocks = 1 + static_cast<std::uint32_t>(random_() % 3);
    request.owner = 16 + random_() % 3;
    const auto run = store_->allocate(request, nullptr);
    ASSERT_OK(run);
    const std::uint64_t seed = random_();
    AlignedBuffer data(run->blocks * 4096);
    const ByteVector bytes = value_of(data.size(), seed);
    std::copy(bytes.begin(), bytes.end(), data.data());
    ASSERT_OK(device::write(store_->disk(run->disk), run->block * 4096, data.bytes()));
    transaction.publish(*run);
    ByteVector value(28);
    store_le<std::uint64_t>(value, 0, run->disk);
    store_le<std::uint64_t>(value, 8, run->block);
    store_le<std::uint32_t>(value, 16, run->blocks);
    store_le<std::uint64_t>(value, 20, seed);
    const Key key{kDataObject, 1, random_()};
    transaction.put(key, value);
    after[key] = value;
  }

  void drop_data(Transaction& transaction, Model& after) {
    const auto first = after.lower_bound({kDataObject, 0, 0});
    if (first == after.end()) return;
    transaction.free(run_of(first->second));
    transaction.erase(first->first);
    after.erase(first);
  }

  void change() {
    Model after = states_.back();
    const auto change = [&](Transaction& transaction) -> Status {
      for (int i = 0; i < 6; ++i) {
        const Key key = item_key(random_() % 200);
        const ByteVector value = value_of(random_() % 700, random_());
        transaction.put(key, value);
        after[key] = value;
      }
      const Key gone = item_key(random_() % 200);
      transaction.erase(gone);
      after.erase(gone);
      add_data(transaction, after);
      if (random_() % 2 == 0) drop_data(transaction, after);
      return {};
    };
    ASSERT_OK(store_->transact(Purpose::kNormal, change));
    states_.push_back(std::move(after));
  }

  SeededEnvironment environment_;
  std::mt19937_64 random_;
  Disks disks_;
  Disks bases_;
  device::RecorderLog log_;
  std::unique_ptr<Store> store_;
  std::vector<Model> states_;
};

// On those of the disks that have a label, as they would be found.
Result<std::unique_ptr<Store>> open_labelled(const Disks& disks, Environment& environment);
// The data that the items of `state` name.
void expect_data_intact(Store& store, const Model& state, const std::string& text);
void expect_structure_is_sound(const Disks& disks, bool recovered, const std::string& text);
void expect_recovers(const Disks& disks, const std::vector<Model>& states, std::uint64_t acknowledged,
                     const std::string& text);
// The state that was acknowledged before event `position`, or before the cut.
std::uint64_t acknowledged_before(const std::vector<device::Event>& events, std::size_t position);
std::uint64_t acknowledged_at(const std::vector<device::Event>& events, const device::Cut& cut);

}  // namespace mdfs::store
