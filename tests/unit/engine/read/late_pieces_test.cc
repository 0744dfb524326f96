// Pieces whose disks take too long are read from other disks.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "bench_with_faults.h"

namespace mdfs::engine::testing {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using geometry::Codec;

constexpr unsigned kDisks = 4;

struct Object {
  const char* name;
  std::optional<geometry::Geometry> geometry;  // absent: an ordinary file
  unsigned group_members = 1;                  // extents that share a parity; 1: two copies
};

class LatePiecesTest : public ::testing::TestWithParam<Object> {
 protected:
  LatePiecesTest()
      : faults_({.geometry = GetParam().geometry,
                 .disks = kDisks,
                 .cache_bytes = 8u << 20,
                 .copies = true,
                 .group_members = GetParam().group_members}) {
    data_ = noise(random_, GetParam().geometry ? GetParam().geometry->size_bytes() : 600'000, true);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    form_groups();
  }

  // What was written has two copies before.
  void form_groups() {
    if (GetParam().group_members == 1) return;
    EXPECT_TRUE(bench_.form_groups().ok());
  }

  void hold_reads(unsigned disk) {
    faults_.disk(disk).add({FaultKind::kStuck, device::Op::kRead, 0, UINT64_MAX, 0, Fault::kSticky});
  }
  std::size_t held(unsigned disk) { return faults_.disk(disk).stuck(); }
  // `spoiled`: with a bit that is wrong in each read that was held.
  void answer(unsigned disk, bool spoiled = false) {
    FaultyDisk& held = faults_.disk(disk);
    held.work_again();
    if (spoiled) held.add({FaultKind::kBitFlip, device::Op::kRead, 0, UINT64_MAX, 0, Fault::kSticky});
    held.release();
    held.work_again();
  }
  // A read of everything, which has asked both disks in vain.
  std::future<ByteVector> read_without(unsigned one, unsigned other) {
    hold_reads(one);
    hold_reads(other);
    std::future<ByteVector> read = std::async(std::launch::async, [&] { return bench_.read_all(); });
    while (held(one) == 0 || held(other) == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return read;
  }
  ByteVector part(std::size_t at, std::size_t bytes) const {
    const auto begin = data_.begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(std::min(bytes, data_.size() - at))};
  }

  std::mt19937_64 random_{7};
  BenchWithFaults faults_;
  Bench& bench_ = faults_.bench();
  ByteVector data_;
};

TEST_P(LatePiecesTest, WhatADiskDoesNotAnswerIsReadFromTheOthers) {
  for (unsigned late = 0; late < kDisks; ++late) {
    ASSERT_TRUE(bench_.reopen().ok());
    hold_reads(late);
    ASSERT_EQ(bench_.read_all(), data_) << "disk " << late;
    EXPECT_GT(held(late), 0u);
    ASSERT_EQ(bench_.read_all(), data_) << "from memory, disk " << late;
    answer(late);
  }
}

TEST_P(LatePiecesTest, BytesThatComeTooLateReachNoReader) {
  for (unsigned late = 0; late < kDisks; ++late) {
    ASSERT_TRUE(bench_.reopen().ok());
    // Some of each cache block has been read before.
    for (std::size_t at = 0; at < data_.size(); at += 50'000) ASSERT_EQ(bench_.read(at, 100), part(at, 100));
    hold_reads(late);
    ASSERT_EQ(bench_.read_all(), data_) << "disk " << late;
    answer(late, true);
    ASSERT_EQ(bench_.read_all(), data_) << "disk " << late;
  }
}

TEST_P(LatePiecesTest, AnObjectCanBeClosedOnceItsLateRequestsHaveEnded) {
  ASSERT_TRUE(bench_.reopen().ok());
  hold_reads(1);
  ASSERT_EQ(bench_.read_all(), data_);
  ASSERT_GT(held(1), 0u);
  std::future<Status> closed = std::async(std::launch::async, [&] { return bench_.reopen(); });
  answer(1, true);
  ASSERT_TRUE(closed.get().ok());
  EXPECT_EQ(bench_.read_all(), data_);
}

TEST_P(LatePiecesTest, WhereBothDisksAreLateTheFirstThatAnswersWins) {
  ASSERT_TRUE(bench_.reopen().ok());
  std::future<ByteVector> read = read_without(0, 1);
  answer(0);
  EXPECT_EQ(read.get(), data_);
  EXPECT_GT(held(1), 0u);
  answer(1, true);
  EXPECT_EQ(bench_.read_all(), data_);
}

TEST_P(LatePiecesTest, OfTwoDisksThatAreLateTheSecondIsTakenWhereTheFirstBringsWrongBytes) {
  ASSERT_TRUE(bench_.reopen().ok());
  std::future<ByteVector> read = read_without(0, 1);
  answer(0, true);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  answer(1);
  EXPECT_EQ(read.get(), data_);
}

TEST_P(LatePiecesTest, WithoutCopiesTheReaderWaitsForItsDisk) {
  bench_.set_copies(false);
  ASSERT_TRUE(bench_.convert().ok());
  ASSERT_TRUE(bench_.reopen().ok());
  hold_reads(0);
  std::future<ByteVector> read = std::async(std::launch::async, [&] { return bench_.read_all(); });
  while (held(0) == 0) std::this_thread::yield();
  EXPECT_EQ(read.wait_for(std::chrono::milliseconds(150)), std::future_status::timeout);
  answer(0);
  EXPECT_EQ(read.get(), data_);
}

// Readers and a writer of a plain byte array, while one disk after the other stops, and brings wrong bytes in the end.
TEST_P(LatePiecesTest, ReadersAndWritersSeeTheArrayWhileDisksStopAndGoOn) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::atomic<bool> over{false};
  std::thread disks([&, of_disks = std::mt19937_64(seed + 1)]() mutable {
    while (!over) {
      const unsigned disk = of_disks() % kDisks;
      hold_reads(disk);
      std::this_thread::sleep_for(std::chrono::milliseconds(of_disks() % 120));
      answer(disk, of_disks() % 2 == 0);
    }
  });
  for (unsigned step = 0; step < 60; ++step) {
    const std::size_t at = random() % data_.size();
    const std::size_t bytes = 1 + random() % (data_.size() - at);
    if (step % 4 == 3) {
      const ByteVector fresh = noise(random, std::min<std::size_t>(bytes, 60'000), true);
      std::copy(fresh.begin(), fresh.end(), data_.begin() + static_cast<std::ptrdiff_t>(at));
      // A write that needs bytes of a spoiled answer may be refused: it is repeated.
      while (!bench_.engine().write(bench_.object(), at, fresh).ok()) {
      }
    } else {
      ByteVector got(bytes);
      Result<std::size_t> read = bench_.engine().read(bench_.object(), at, got);
      for (unsigned tries = 0; !read.ok() && tries < 20; ++tries) read = bench_.engine().read(bench_.object(), at, got);
      EXPECT_TRUE(read.ok()) << read.error().message();
      EXPECT_EQ(got, part(at, bytes)) << "step " << step;
    }
    if (HasFailure()) break;
    if (step % 10 == 9) {
      EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
      (void)(GetParam().group_members > 1 && bench_.form_groups().ok());  // a spoiled answer ends it
      EXPECT_TRUE(bench_.reopen().ok());
    }
  }
  over = true;
  disks.join();
  ASSERT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  EXPECT_EQ(bench_.read_all(), data_);
}

INSTANTIATE_TEST_SUITE_P(Objects, LatePiecesTest,
                         ::testing::Values(Object{"File", std::nullopt, 1},
                                           Object{"Raw", image_of(2, {700, 900}, {128, 128}, Codec::kRaw), 1},
                                           Object{"Zstd", image_of(3, {20, 200, 150}, {8, 64, 64}, Codec::kZstd), 1},
                                           Object{"RawWithParity", image_of(2, {700, 900}, {128, 128}, Codec::kRaw), 2},
                                           Object{"ZstdWithParity",
                                                  image_of(3, {20, 200, 150}, {8, 64, 64}, Codec::kZstd), 2}),
                         kNameOf);

}  // namespace
}  // namespace mdfs::engine::testing
