// Disks that fail, lie and fill up: errors are reported, bytes are right or refused, and nothing is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/testing/faulty_disk.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using device::Op;
using geometry::Codec;

class EngineFaultsTest : public ::testing::TestWithParam<Kind> {
 protected:
  EngineFaultsTest() : setting_{GetParam().geometry}, bench_(setting_) {
    setting_.disks = 3;
    for (unsigned i = 0; i < 3; ++i) {
      disks_.push_back(std::make_unique<FaultyDisk>(bench_.store().memory_disk(i), std::vector<Fault>{}));
      bench_.store().put_in_front(i, *disks_[i]);
    }
    std::mt19937_64 random(5);
    data_ = noise(random, 300'000);
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  }

  ~EngineFaultsTest() override { bench_.stop_engine(); }  // before the disks in front of the store's own

  Setting setting_;
  Bench bench_;
  std::vector<std::unique_ptr<FaultyDisk>> disks_;
  ByteVector data_;
};

TEST_P(EngineFaultsTest, AReadThatADiskRefusesFailsAndIsRightAfterwards) {
  for (unsigned nth = 0; nth < 4; ++nth) {
    ASSERT_TRUE(bench_.reopen().ok());
    disks_[1]->add({FaultKind::kError, Op::kRead, 0, UINT64_MAX, nth, 1});
    const std::size_t before = disks_[1]->injections().size();
    ByteVector into(data_.size());
    const Result<std::size_t> got = bench_.engine().read(bench_.object(), 0, into);
    if (disks_[1]->injections().size() > before) {
      ASSERT_FALSE(got.ok());
      EXPECT_EQ(got.error().code, Errc::kIo);
    } else {
      ASSERT_TRUE(got.ok());
    }
    disks_[1]->work_again();
    ASSERT_EQ(bench_.read(0, data_.size()), data_);
  }
}

TEST_P(EngineFaultsTest, ABitFlippedOnTheWayIsReadAgain) {
  ASSERT_TRUE(bench_.reopen().ok());
  for (auto& disk : disks_) disk->add({FaultKind::kBitFlip, Op::kRead, 0, UINT64_MAX, 0, 1});
  EXPECT_EQ(bench_.read(0, data_.size()), data_);
  EXPECT_GT(disks_[0]->injections().size() + disks_[1]->injections().size() + disks_[2]->injections().size(), 0u);
}

TEST_P(EngineFaultsTest, ABitFlippedAtRestIsDamageAndNeverWrongBytes) {
  ASSERT_TRUE(bench_.reopen().ok());
  const auto places = bench_.layout();
  ASSERT_TRUE(places.ok());
  const layout::ExtentPlace& place = places->front();
  std::byte byte{};
  const std::uint64_t at = place.block * 4096 + place.stored_bytes / 2;
  bench_.store().memory_disk(place.disk).peek(at, {&byte, 1});
  byte ^= std::byte{4};
  bench_.store().memory_disk(place.disk).poke(at, {&byte, 1});
  ByteVector into(data_.size());
  const Result<std::size_t> got = bench_.engine().read(bench_.object(), 0, into);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Errc::kCorrupt);
  EXPECT_NE(got.error().where.find("disk" + std::to_string(place.disk)), std::string::npos) << got.error().where;
}

TEST_P(EngineFaultsTest, AWriteThatADiskRefusesIsRepeatedOnAnother) {
  for (unsigned nth = 0; nth < 6; ++nth) {
    std::mt19937_64 random(100 + nth);
    data_ = noise(random, data_.size());
    const std::size_t before = disks_[2]->injections().size();
    // One disk, then two, from the n-th write on. The engine may write in the background at once.
    disks_[2]->add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, nth / 2, Fault::kSticky});
    if (nth % 2 == 1) disks_[0]->add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, nth / 2, Fault::kSticky});
    ASSERT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    EXPECT_TRUE(nth >= 2 || disks_[2]->injections().size() > before);
    EXPECT_FALSE(bench_.engine().is_dirty(bench_.object()));
    EXPECT_EQ(bench_.read(0, data_.size()), data_);
    for (auto& disk : disks_) disk->work_again();
    ASSERT_TRUE(bench_.reopen().ok());
    ASSERT_EQ(bench_.read(0, data_.size()), data_);
  }
}

