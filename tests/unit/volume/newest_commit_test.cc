// A kill right after fsync, and one of the writes of that commit spoiled: what has two pieces loses nothing. Promise of
// doc/SAFETY.md about damaged blocks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "fixture.h"
#include "store/labels.h"
#include "volume/operations.h"

namespace mdfs::volume {
namespace {

using format::ChecksumRecord;
using format::CommitSlot;

const Status quiet = set_log_level("off");

class NewestCommitTest : public VolumeTest {
 protected:
  NewestCommitTest() : VolumeTest(32u << 20) {}

  void protect(Ino ino) { EXPECT_OK(volume().set_copies(ino, true)); }

  // The newest commit, which nobody has finalized.
  CommitSlot newest() {
    std::optional<CommitSlot> found;
    for (const CommitSlot& slot : store::read_labels(*disks_[0]).slots)
      if (!found || slot.generation > found->generation) found = slot;
    EXPECT_TRUE(found && found->state == MDFS_SLOT_PREPARED && !found->checksum_records.empty());
    return found.value_or(CommitSlot{});
  }

  // As a kill leaves the disks.
  test::MemoryDisks killed() const {
    test::MemoryDisks disks;
    for (const auto& disk : disks_) disks.push_back(disk->clone());
    return disks;
  }

  static void spoil(const test::MemoryDisks& disks, const ChecksumRecord& record) {
    ByteVector byte(1);
    const std::uint64_t offset = record.offset() + record.bytes() / 2 + 77;
    disks[record.disk]->peek(offset, byte);
    byte[0] ^= std::byte{0x10};
    disks[record.disk]->poke(offset, byte);
  }

  // All that a mount of the disks shows. The second time all is as the first mount has left it.
  std::optional<test::Tree> seen_on(const test::MemoryDisks& disks) {
    std::optional<test::Tree> first;
    for (int time = 0; time < 2; ++time) {
      auto opened = test::open_volume(test::borrowed(disks), test::quiet_options(), environment_);
      EXPECT_OK(opened);
      if (!opened.ok()) return std::nullopt;
      if (time == 0) found_copied_ = copied_of(**opened);
      auto tree = test::read_tree(**opened, 8u << 20);
      EXPECT_OK(tree);
      EXPECT_OK((*opened)->close());
      if (!tree.ok()) return std::nullopt;
      EXPECT_TRUE(!first || *first == *tree);
      first = std::move(*tree);
    }
    return first;
  }

  // A mount that writes repairs what was spoiled before it builds on the commit: another disk may be lost then.
  void expect_two_good_pieces_after_a_write(const test::MemoryDisks& disks, unsigned spoiled, test::Tree expected) {
    {
      auto opened = test::open_volume(test::borrowed(disks), test::quiet_options(), environment_);
      ASSERT_OK(opened);
      EXPECT_OK((*opened)->make_directory(kRootIno, "after", 0755, root_));
      EXPECT_OK((*opened)->close());
    }
    for (std::size_t lost = 0; lost < disks.size(); ++lost) {
      if (lost == spoiled) continue;
      std::vector<device::Disk*> rest = test::borrowed(disks);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(lost));
      auto opened = test::open_volume(rest, test::quiet_options(), environment_);
      ASSERT_OK(opened);
      auto tree = test::read_tree(**opened, 8u << 20);
      ASSERT_OK(tree);
      EXPECT_EQ(tree->erase("/after"), 1u);
      tree->erase("");
      expected.erase("");
      EXPECT_TRUE(*tree == expected) << "without disk " << lost;
    }
  }

  test::Tree seen_now() {
    auto tree = test::read_tree(volume(), 8u << 20);
    EXPECT_OK(tree);
    return tree.ok() ? std::move(*tree) : test::Tree{};
  }

  // A page of the map of free space, which has one copy.
  bool is_space_page(const ChecksumRecord& record) {
    const auto label = store::read_labels(*disks_[record.disk]).label;
    return record.offset() < store::layout_of(*label).first_usable() * label->block_size;
  }

