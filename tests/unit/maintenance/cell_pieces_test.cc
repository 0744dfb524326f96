// Pieces of the cells of files: collected with their copies, read, and handed over for repair. A file here has three
// blocks, and copies of the first two on another disk.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.h"
#include "fixture.h"
#include "format/cell_copies.h"
#include "maintenance/piece_reader.h"
#include "volume/piece_collector.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr std::uint64_t kBlock = 4096;

class CellPiecesTest : public VolumeTest {
 protected:
  CellPiecesTest() : VolumeTest(32u << 20) {
    EXPECT_OK(set_log_level("off"));
    file_ = make_file("file");
    write(file_, 0, std::string(kBlock, 'a') + std::string(kBlock, 'b') + std::string(kBlock, 'c'));
    EXPECT_OK(volume().sync());
    add_copies();
    EXPECT_OK(volume().sync());
    const auto pieces = read_cell(store(), key(), kBlock, true);
    EXPECT_OK(pieces);
    if (pieces.ok()) cell_ = *pieces;
  }

  format::Key key() const { return {file_, MDFS_KIND_FILE_CELL, 0}; }

  void add_copies() {
    const auto first = read_cell(store(), key(), kBlock, false);
    ASSERT_OK(first);
    ASSERT_EQ(first->first.runs.size(), 1u);
    const format::FileRun& run = first->first.runs[0];
    store().add_features_ro_compat(MDFS_RO_COMPAT_PROTECTION);
    ASSERT_OK(store().transact(store::Purpose::kNormal, [&](store::Transaction& t) -> Status {
      store::AllocationRequest request;
      request.disk = static_cast<std::uint16_t>((run.address.disk + 1) % disks_.size());
      request.blocks = 2;
      request.owner = file_;
      const auto place = store().allocate(request, nullptr);
      if (!place.ok()) return place.error();
      ByteVector bytes(2 * kBlock);
      disks_[run.address.disk]->peek(run.address.block * kBlock, bytes);
      disks_[place->disk]->poke(place->block * kBlock, bytes);
      t.publish(*place);
      format::CellPieces pieces = *first;
      pieces.copy.replace({place->address(), t.generation(), run.written, 0, {run.crc32c[0], run.crc32c[1]}});
      t.put(cell_copies_key(key()), encode_cell_copies(pieces));
      return {};
    }));
  }

  std::vector<StoredPiece> collect(bool copies_apart) {
    PieceCollector collector(store(), *store().verifier(), copies_apart);
    std::vector<StoredPiece> pieces;
    format::Key next;
    while (collector.collect(next, pieces, record_)) {
    }
    std::erase_if(pieces, [&](const StoredPiece& piece) { return piece.object != file_; });
    return pieces;
  }

  // What is handed over for repair when the scrub has read the pieces.
  std::vector<StoredPiece> scrub(bool repaired) {
    PieceCollector collector(store(), *store().verifier(), true);
    PieceReader reader(store(), kBlock, collector);
    std::vector<StoredPiece> bad;
    record_ = {};
    record_.disks.resize(disks_.size());
    reader.begin(collect(true), record_);
    while (!reader.done()) {
      reader.step(record_, [&](const StoredPiece& piece) {
        bad.push_back(piece);
        return repaired;
      });
    }
    return bad;
  }

  void damage(const format::Address& place) {
    std::byte byte{};
    disks_[place.disk]->peek(place.block * kBlock + 7, {&byte, 1});
    byte ^= std::byte{1};
    disks_[place.disk]->poke(place.block * kBlock + 7, {&byte, 1});
  }

  // Mounts the volume without a disk, for reading.
  void mount_without(std::size_t missing) {
    ASSERT_OK(volume().close());
    volume_.reset();
    std::vector<device::Disk*> disks = test::borrowed(disks_);
    disks.erase(disks.begin() + static_cast<std::ptrdiff_t>(missing));
    auto opened = test::open_volume(disks, test::quiet_options(), environment_, {.read_only = true});
    ASSERT_OK(opened);
    volume_ = std::move(*opened);
  }

  std::vector<LostFile> lost_files() {
    const auto found = volume().lost_files(0, 100, {});
    EXPECT_OK(found);
    return found.ok() ? found->files : std::vector<LostFile>();
  }

  Ino file_ = 0;
  format::CellPieces cell_;
  format::OperationRecord record_;
};

