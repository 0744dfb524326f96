// Orphans: data live as long as somebody holds the file, and no longer.
// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "format/key.h"
#include "volume/volume_impl.h"

namespace mdfs::volume {
namespace {

class OrphansTest : public VolumeTest {
 protected:
  bool exists(Ino ino) { return store().get({ino, MDFS_KIND_INODE, 0})->has_value(); }
  std::size_t orphans() {
    return store()
        .scan({MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, 0}, {MDFS_OBJECT_VOLUME, MDFS_KIND_ORPHAN, UINT64_MAX}, 99)
        ->size();
  }
};

TEST_F(OrphansTest, AnUnlinkedFileIsReadAndWrittenUntilItsLastHoldIsGone) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().open_file(f, false));
  write(f, 0, "hello");
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  EXPECT_EQ(orphans(), 1u);
  volume().forget(f, 1);
  EXPECT_EQ(read(f), "hello");
  write(f, 5, " there");
  EXPECT_EQ(read(f), "hello there");
  EXPECT_EQ(stat(f).links, 0u);
  EXPECT_OK(volume().fsync(f, false));
  volume().release_file(f);
  EXPECT_FALSE(exists(f));
  EXPECT_EQ(orphans(), 0u);
  EXPECT_EQ(volume().space().objects, 1u);
}

TEST_F(OrphansTest, AFileThatIsNotHeldIsFreedAtOnce) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().set_xattr(f, "user.a", as_bytes("v"), XattrMode::kSet));
  write(f, 0, "data");
  volume().forget(f, 1);
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  EXPECT_FALSE(exists(f));
  EXPECT_TRUE(store().scan({f, 0, 0}, {f, UINT64_MAX, UINT64_MAX}, 9)->empty());
}

TEST_F(OrphansTest, ItemsOfKindsThatANewerVersionKnowsStayWithTheirObjectAndGoWithIt) {
  const Ino f = make_file("f");
  const store::Key newer{f, MDFS_KIND_EXTENTS | 1u << 8, 3};
  const ByteVector value = {std::byte{1}, std::byte{2}};
  ASSERT_OK(store().transact(store::Purpose::kNormal, [&](store::Transaction& transaction) -> Status {
    for (std::uint64_t i = 0; i < 700; ++i) transaction.put({f, 200, i}, value);
    transaction.put(newer, value);
    return {};
  }));
  write(f, 0, std::string(300'000, 'x'));
  EXPECT_OK(volume().rename(kRootIno, "f", kRootIno, "g", RenameMode::kReplace));
  EXPECT_EQ(*store().get(newer), std::optional(value));
  volume().forget(f, 1);
  EXPECT_OK(volume().unlink(kRootIno, "g"));
  EXPECT_TRUE(store().scan({f, 0, 0}, {f, UINT64_MAX, UINT64_MAX}, 9)->empty());
}

TEST_F(OrphansTest, AReplacedFileIsAnOrphanWhileItIsOpen) {
  make_file("new");
  const Ino old = make_file("old");
  EXPECT_OK(volume().open_file(old, false));
  write(old, 0, "old bytes");
  EXPECT_OK(volume().rename(kRootIno, "new", kRootIno, "old", RenameMode::kReplace));
  EXPECT_EQ(read(old), "old bytes");
  volume().forget(old, 1);
  EXPECT_TRUE(exists(old));
  volume().release_file(old);
  EXPECT_FALSE(exists(old));
}

TEST_F(OrphansTest, AnOrphanGetsNoNewName) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  EXPECT_ERROR(Errc::kNotFound, volume().link(f, kRootIno, "g"));
  volume().forget(f, 1);
  EXPECT_FALSE(exists(f));
}

TEST_F(OrphansTest, ARemovedDirectoryIsFreedWhenForgotten) {
  const Ino d = make_directory("d");
  EXPECT_OK(volume().remove_directory(kRootIno, "d"));
  EXPECT_TRUE(exists(d));
  volume().forget(d, 1);
  EXPECT_FALSE(exists(d));
}

TEST_F(OrphansTest, NoInodeStaysInMemoryWithoutAReason) {
  auto& table = static_cast<VolumeImpl&>(volume());
  for (int i = 0; i < 100; ++i) {
    const Ino f = make_file("f" + std::to_string(i));
    volume().forget(f, 1);
  }
  EXPECT_EQ(table.inodes_in_memory(), 0u);
  for (int i = 0; i < 1500; ++i) {
    const Ino f = make_file("g" + std::to_string(i));
    EXPECT_OK(volume().open_file(f, false));
    write(f, 0, "x");
    volume().release_file(f);
    volume().forget(f, 1);
  }
  EXPECT_LE(table.inodes_in_memory(), 1024u) << "contents are kept open for a while, but not for ever more files";
  EXPECT_OK(volume().close());
  EXPECT_EQ(table.inodes_in_memory(), 0u);
}

}  // namespace
}  // namespace mdfs::volume
