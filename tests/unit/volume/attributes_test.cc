// Attributes: chmod, chown, times, and what data do to them.
// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

namespace mdfs::volume {
namespace {

using AttributesTest = VolumeTest;

TEST_F(AttributesTest, TimesAreKeptToTheNanosecond) {
  const Ino f = make_file("f");
  const auto set = volume().set_attributes(f, {.atime_ns = -5, .mtime_ns = 1'234'567'890'123'456'789});
  ASSERT_OK(set);
  EXPECT_EQ(set->atime_ns, -5);
  EXPECT_EQ(stat(f).mtime_ns, 1'234'567'890'123'456'789);
  EXPECT_GT(stat(f).ctime_ns, stat(f).btime_ns);
  EXPECT_OK(volume().set_attributes(f, {.mtime_now = true}));
  EXPECT_GT(stat(f).mtime_ns, stat(f).btime_ns);
  EXPECT_EQ(stat(f).atime_ns, -5);
}

TEST_F(AttributesTest, ChownTakesSetuidAndSetgidFromFiles) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().set_attributes(f, {.mode = 06755}));
  EXPECT_OK(volume().set_attributes(f, {.uid = 5}));
  EXPECT_EQ(stat(f).mode & 07777, 0755u);
  EXPECT_OK(volume().set_attributes(f, {.mode = 02644}));
  EXPECT_OK(volume().set_attributes(f, {.gid = 5}));
  EXPECT_EQ(stat(f).mode & 07777, 02644u) << "without group execution setgid means mandatory locking";
  EXPECT_OK(volume().set_attributes(f, {.gid = 6, .by_outsider = true}));
  EXPECT_EQ(stat(f).mode & 07777, 0644u) << "a stranger to the group takes it all the same";
  const Ino d = make_directory("d");
  EXPECT_OK(volume().set_attributes(d, {.mode = 02755}));
  EXPECT_OK(volume().set_attributes(d, {.gid = 5}));
  EXPECT_EQ(stat(d).mode & 07777, 02755u);
}

TEST_F(AttributesTest, WhoChangesAFileTakesSetuidSetgidAndCapabilities) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().set_attributes(f, {.gid = 7}));
  const Caller stranger{.uid = 5, .gid = 5, .umask = 0, .groups = {6}},
      member{.uid = 5, .gid = 5, .umask = 0, .groups = {6, 7}};
  struct Case {
    const Caller& caller;
    mode_t before, after;
  };
  for (const Case& one :
       {Case{stranger, 06755, 0755}, Case{stranger, 06745, 0745}, Case{stranger, 02745, 0745},
        Case{stranger, 0644, 0644}, Case{member, 06755, 0755}, Case{member, 06745, 02745}, Case{root_, 06755, 06755}}) {
    EXPECT_OK(volume().set_attributes(f, {.mode = one.before}));
    for (unsigned i = 0; i < 2; ++i) {
      EXPECT_OK(volume().drop_privileges(f, [&] { return one.caller; }));
      EXPECT_EQ(stat(f).mode & 07777, one.after) << one.caller.uid << " of " << std::oct << one.before;
    }
  }
}

TEST_F(AttributesTest, WhoChangesAFileTakesItsCapabilitiesAlsoIfThatIsRoot) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().set_xattr(f, "security.capability", as_bytes("x"), XattrMode::kSet));
  EXPECT_OK(volume().drop_privileges(f, [&] { return root_; }));
  EXPECT_ERROR(Errc::kNoData, volume().get_xattr(f, "security.capability"));
}

TEST_F(AttributesTest, WhoChangesAFileWithoutPrivilegesIsNotAskedFor) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().drop_privileges(f, []() -> Caller { throw std::logic_error("asked"); }));
}

