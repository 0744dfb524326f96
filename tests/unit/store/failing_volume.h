// A mounted volume whose disks can be made to fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/aligned_buffer.h"
#include "crash_workload.h"
#include "device/request.h"
#include "device/testing/faulty_disk.h"

namespace mdfs::store {

using device::Fault;
using device::FaultyDisk;

inline constexpr std::uint64_t kSmallDisk = 4u << 20;

// From now on the next requests of this kind fail, `skip` of them excepted.
inline Fault failing(device::Op op, std::uint64_t skip = 0, std::uint64_t times = Fault::kSticky) {
  return {device::FaultKind::kError, op, 0, UINT64_MAX, skip, times, 0};
}

// A mounted volume whose disks can be made to fail, and whose requests are recorded below the faults.
class FailingVolume {
 public:
  explicit FailingVolume(std::size_t count, std::uint64_t seed = 1)
      : environment_(seed), disks_(make_disks(count, kSmallDisk)) {
    EXPECT_OK(format_disks(disks_, environment_));
    bases_ = clone_disks(disks_);
    open();
  }

  void open() {
    store_.reset();
    recorders_.clear();
    faulty_.clear();
    std::vector<std::unique_ptr<device::Disk>> doors;
    for (std::size_t i = 0; i < disks_.size(); ++i) {
      recorders_.push_back(std::make_unique<device::RecorderDisk>(*disks_[i], log_, static_cast<std::uint32_t>(i)));
      doors.push_back(std::make_unique<FaultyDisk>(*recorders_.back(), std::vector<Fault>{}));
      faulty_.push_back(static_cast<FaultyDisk*>(doors.back().get()));
    }
    auto store = Store::open(std::move(doors), {}, environment_);
    ASSERT_OK(store);
    store_ = std::move(*store);
  }

  Store& store() { return *store_; }
  FaultyDisk& disk(std::size_t index) { return *faulty_[index]; }
  const Disks& disks() const { return disks_; }
  device::RecorderLog& log() { return log_; }
  std::vector<const device::MemoryDisk*> bases() const {
    std::vector<const device::MemoryDisk*> bases;
    for (const auto& disk : bases_) bases.push_back(disk.get());
    return bases;
  }
  Environment& environment() { return environment_; }

  Status put(std::uint64_t value) {
    return store_->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      for (std::uint64_t i = 0; i < 30; ++i) transaction.put({20 + i, 1, 0}, value_of(500, value));
      return {};
    });
  }

  // Writes a block of data on the disk, and publishes it under this number; a block of that number before is freed.
  // `other_disks`: says that these have it, too.
  Status put_data(unsigned disk, std::uint64_t number, std::uint64_t seed,
                  std::optional<std::uint64_t> other_disks = {}) {
    AllocationRequest request;
    request.disk = static_cast<std::uint16_t>(disk);
    request.blocks = 1;
    request.owner = 16;
    MDFS_TRY_ASSIGN(const alloc::Run run, store_->allocate(request, nullptr));
    AlignedBuffer data(4096);
    const ByteVector bytes = value_of(data.size(), seed);
    std::copy(bytes.begin(), bytes.end(), data.data());
    MDFS_TRY(device::write(store_->disk(run.disk), run.block * 4096, data.bytes()));
    const Key key{kDataObject, 1, number};
    return store_->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      if (other_disks)
        transaction.publish(run, *other_disks);
      else
        transaction.publish(run);
      MDFS_TRY_ASSIGN(const auto old, store_->get(key));
      if (old)
        transaction.free(
            {static_cast<std::uint16_t>(load_le<std::uint64_t>(*old, 0)), load_le<std::uint64_t>(*old, 8), 1});
      ByteVector value(28);
      store_le<std::uint64_t>(value, 0, run.disk);
      store_le<std::uint64_t>(value, 8, run.block);
      store_le<std::uint32_t>(value, 16, run.blocks);
      store_le<std::uint64_t>(value, 20, seed);
      transaction.put(key, value);
      return {};
    });
  }

 private:
  SeededEnvironment environment_;
  Disks disks_;
  Disks bases_;
  device::RecorderLog log_;
  std::vector<std::unique_ptr<device::RecorderDisk>> recorders_;
  std::vector<FaultyDisk*> faulty_;
  std::unique_ptr<Store> store_;
};

// The value of all items of put(), 0 before the first; nothing if they differ or cannot be read.
inline std::optional<std::uint64_t> value_in(Store& store) {
  std::optional<std::uint64_t> found;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const auto got = store.get({20 + i, 1, 0});
    if (!got.ok()) return std::nullopt;
    std::uint64_t value = 0;
    if (*got)
      for (value = 1; value < 100 && **got != value_of(500, value);) ++value;
    if (found && *found != value) return std::nullopt;
    found = value;
  }
  return found;
}

// The seed of the data of this number; 0: there are none, or they cannot be read.
inline std::uint64_t data_in(Store& store, std::uint64_t number) {
  const auto value = store.get({kDataObject, 1, number});
  if (!value.ok() || !*value) return 0;
  AlignedBuffer data(4096);
  device::Disk& disk = store.disk(static_cast<unsigned>(load_le<std::uint64_t>(**value, 0)));
  if (!device::read(disk, load_le<std::uint64_t>(**value, 8) * 4096, data.bytes()).ok()) return 0;
  const std::uint64_t seed = load_le<std::uint64_t>(**value, 20);
  const ByteVector expected = value_of(data.size(), seed);
  return std::equal(expected.begin(), expected.end(), data.data()) ? seed : 0;
}

inline Disks without(const Disks& disks, std::size_t absent) {
  Disks rest = clone_disks(disks);
  rest[absent].reset();
  return rest;
}

// Opens without the disk, and has this value in all items.
inline void expect_value_without(FailingVolume& volume, std::size_t absent, std::uint64_t value) {
  const Disks rest = without(volume.disks(), absent);
  auto store = open_disks(rest, volume.environment());
  ASSERT_OK(store);
  EXPECT_EQ(value_in(**store), value);
}

}  // namespace mdfs::store
