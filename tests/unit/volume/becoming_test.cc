// Files that become images of the bytes they have.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "fixture.h"
#include "volume/records.h"

namespace mdfs::volume {
namespace {

ImageOptions image_of(std::uint64_t height, std::uint64_t width, std::uint64_t side = 16,
                      geometry::Codec codec = geometry::Codec::kZstd) {
  ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {height, width};
  options.geometry.extent = {side, side};
  options.geometry.codec = codec;
  options.geometry.axes = "yx";
  return options;
}

std::string text_of(std::size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(1 + (i * 31 + i / 97 * seed) % 250);
  return text;
}

class BecomingTest : public VolumeTest {
 protected:
  Status become(Ino ino, const ImageOptions& options, const engine::Stop& stop = {}) {
    return volume().become_image(ino, options, stop);
  }
  std::size_t items(Ino ino, std::uint64_t kind) {
    return store().scan({ino, kind, 0}, {ino, kind, UINT64_MAX}, 1000)->size();
  }
  bool among_orphans(Ino ino) { return store().get(orphan_key(ino))->has_value(); }
};

TEST_F(BecomingTest, AFileBecomesAnImageOfItsBytesAndLeavesNothingBehind) {
  for (const std::size_t height : {1u, 5u, 40u, 700u}) {  // in the tree, and in several cells
    const Ino ino = make_file("f" + std::to_string(height));
    const std::string text = text_of(height * 300, 7);
    write(ino, 0, text);
    EXPECT_OK(volume().fsync(ino, false));
    const Attributes before = stat(ino);
    const std::uint64_t objects = volume().space().objects;
    ASSERT_OK(become(ino, image_of(height, 300)));
    const auto info = volume().image_info(ino);
    ASSERT_OK(info);
    EXPECT_EQ(info->geometry.shape, (geometry::Coord{height, 300, 0}));
    EXPECT_TRUE(read(ino) == text);
    const Attributes after = stat(ino);
    EXPECT_EQ(after.mtime_ns, before.mtime_ns);
    EXPECT_EQ(after.links, before.links);
    EXPECT_EQ(after.size_bytes, before.size_bytes);
    EXPECT_EQ(items(ino, MDFS_KIND_FILE_CELL) + items(ino, MDFS_KIND_INLINE), 0u);
    EXPECT_FALSE(among_orphans(ino));
    EXPECT_OK(volume().sync());
    EXPECT_EQ(volume().space().objects, objects);
    mount();
    EXPECT_TRUE(read(stat(kRootIno, "f" + std::to_string(height)).ino) == text);
  }
}

TEST_F(BecomingTest, WhatItIsStoredInComesBackWhenItIsRemoved) {
  EXPECT_OK(volume().sync());
  const std::uint64_t free_blocks = volume().space().free_blocks;
  const Ino ino = make_file("f");
  write(ino, 0, text_of(700 * 300, 3));
  ASSERT_OK(become(ino, image_of(700, 300, 32, geometry::Codec::kRaw)));
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  volume().forget(ino, 1);
  for (int commits = 0; commits < 4; ++commits) {
    make_file("c" + std::to_string(commits));
    EXPECT_OK(volume().sync());
  }
  EXPECT_NEAR(static_cast<double>(volume().space().free_blocks), static_cast<double>(free_blocks), 8);
}

TEST_F(BecomingTest, HolesStayHoles) {
  const Ino ino = make_file("f");
  write(ino, 2'000'000, "x");
  SetAttributes size;
  size.size_bytes = 4'000'000;
  EXPECT_OK(volume().set_attributes(ino, size));
  ASSERT_OK(become(ino, image_of(2000, 2000)));
  EXPECT_OK(volume().fsync(ino, false));
  EXPECT_LE(stat(ino).stored_bytes, 64u << 10);
  EXPECT_EQ(read(ino, 1'999'999, 3), std::string("\0x\0", 3));
}

TEST_F(BecomingTest, ThePartOfALastStepIsKept) {
  const Ino ino = make_file("f");
  const std::string text = text_of(300 * 20 - 77, 5);
  write(ino, 0, text);
  ASSERT_OK(become(ino, image_of(20, 300)));
  EXPECT_EQ(stat(ino).size_bytes, text.size());
  EXPECT_TRUE(read(ino) == text);
}

TEST_F(BecomingTest, WhatDoesNotFitIsRefusedAndTheFileStaysWhatItIs) {
  const Ino ino = make_file("f");
  const std::string text = text_of(6000, 5);
  write(ino, 0, text);
  EXPECT_ERROR(Errc::kInvalidArgument, become(ino, image_of(21, 300)));
  EXPECT_ERROR(Errc::kInvalidArgument, become(ino, image_of(19, 300)));
  EXPECT_ERROR(Errc::kInvalidArgument, become(make_directory("d"), image_of(20, 300)));
  EXPECT_ERROR(Errc::kCancelled, become(ino, image_of(20, 300), [] { return true; }));
  EXPECT_FALSE(stat(ino).is_image);
  EXPECT_TRUE(read(ino) == text);
  EXPECT_OK(become(ino, image_of(20, 300)));
  EXPECT_ERROR(Errc::kExists, become(ino, image_of(300, 20)));
}

TEST_F(BecomingTest, AFileThatChangesMeanwhileStaysWhatItIs) {
  const Ino ino = make_file("f");
  write(ino, 0, text_of(6000, 5));
  bool once = true;
  EXPECT_ERROR(Errc::kBusy, become(ino, image_of(20, 300), [&] {
                 if (std::exchange(once, false)) write(ino, 10, "changed");
                 return false;
               }));
  EXPECT_FALSE(stat(ino).is_image);
  EXPECT_EQ(read(ino, 10, 7), "changed");
  EXPECT_EQ(items(ino, MDFS_KIND_EXTENTS), 0u);
  EXPECT_FALSE(among_orphans(ino));
}

TEST_F(BecomingTest, AnImageOfTheseSamplesTakesTheSpacing) {
  const Ino ino = make_file("f");
  const std::string text = text_of(6000, 5);
  write(ino, 0, text);
  ImageOptions options = image_of(20, 300);
  ASSERT_OK(become(ino, options));
  options.geometry.spacing = {0.5, 0.25, 0};
  options.geometry.unit = {"um", "um", ""};
  options.geometry.extent = {8, 8, 0};  // how it is stored stays
  ASSERT_OK(become(ino, options));
  const auto info = volume().image_info(ino);
  EXPECT_EQ(info->geometry.spacing, options.geometry.spacing);
  EXPECT_EQ(info->geometry.unit, options.geometry.unit);
  EXPECT_EQ(info->geometry.extent[0], 16u);
  EXPECT_TRUE(read(ino) == text);
}

// As a crash leaves it: the extents are there, the inode is still that of a file.
TEST_F(BecomingTest, LeftoversOfACrashDoNotComeToLightInALaterImage) {
  const Ino ino = make_file("f");
  const std::string text = text_of(6000, 5);
  write(ino, 0, text);
  ASSERT_OK(become(ino, image_of(20, 300)));
  EXPECT_OK(volume().sync());
  const auto back = store().transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    MDFS_TRY_ASSIGN(format::Inode inode, read_inode(transaction, ino));
    inode.flags = 0;
    inode.size = 0;
    inode.stored_bytes = 0;
    put_inode(transaction, ino, inode);
    transaction.put(orphan_key(ino), {});
    return {};
  });
  ASSERT_OK(back);
  mount();
  const Ino again = stat(kRootIno, "f").ino;
  ASSERT_OK(volume().make_image(again, image_of(20, 300)));
  EXPECT_EQ(read(again), std::string(6000, '\0'));
  EXPECT_EQ(items(again, MDFS_KIND_EXTENTS), 0u);
  EXPECT_FALSE(among_orphans(again));
}