TEST_F(CellPiecesTest, BlocksWithAndWithoutCopiesArePiecesOfTheirOwn) {
  const std::vector<StoredPiece> pieces = collect(false);
  ASSERT_EQ(pieces.size(), 2u);
  const format::Address first = cell_.first.runs[0].address, copy = cell_.copy.runs[0].address;
  EXPECT_EQ(pieces[0].runs, (format::Runs{{first.disk, first.block, 2}}));
  EXPECT_EQ(pieces[0].copy, (format::Runs{{copy.disk, copy.block, 2}}));
  EXPECT_EQ(pieces[0].where, 0u);
  EXPECT_EQ(pieces[1].runs, (format::Runs{{first.disk, first.block + 2, 1}}));
  EXPECT_FALSE(pieces[1].has_copy());
  EXPECT_EQ(pieces[1].where, 2 * kBlock);
  EXPECT_EQ(record_.items_failed, 0u);
}

TEST_F(CellPiecesTest, CopiesApartKnowTheBlocksThatTheyBelongTo) {
  const std::vector<StoredPiece> pieces = collect(true);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_FALSE(pieces[0].is_copy || pieces[1].is_copy);
  EXPECT_TRUE(pieces[2].is_copy && !pieces[2].is_extent);
  EXPECT_EQ(pieces[2].runs, pieces[0].copy);
  EXPECT_EQ(pieces[2].copy, pieces[0].runs);
  EXPECT_EQ(pieces[2].crc32c, pieces[0].crc32c);
}

TEST_F(CellPiecesTest, APieceIsCurrentAsLongAsItsCopyIs) {
  PieceCollector collector(store(), *store().verifier(), true);
  const std::vector<StoredPiece> pieces = collect(true);
  ASSERT_EQ(pieces.size(), 3u);
  for (const StoredPiece& piece : pieces) EXPECT_TRUE(collector.is_current(piece));
  ASSERT_OK(store().transact(store::Purpose::kNormal, [&](store::Transaction& t) -> Status {
    t.erase(cell_copies_key(key()));
    return {};
  }));
  EXPECT_FALSE(collector.is_current(pieces[0]));
  EXPECT_FALSE(collector.is_current(pieces[2]));
}

TEST_F(CellPiecesTest, CopiesOfABlockThatWasWrittenMeanwhileAreNoPieces) {
  write(file_, 0, std::string(kBlock, 'x'));
  EXPECT_OK(volume().sync());
  ASSERT_OK(store().transact(store::Purpose::kNormal, [&](store::Transaction& t) -> Status {
    t.put(cell_copies_key(key()), encode_cell_copies(cell_));
    return {};
  }));
  const std::vector<StoredPiece> pieces = collect(true);
  const auto copies =
      std::count_if(pieces.begin(), pieces.end(), [](const StoredPiece& piece) { return piece.is_copy; });
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(pieces.back().where, kBlock);
  EXPECT_EQ(pieces.back().piece_blocks(), 1u);
}

TEST_F(CellPiecesTest, ABadPieceWithAnotherOneIsHandedOverForRepairWhicheverItIs) {
  EXPECT_TRUE(scrub(true).empty());
  for (const bool copy : {false, true}) {
    const format::Address place = (copy ? cell_.copy : cell_.first).find(1)->address;
    damage(place);
    const std::vector<StoredPiece> bad = scrub(true);
    ASSERT_EQ(bad.size(), 1u);
    EXPECT_EQ(bad[0].is_copy, copy);
    EXPECT_EQ(bad[0].object, file_);
    EXPECT_EQ(record_.items_changed, 1u);
    EXPECT_EQ(record_.items_failed, 0u);
    EXPECT_EQ(scrub(false).size(), 1u);  // cannot be repaired
    EXPECT_EQ(record_.items_failed, 1u);
    damage(place);  // as it was
  }
}

TEST_F(CellPiecesTest, ABadBlockWithoutACopyIsNotedAndNotHandedOver) {
  damage(cell_.first.find(2)->address);
  EXPECT_TRUE(scrub(true).empty());
  EXPECT_EQ(record_.items_failed, 1u);
}

TEST_F(CellPiecesTest, WithOneDiskMissingTheBlocksWithoutACopyAreLost) {
  mount_without(cell_.first.runs[0].address.disk);
  const std::vector<LostFile> lost = lost_files();
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].ino, file_);
  EXPECT_EQ(lost[0].lost_bytes, kBlock);
  scrub(true);
  EXPECT_EQ(record_.items_failed, 1u);
}

TEST_F(CellPiecesTest, WithTheDiskOfItsCopiesMissingAFileLosesNothing) {
  mount_without(cell_.copy.runs[0].address.disk);
  EXPECT_TRUE(lost_files().empty());
  EXPECT_TRUE(scrub(true).empty());
  EXPECT_EQ(record_.items_failed, 0u);
}

}  // namespace
}  // namespace mdfs::maintenance