TEST_F(AttributesTest, WritesMoveSizeTimesAndGeneration) {
  const Ino f = make_file("f");
  const Attributes before = stat(f);
  write(f, 10, "0123456789");
  const Attributes after = stat(f);
  EXPECT_EQ(after.size_bytes, 20u);
  EXPECT_GT(after.mtime_ns, before.mtime_ns);
  EXPECT_EQ(after.mtime_ns, after.ctime_ns);
  EXPECT_NE(after.data_generation, before.data_generation);
  EXPECT_GT(after.stored_bytes, 0u);
  write(f, 0, "x");
  EXPECT_NE(stat(f).data_generation, after.data_generation);
  EXPECT_OK(volume().fsync(f, false));
  EXPECT_OK(volume().set_attributes(f, {.mode = 0600}));
  EXPECT_EQ(stat(f).size_bytes, 20u);
}

TEST_F(AttributesTest, TheItemHoldsSizeAndTimesAfterFsync) {
  const Ino f = make_file("f");
  write(f, 0, "0123456789");
  const auto size_in_tree = [&] {
    return load_le<std::uint64_t>(**store().get({f, MDFS_KIND_INODE, 0}), offsetof(mdfs_inode, size));
  };
  EXPECT_EQ(size_in_tree(), 0u) << "the item's size only grows together with the data";
  EXPECT_OK(volume().fsync(f, false));
  EXPECT_EQ(size_in_tree(), 10u);
  EXPECT_EQ(load_le<std::int64_t>(**store().get({f, MDFS_KIND_INODE, 0}), offsetof(mdfs_inode, mtime_ns)),
            stat(f).mtime_ns);
}

TEST_F(AttributesTest, SetTimesPrevailOverEarlierWrites) {
  const Ino f = make_file("f");
  write(f, 0, "x");
  EXPECT_OK(volume().set_attributes(f, {.mtime_ns = 42}));
  EXPECT_EQ(stat(f).mtime_ns, 42);
  EXPECT_OK(volume().fsync(f, false));
  EXPECT_EQ(stat(f).mtime_ns, 42);
  write(f, 0, "y");
  EXPECT_GT(stat(f).mtime_ns, 42);
}

TEST_F(AttributesTest, RelatimeMovesTheAccessTimeWhenItIsOlderThanTheData) {
  const Ino f = make_file("f");
  write(f, 0, "x");
  read(f);
  const std::int64_t first = stat(f).atime_ns;
  EXPECT_GT(first, stat(f).mtime_ns);
  read(f);
  EXPECT_EQ(stat(f).atime_ns, first);
  environment_.advance_ns(86'400'000'000'000);
  read(f);
  EXPECT_GT(stat(f).atime_ns, first);
  const Ino d = make_directory("d");
  make_file("g", d);
  names(d);
  EXPECT_GT(stat(d).atime_ns, stat(d).mtime_ns);
}

TEST_F(AttributesTest, TruncationOfWhatHasNoDataIsRefused) {
  EXPECT_ERROR(Errc::kIsDirectory, volume().set_attributes(make_directory("d"), {.size_bytes = 0}));
  const auto fifo = volume().make_node(kRootIno, "p", S_IFIFO | 0600, 0, root_);
  EXPECT_ERROR(Errc::kInvalidArgument, volume().set_attributes(fifo->ino, {.size_bytes = 0}));
  const Ino f = make_file("f");
  EXPECT_ERROR(Errc::kTooBig, volume().set_attributes(f, {.size_bytes = (1ull << 62) + 1}));
  EXPECT_ERROR(Errc::kTooBig, volume().write(f, (1ull << 62) - 1, as_bytes("ab"), false));
  EXPECT_ERROR(Errc::kTooBig, volume().write(f, UINT64_MAX, as_bytes("ab"), false));
}

TEST_F(AttributesTest, AClosedVolumeIsReadOnly) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().close());
  EXPECT_ERROR(Errc::kReadOnly, volume().make_directory(kRootIno, "d", 0755, root_));
  EXPECT_ERROR(Errc::kReadOnly, volume().write(f, 0, as_bytes("x"), false));
  EXPECT_ERROR(Errc::kReadOnly, volume().set_attributes(f, {.mode = 0}));
  EXPECT_ERROR(Errc::kReadOnly, volume().unlink(kRootIno, "f"));
}

}  // namespace
}  // namespace mdfs::volume
