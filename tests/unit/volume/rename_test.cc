// rename(2).
// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

namespace mdfs::volume {
namespace {

class RenameTest : public VolumeTest {
 protected:
  Status rename(Ino parent, std::string_view name, Ino new_parent, std::string_view new_name,
                RenameMode mode = RenameMode::kReplace) {
    return volume().rename(parent, name, new_parent, new_name, mode);
  }
};

TEST_F(RenameTest, AFileMovesBetweenDirectories) {
  const Ino a = make_directory("a"), b = make_directory("b");
  const Ino f = make_file("f", a);
  EXPECT_OK(rename(a, "f", b, "g"));
  EXPECT_TRUE(names(a).empty());
  EXPECT_EQ(stat(b, "g").ino, f);
  EXPECT_EQ(stat(f).links, 1u);
}

TEST_F(RenameTest, ADirectoryTakesItsParentAndItsLinkAlong) {
  const Ino a = make_directory("a"), b = make_directory("b");
  const Ino c = make_directory("c", a);
  EXPECT_OK(rename(a, "c", b, "d"));
  EXPECT_EQ(stat(a).links, 2u);
  EXPECT_EQ(stat(b).links, 3u);
  EXPECT_EQ(stat(c, "..").ino, b);
  EXPECT_OK(volume().remove_directory(kRootIno, "a"));
}

TEST_F(RenameTest, TheReplacedFileLosesItsLink) {
  const Ino f = make_file("f"), g = make_file("g");
  EXPECT_OK(volume().link(g, kRootIno, "h"));
  EXPECT_OK(rename(kRootIno, "f", kRootIno, "g"));
  EXPECT_EQ(stat(kRootIno, "g").ino, f);
  EXPECT_EQ(stat(g).links, 1u);
  EXPECT_EQ(names(kRootIno), (std::vector<std::string>{"g", "h"}));
}

TEST_F(RenameTest, ADirectoryReplacesAnEmptyDirectoryOnly) {
  const Ino a = make_directory("a"), b = make_directory("b");
  make_file("x", b);
  EXPECT_ERROR(Errc::kNotEmpty, rename(kRootIno, "a", kRootIno, "b"));
  EXPECT_OK(rename(kRootIno, "b", kRootIno, "a"));
  EXPECT_EQ(stat(kRootIno, "a").ino, b);
  EXPECT_EQ(stat(kRootIno).links, 3u);
  EXPECT_EQ(stat(a).links, 0u);
}

TEST_F(RenameTest, TypesMustMatch) {
  make_directory("d");
  make_file("f");
  EXPECT_ERROR(Errc::kIsDirectory, rename(kRootIno, "f", kRootIno, "d"));
  EXPECT_ERROR(Errc::kNotDirectory, rename(kRootIno, "d", kRootIno, "f"));
}

TEST_F(RenameTest, ADirectoryDoesNotMoveBelowItself) {
  const Ino a = make_directory("a");
  const Ino b = make_directory("b", a);
  EXPECT_ERROR(Errc::kInvalidArgument, rename(kRootIno, "a", a, "x"));
  EXPECT_ERROR(Errc::kInvalidArgument, rename(kRootIno, "a", b, "x"));
  EXPECT_ERROR(Errc::kInvalidArgument, rename(kRootIno, "a", a, "b", RenameMode::kExchange));
  EXPECT_ERROR(Errc::kInvalidArgument, rename(a, "b", kRootIno, "a", RenameMode::kExchange));
  EXPECT_ERROR(Errc::kNotEmpty, rename(a, "b", kRootIno, "a"));
}

TEST_F(RenameTest, TwoNamesOfOneFileStayBoth) {
  const Ino f = make_file("f");
  EXPECT_OK(volume().link(f, kRootIno, "g"));
  EXPECT_OK(rename(kRootIno, "f", kRootIno, "g"));
  EXPECT_EQ(names(kRootIno), (std::vector<std::string>{"f", "g"}));
  EXPECT_OK(rename(kRootIno, "f", kRootIno, "f"));
  EXPECT_EQ(stat(f).links, 2u);
}

TEST_F(RenameTest, NoReplaceRefusesAndExchangeSwaps) {
  const Ino d = make_directory("d");
  const Ino f = make_file("f"), e = make_directory("e", d);
  EXPECT_ERROR(Errc::kExists, rename(kRootIno, "f", d, "e", RenameMode::kNoReplace));
  EXPECT_OK(rename(kRootIno, "f", d, "e", RenameMode::kExchange));
  EXPECT_EQ(stat(d, "e").ino, f);
  EXPECT_EQ(stat(kRootIno, "f").ino, e);
  EXPECT_EQ(stat(e, "..").ino, kRootIno);
  EXPECT_EQ(stat(d).links, 2u);
  EXPECT_EQ(stat(kRootIno).links, 4u);
  EXPECT_ERROR(Errc::kNotFound, rename(kRootIno, "f", d, "nobody", RenameMode::kExchange));
  EXPECT_OK(rename(d, "e", d, "g", RenameMode::kNoReplace));
}

TEST_F(RenameTest, NamesThatCannotBeAreRefused) {
  make_file("f");
  EXPECT_ERROR(Errc::kNotFound, rename(kRootIno, "nobody", kRootIno, "g"));
  EXPECT_ERROR(Errc::kInvalidArgument, rename(kRootIno, ".", kRootIno, "g"));
  EXPECT_ERROR(Errc::kBusy, rename(kRootIno, "f", kRootIno, ".."));
  EXPECT_ERROR(Errc::kNameTooLong, rename(kRootIno, "f", kRootIno, std::string(256, 'x')));
  EXPECT_EQ(names(kRootIno), std::vector<std::string>{"f"});
}

TEST_F(RenameTest, ReplacingWritesTheSourcesDataBackBefore) {
  const Ino f = make_file("f");
  make_file("g");
  write(f, 0, "new");
  EXPECT_OK(rename(kRootIno, "f", kRootIno, "g"));
  const auto item = store().get({f, MDFS_KIND_INODE, 0});
  EXPECT_EQ(load_le<std::uint64_t>(**item, offsetof(mdfs_inode, size)), 3u);
}

}  // namespace
}  // namespace mdfs::volume