  // Spoils each write of nodes and data of the newest commit in turn.
  enum class Pieces : std::uint8_t { kTwoOfAll, kOneOfSome };
  void expect_that_no_bad_write_loses_anything(Pieces pieces) {
    const CommitSlot slot = newest();
    const test::Tree expected = seen_now();
    EXPECT_TRUE(std::ranges::any_of(slot.checksum_records, [&](const ChecksumRecord& record) {
      return !is_space_page(record) && record.bytes() != MDFS_NODE_SIZE;
    })) << "the commit has published no data";
    for (std::size_t i = 0; i < slot.checksum_records.size(); ++i) {
      const ChecksumRecord& record = slot.checksum_records[i];
      if (is_space_page(record)) continue;
      SCOPED_TRACE(fmt::format("record {} of {}: disk {}, {} bytes", i, slot.checksum_records.size(), record.disk,
                               record.bytes()));
      const test::MemoryDisks disks = killed();
      spoil(disks, record);
      test::MemoryDisks again;
      for (const auto& disk : disks) again.push_back(disk->clone());
      if (pieces == Pieces::kTwoOfAll) expect_two_good_pieces_after_a_write(again, record.disk, expected);
      const auto seen = seen_on(disks);
      ASSERT_TRUE(seen.has_value());
      EXPECT_EQ(found_copied_, copied_of(volume())) << "the commit was given up";
      for (const auto& [path, what] : expected) EXPECT_TRUE(seen->contains(path) && seen->at(path) == what) << path;
    }
  }

  // Extents and cells with two pieces, of all files in the root.
  std::uint64_t copied_of(Volume& of) {
    std::uint64_t copied = 0;
    const auto entries = of.read_directory(kRootIno, 0, 100);
    EXPECT_OK(entries);
    for (const DirectoryEntry& entry : *entries)
      if (const auto protection = of.protection(entry.ino, {}); protection.ok()) copied += protection->state.copied;
    return copied;
  }
  std::uint64_t found_copied_ = 0;  // by the first mount of seen_on()

  std::string text_of(std::size_t bytes, unsigned seed) {
    std::string text(bytes, ' ');
    std::uint32_t state = seed * 2654435761u + 1;
    for (char& one : text) one = static_cast<char>('a' + (state = state * 1664525u + 1013904223u) / 171798692u);
    return text;
  }
};

TEST_F(NewestCommitTest, OneBadWriteLosesNoFileNoExtentAndNoStripThatHasTwoPieces) {
  protect(kRootIno);
  const Ino file = make_file("file");
  const Ino image = make_raw_image("image", 256);
  const Ino frames = make_raw_image("frames", 256);
  EXPECT_OK(volume().sync());
  write(file, 0, text_of(150'000, 1));
  write(image, 0, text_of(256 * 256, 2));
  write(frames, 0, text_of(256 * 10, 3));  // rows of extents that are not full
  EXPECT_OK(volume().sync());
  expect_that_no_bad_write_loses_anything(Pieces::kTwoOfAll);
}

TEST_F(NewestCommitTest, OneBadWriteOfACopyThatIsYoungerThanItsExtentLosesNothing) {
  const Ino image = make_raw_image("image", 2048);
  write(image, 0, text_of(2048 * 2048, 4));
  EXPECT_OK(volume().sync());
  protect(image);
  EXPECT_OK(volume().sync());
  // A step of the conversion, which puts its copies beside records that stay.
  const auto copied = [&] { return volume().protection(image, {})->state.copied; };
  while (copied() == 0) ASSERT_TRUE(volume().operations().turn().worked);
  EXPECT_LT(copied(), 1024u);
  EXPECT_OK(volume().sync());
  expect_that_no_bad_write_loses_anything(Pieces::kOneOfSome);
}

TEST_F(NewestCommitTest, ABadWriteOfAFileThatHasOnePieceGivesTheCommitUp) {
  const Ino file = make_file("file");
  EXPECT_OK(volume().sync());
  const test::Tree before = seen_now();
  write(file, 0, text_of(150'000, 1));
  EXPECT_OK(volume().sync());
  const CommitSlot slot = newest();
  const auto largest = std::max_element(slot.checksum_records.begin(), slot.checksum_records.end(),
                                        [](const auto& a, const auto& b) { return a.bytes() < b.bytes(); });
  const test::MemoryDisks disks = killed();
  spoil(disks, *largest);
  const auto seen = seen_on(disks);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->at("/file").size_bytes, 0u);
  EXPECT_TRUE(*seen == before);
}

TEST_F(NewestCommitTest, BothPiecesBadGiveTheCommitUp) {
  protect(kRootIno);
  const Ino file = make_file("file");
  EXPECT_OK(volume().sync());
  const test::Tree before = seen_now();
  write(file, 0, text_of(4096 * 8, 1));
  EXPECT_OK(volume().sync());
  const CommitSlot slot = newest();
  const test::MemoryDisks disks = killed();
  unsigned spoiled = 0;
  for (const ChecksumRecord& record : slot.checksum_records) {
    if (record.bytes() < 2 * MDFS_NODE_SIZE) continue;
    spoil(disks, record);
    ++spoiled;
  }
  ASSERT_EQ(spoiled, 2u);
  const auto seen = seen_on(disks);
  EXPECT_TRUE(seen && *seen == before);
}

}  // namespace
}  // namespace mdfs::volume