// Cells that a crash left beside the extents go with the next mount, or with the file.
TEST_F(BecomingTest, CellsThatACrashLeftAreFreed) {
  for (const bool removed : {false, true}) {
    const Ino plain = make_file("plain"), ino = make_file("f");
    const std::string text = text_of(6000, 5);
    write(plain, 0, text);
    write(ino, 0, text);
    ASSERT_OK(become(ino, image_of(20, 300)));
    EXPECT_OK(volume().sync());
    const auto back = store().transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
      const format::Key cell{plain, MDFS_KIND_FILE_CELL, 0};
      MDFS_TRY_ASSIGN(const auto item, transaction.get(cell));
      if (!item) return {Errc::kNotFound, "no cell"};
      transaction.put({ino, MDFS_KIND_FILE_CELL, 0}, *item);
      transaction.erase(cell);
      MDFS_TRY_ASSIGN(format::Inode inode, read_inode(transaction, plain));
      inode.stored_bytes = 0;
      put_inode(transaction, plain, inode);
      transaction.put(orphan_key(ino), {});
      return {};
    });
    ASSERT_OK(back);
    if (removed) {
      EXPECT_OK(volume().unlink(kRootIno, "f"));
      volume().forget(ino, 1);
    }
    mount();
    EXPECT_OK(volume().sync());
    EXPECT_EQ(items(ino, MDFS_KIND_FILE_CELL), 0u);
    EXPECT_FALSE(among_orphans(ino));
    if (!removed) {
      EXPECT_TRUE(read(stat(kRootIno, "f").ino) == text);
      EXPECT_OK(volume().unlink(kRootIno, "f"));
    }
    EXPECT_OK(volume().unlink(kRootIno, "plain"));
  }
}

RC_GTEST_FIXTURE_PROP(BecomingTest, EqualsThePlainBytes, ()) {
  const auto height = *rc::gen::inRange<std::size_t>(1, 60);
  const auto width = *rc::gen::inRange<std::size_t>(1, 4000);
  const auto side = *rc::gen::elementOf(std::vector<std::uint64_t>{8, 33, 256});
  const auto codec = *rc::gen::elementOf(std::vector{geometry::Codec::kRaw, geometry::Codec::kZstd});
  const auto writes = *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, height * width), rc::gen::inRange<std::size_t>(1, 50'000)));
  const Ino ino = make_file("p" + std::to_string(volume().space().objects));
  std::string expected(height * width, '\0');
  SetAttributes size;
  size.size_bytes = expected.size();
  RC_ASSERT(volume().set_attributes(ino, size).ok());
  unsigned seed = 0;
  for (const auto& [at, length] : writes) {
    const std::string text = text_of(std::min(length, expected.size() - at), ++seed);
    write(ino, at, text);
    expected.replace(at, text.size(), text);
    if (seed % 3 == 0) RC_ASSERT(volume().sync().ok());
  }
  RC_ASSERT(become(ino, image_of(height, width, side, codec)).ok());
  RC_ASSERT(read(ino, 0, expected.size()) == expected);
  RC_ASSERT(volume().image_info(ino).ok());
}

}  // namespace
}  // namespace mdfs::volume
