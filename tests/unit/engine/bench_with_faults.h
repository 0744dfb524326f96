// A bench whose disks can be lost, and whose blocks can be damaged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/testing/faulty_disk.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {

// Over a fake store. Disks are not lost for good: work_again().
class BenchWithFaults {
 public:
  explicit BenchWithFaults(const Setting& setting) : bench_(setting), disk_count_(setting.disks) {
    for (unsigned i = 0; i < setting.disks; ++i) {
      disks_.push_back(
          std::make_unique<device::FaultyDisk>(bench_.store().memory_disk(i), std::vector<device::Fault>{}));
      bench_.store().put_in_front(i, *disks_[i]);
    }
  }
  ~BenchWithFaults() { bench_.stop_engine(); }  // before the disks in front
  BenchWithFaults(const BenchWithFaults&) = delete;
  BenchWithFaults& operator=(const BenchWithFaults&) = delete;

  Bench& bench() { return bench_; }
  device::FaultyDisk& disk(unsigned number) { return *disks_[number]; }
  void lose(unsigned number) {
    disks_[number]->add({device::FaultKind::kGone, device::Op::kRead, 0, UINT64_MAX, 0, 1});
  }
  void expect_all_with_each_disk_gone(const ByteVector& data) {
    for (unsigned number = 0; number < disk_count_; ++number) {
      ASSERT_TRUE(bench_.reopen().ok());
      lose(number);
      EXPECT_EQ(bench_.read_all(), data) << "disk " << number;
      disks_[number]->work_again();
    }
  }
  // One byte of a block of 4 KiB is another one on the disk.
  void damage(unsigned number, std::uint64_t block) {
    ByteVector bytes(4096);
    bench_.store().memory_disk(number).peek(block * 4096, bytes);
    bytes[100] ^= std::byte{1};
    bench_.store().memory_disk(number).poke(block * 4096, bytes);
  }
  // Of all pages of extents, or cells.
  ProtectionState protection() {
    ProtectionState all;
    for (std::uint64_t next = 0; next != UINT64_MAX;)
      all += bench_.engine().protection(bench_.object(), next, {}).value();
    return all;
  }

 private:
  Bench bench_;
  const unsigned disk_count_;
  std::vector<std::unique_ptr<device::FaultyDisk>> disks_;
};

}  // namespace mdfs::engine::testing
