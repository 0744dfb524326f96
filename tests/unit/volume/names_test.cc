// Names: making, looking up, linking, removing.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include "fixture.h"

namespace mdfs::volume {
namespace {

using NamesTest = VolumeTest;

TEST_F(NamesTest, WhatIsMadeIsFoundWithItsOwnerModeAndTimes) {
  const auto made = volume().make_node(kRootIno, "f", S_IFREG | 0666, 0, user_);
  ASSERT_OK(made);
  const Attributes found = stat(kRootIno, "f");
  EXPECT_EQ(found.ino, made->ino);
  EXPECT_EQ(found.mode, mode_t{S_IFREG | 0644}) << "less the umask";
  EXPECT_EQ(found.uid, 1000u);
  EXPECT_EQ(found.gid, 1000u);
  EXPECT_EQ(found.links, 1u);
  EXPECT_EQ(found.size_bytes, 0u);
  EXPECT_GT(found.btime_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(found.btime_ns, found.mtime_ns);
  EXPECT_EQ(found.btime_ns, found.ctime_ns);
}

TEST_F(NamesTest, DirectoriesCountTheirSubdirectories) {
  const Ino a = make_directory("a");
  EXPECT_EQ(stat(a).links, 2u);
  EXPECT_EQ(stat(kRootIno).links, 3u);
  make_directory("b", a);
  make_file("f", a);
  EXPECT_EQ(stat(a).links, 3u);
  EXPECT_OK(volume().remove_directory(a, "b"));
  EXPECT_EQ(stat(a).links, 2u);
}

TEST_F(NamesTest, DotAndDotDotLeadWhereTheyShould) {
  const Ino a = make_directory("a");
  const Ino b = make_directory("b", a);
  EXPECT_EQ(stat(b, ".").ino, b);
  EXPECT_EQ(stat(b, "..").ino, a);
  EXPECT_EQ(stat(kRootIno, "..").ino, kRootIno);
}

TEST_F(NamesTest, SetgidDirectoriesGiveTheirGroupAndDirectoriesTheBit) {
  const Ino d = make_directory("d");
  EXPECT_OK(volume().set_attributes(d, {.mode = 02777, .gid = 77}));
  const auto file = volume().make_node(d, "f", S_IFREG | 0644, 0, user_);
  const auto below = volume().make_directory(d, "e", 0755, user_);
  EXPECT_EQ(file->gid, 77u);
  EXPECT_EQ(file->mode & 07777, 0644u);
  EXPECT_EQ(below->gid, 77u);
  EXPECT_EQ(below->mode & 07777, 02755u);
  const auto tool = volume().make_node(d, "t", S_IFREG | 02755, 0, user_);
  EXPECT_EQ(tool->mode & 07777, 0755u) << "no setgid file for a group that the caller is not in";
}

TEST_F(NamesTest, NamesThatCannotBeAreRefused) {
  EXPECT_ERROR(Errc::kNameTooLong, volume().make_directory(kRootIno, std::string(256, 'n'), 0755, root_));
  EXPECT_OK(volume().make_directory(kRootIno, std::string(255, 'n'), 0755, root_));
  EXPECT_ERROR(Errc::kNotFound, volume().make_directory(kRootIno, "", 0755, root_));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().make_directory(kRootIno, "a/b", 0755, root_));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().make_directory(kRootIno, std::string_view("a\0b", 3), 0755, root_));
  EXPECT_ERROR(Errc::kExists, volume().make_directory(kRootIno, "..", 0755, root_));
  EXPECT_EQ(lookup_error(kRootIno, std::string(256, 'n')), Errc::kNameTooLong);
}

TEST_F(NamesTest, ReservedNamesCannotBeMadeLinkedOrRenamedTo) {
  const Ino f = make_file("f");
  const Ino d = make_directory("d");
  for (const std::string_view name : {"scan@", "@", ".mdfs"}) {
    EXPECT_ERROR(Errc::kInvalidArgument, volume().make_node(kRootIno, name, S_IFREG | 0644, 0, root_));
    EXPECT_ERROR(Errc::kInvalidArgument, volume().make_directory(kRootIno, name, 0755, root_));
    EXPECT_ERROR(Errc::kInvalidArgument, volume().make_symlink(kRootIno, name, "x", root_));
    EXPECT_ERROR(Errc::kInvalidArgument, volume().link(f, kRootIno, name));
    EXPECT_ERROR(Errc::kInvalidArgument, volume().rename(kRootIno, "f", kRootIno, name, RenameMode::kReplace));
    EXPECT_EQ(lookup_error(kRootIno, name), Errc::kNotFound);
  }
  EXPECT_OK(volume().make_directory(d, ".mdfs", 0755, root_));
}

TEST_F(NamesTest, ANameExistsOnce) {
  make_file("f");
  EXPECT_ERROR(Errc::kExists, volume().make_node(kRootIno, "f", S_IFREG | 0644, 0, root_));
  EXPECT_ERROR(Errc::kExists, volume().make_directory(kRootIno, "f", 0755, root_));
  EXPECT_ERROR(Errc::kExists, volume().make_symlink(kRootIno, "f", "x", root_));
}

TEST_F(NamesTest, OnlyDirectoriesHoldNames) {
  const Ino f = make_file("f");
  EXPECT_EQ(lookup_error(f, "x"), Errc::kNotDirectory);
  EXPECT_ERROR(Errc::kNotDirectory, volume().make_directory(f, "x", 0755, root_));
  EXPECT_ERROR(Errc::kNotDirectory, volume().read_directory(f, 0, 10));
}

TEST_F(NamesTest, SymbolicLinksHoldTheirTarget) {
  const std::string longest(4095, 't');
  const auto made = volume().make_symlink(kRootIno, "s", longest, user_);
  ASSERT_OK(made);
  EXPECT_EQ(made->mode, mode_t{S_IFLNK | 0777});
  EXPECT_EQ(made->size_bytes, 4095u);
  EXPECT_EQ(*volume().read_symlink(made->ino), longest);
  EXPECT_ERROR(Errc::kNameTooLong, volume().make_symlink(kRootIno, "s2", longest + "t", user_));
  EXPECT_ERROR(Errc::kNotFound, volume().make_symlink(kRootIno, "s3", "", user_));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().read_symlink(make_file("f")));
}