TEST_P(EngineFaultsTest, AFailedWriteBackIsReportedAndTriedAgain) {
  for (unsigned nth = 0; nth < 3; ++nth) {
    std::mt19937_64 random(nth);
    data_ = noise(random, data_.size());
    for (auto& disk : disks_) disk->add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, nth, Fault::kSticky});
    ASSERT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    const auto refused = [&](const auto& disk) { return !disk->injections().empty(); };
    const Status status = bench_.engine().write_back(bench_.object());
    EXPECT_TRUE(status.ok() || std::any_of(disks_.begin(), disks_.end(), refused));
    EXPECT_TRUE(nth > 0 || !status.ok());
    EXPECT_EQ(bench_.engine().is_dirty(bench_.object()), !status.ok());
    EXPECT_EQ(bench_.read(0, data_.size()), data_);
    for (auto& disk : disks_) disk->work_again();
    (void)bench_.engine().write_back(bench_.object());  // may report what the background has met in between
    EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
    ASSERT_TRUE(bench_.reopen().ok());
    ASSERT_EQ(bench_.read(0, data_.size()), data_);
  }
}

TEST_P(EngineFaultsTest, AnErrorOfTheBackgroundIsReportedOnceByTheNextWriteBack) {
  std::mt19937_64 random(9);
  const ByteVector bytes = noise(random, 100'000);
  ASSERT_TRUE(bench_.engine().write(bench_.object(), 0, bytes).ok());
  for (auto& disk : disks_) disk->add({FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 0, Fault::kSticky});
  EXPECT_FALSE(bench_.engine().write_back_all(0).ok());
  for (auto& disk : disks_) disk->work_again();
  EXPECT_FALSE(bench_.engine().write_back(bench_.object()).ok());
  EXPECT_TRUE(bench_.engine().write_back(bench_.object()).ok());
  ASSERT_TRUE(bench_.reopen().ok());
  EXPECT_EQ(bench_.read(0, bytes.size()), bytes);
}

TEST_P(EngineFaultsTest, AFullVolumeRefusesAWriteBeforeItChangesAnything) {
  const ByteVector more(5000, std::byte{7});
  bench_.store().set_full(true);
  const Status status = bench_.engine().write(bench_.object(), 1000, more);
  bench_.store().set_full(false);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kNoSpace);
  EXPECT_EQ(bench_.read(0, data_.size()), data_);
}

INSTANTIATE_TEST_SUITE_P(Objects, EngineFaultsTest,
                         ::testing::Values(Kind{"file", std::nullopt},
                                           Kind{"raw", image_of(2, {500, 600}, {100, 128}, Codec::kRaw)},
                                           Kind{"zstd", image_of(2, {500, 600}, {64, 96}, Codec::kZstd)}),
                         kNameOf);

TEST(EngineFullTest, WritesUntilTheVolumeIsFullAndGivesAllBackWhenCut) {
  for (const bool image : {false, true}) {
    Setting setting;
    if (image) setting.geometry = image_of(2, {0, 1024}, {256, 256}, Codec::kZstd);
    setting.disks = 2;
    setting.disk_bytes = 2u << 20;
    Bench bench(setting);
    std::mt19937_64 random(3);
    ByteVector written;
    Status status;
    while (written.size() < (8u << 20)) {
      const ByteVector bytes = noise(random, 40'000);
      status = bench.engine().write(bench.object(), written.size(), bytes);
      if (!status.ok()) break;
      written.insert(written.end(), bytes.begin(), bytes.end());
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Errc::kNoSpace);
    EXPECT_GT(written.size(), std::size_t{3u << 20}) << image;  // not much is kept from use
    ASSERT_TRUE(bench.reopen().ok());
    ASSERT_EQ(bench.read(0, written.size()), written);
    ASSERT_TRUE(bench.engine().truncate(bench.object(), 0).ok());
    EXPECT_EQ(bench.store().used_blocks(), 0u);
  }
}

}  // namespace
}  // namespace mdfs::engine::testing