TEST_F(NamesTest, SpecialFilesKeepTheirTypeAndDevice) {
  const auto block = volume().make_node(kRootIno, "b", S_IFBLK | 0600, 0x0801, root_);
  const auto fifo = volume().make_node(kRootIno, "p", S_IFIFO | 0600, 5, root_);
  EXPECT_EQ(stat(block->ino).mode, mode_t{S_IFBLK | 0600});
  EXPECT_EQ(stat(block->ino).device, 0x0801u);
  EXPECT_EQ(stat(fifo->ino).device, 0u);
  EXPECT_ERROR(Errc::kInvalidArgument, volume().make_node(kRootIno, "d", S_IFDIR | 0700, 0, root_));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().open_file(block->ino, false));
  const auto entries = volume().read_directory(kRootIno, 2, 10);
  for (const DirectoryEntry& entry : *entries) EXPECT_EQ(entry.type, entry.name == "b" ? DT_BLK : DT_FIFO);
}

TEST_F(NamesTest, HardLinksShareTheInode) {
  const Ino f = make_file("f");
  const Ino d = make_directory("d");
  const auto linked = volume().link(f, d, "g");
  ASSERT_OK(linked);
  EXPECT_EQ(linked->ino, f);
  EXPECT_EQ(linked->links, 2u);
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  EXPECT_EQ(stat(d, "g").links, 1u);
  EXPECT_ERROR(Errc::kNotPermitted, volume().link(d, kRootIno, "e"));
  EXPECT_ERROR(Errc::kExists, volume().link(f, d, "g"));
}

TEST_F(NamesTest, AFileHasAtMost65000Links) {
  const Ino f = make_file("f0");
  for (int i = 1; i < 65000; ++i) ASSERT_OK(volume().link(f, kRootIno, "f" + std::to_string(i)));
  EXPECT_ERROR(Errc::kTooManyLinks, volume().link(f, kRootIno, "one more"));
}

TEST_F(NamesTest, UnlinkAndRmdirKnowTheirOwn) {
  make_file("f");
  const Ino d = make_directory("d");
  make_file("x", d);
  EXPECT_ERROR(Errc::kIsDirectory, volume().unlink(kRootIno, "d"));
  EXPECT_ERROR(Errc::kNotDirectory, volume().remove_directory(kRootIno, "f"));
  EXPECT_ERROR(Errc::kNotEmpty, volume().remove_directory(kRootIno, "d"));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().remove_directory(d, "."));
  EXPECT_ERROR(Errc::kNotEmpty, volume().remove_directory(d, ".."));
  EXPECT_ERROR(Errc::kNotFound, volume().unlink(kRootIno, "nobody"));
  EXPECT_OK(volume().unlink(d, "x"));
  EXPECT_OK(volume().remove_directory(kRootIno, "d"));
  EXPECT_EQ(lookup_error(kRootIno, "d"), Errc::kNotFound);
}

TEST_F(NamesTest, NothingIsMadeInARemovedDirectory) {
  const Ino d = make_directory("d");
  EXPECT_OK(volume().remove_directory(kRootIno, "d"));
  EXPECT_ERROR(Errc::kNotFound, volume().make_directory(d, "e", 0755, root_));
  EXPECT_TRUE(names(d).empty());
}

TEST_F(NamesTest, ChangesOfADirectorySetItsTimes) {
  const Ino d = make_directory("d");
  const Attributes before = stat(d);
  const Ino f = make_file("f", d);
  const Attributes after = stat(d);
  EXPECT_GT(after.mtime_ns, before.mtime_ns);
  EXPECT_EQ(after.mtime_ns, after.ctime_ns);
  const Attributes file = stat(f);
  EXPECT_OK(volume().link(f, d, "g"));
  EXPECT_OK(volume().unlink(d, "f"));
  EXPECT_GT(stat(f).ctime_ns, file.ctime_ns);
  EXPECT_EQ(stat(f).mtime_ns, file.mtime_ns);
  EXPECT_GT(stat(d).mtime_ns, after.mtime_ns);
}

TEST_F(NamesTest, AttributesOf64KiBReadBackAndLeaveNothingBehind) {
  const Ino f = make_file("f");
  const auto items = [&] {
    return volume().store().scan({f, MDFS_KIND_INODE, 1}, {f, UINT64_MAX, UINT64_MAX}, 100)->size();
  };
  const std::size_t none = items();
  std::string text;
  for (const std::size_t bytes : {65536u, 4096u, 4097u, 10240u, 10241u, 65535u, 1u, 65536u, 20000u}) {
    while (text.size() < bytes) text += std::to_string(text.size());
    const std::string value = text.substr(text.size() - bytes);
    ASSERT_OK(volume().set_xattr(f, "user.long", as_bytes(value), XattrMode::kSet));
    const auto got = volume().get_xattr(f, "user.long");
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(as_text(*got), value) << bytes;
    EXPECT_EQ(items() - none, bytes <= 4096 ? 1 : 1 + (bytes - 4096 + 6143) / 6144) << bytes;
  }
  EXPECT_EQ(volume().list_xattrs(f)->size(), 1u);
  EXPECT_OK(volume().remove_xattr(f, "user.long"));
  EXPECT_EQ(items(), none);
}

TEST_F(NamesTest, AttributesOfAllKindsAndNoMoreThanThereIsRoomFor) {
  const Ino f = make_file("f");
  const auto set = [&](std::string_view name, std::size_t bytes, XattrMode mode = XattrMode::kSet) {
    return volume().set_xattr(f, name, ByteVector(bytes, std::byte{'v'}), mode);
  };
  EXPECT_OK(set("user.a", 4096));
  EXPECT_OK(set("trusted.b", 0));
  EXPECT_OK(set("security.c", 1));
  EXPECT_ERROR(Errc::kNoSpace, set("user.big", 65537));
  EXPECT_ERROR(Errc::kNotSupported, set("system.other", 1));
  EXPECT_ERROR(Errc::kNotSupported, set("nothing", 1));
  EXPECT_ERROR(Errc::kInvalidArgument, set("user.", 1));
  EXPECT_ERROR(Errc::kOutOfRange, set("user." + std::string(251, 'n'), 1));
  EXPECT_OK(set("user." + std::string(250, 'n'), 1));
  EXPECT_ERROR(Errc::kExists, set("user.a", 1, XattrMode::kCreate));
  EXPECT_ERROR(Errc::kNoData, set("user.z", 1, XattrMode::kReplace));
  EXPECT_OK(set("user.a", 2, XattrMode::kReplace));
  EXPECT_EQ(volume().get_xattr(f, "user.a")->size(), 2u);
  EXPECT_EQ(volume().get_xattr(f, "trusted.b")->size(), 0u);
  EXPECT_EQ(volume().list_xattrs(f)->size(), 4u);
  EXPECT_OK(volume().remove_xattr(f, "user.a"));
  EXPECT_ERROR(Errc::kNoData, volume().get_xattr(f, "user.a"));
  EXPECT_ERROR(Errc::kNoData, volume().remove_xattr(f, "user.a"));
  const auto fifo = volume().make_node(kRootIno, "p", S_IFIFO | 0600, 0, root_);
  EXPECT_ERROR(Errc::kNotPermitted, volume().set_xattr(fifo->ino, "user.a", {}, XattrMode::kSet));
}

}  // namespace
}  // namespace mdfs::volume
