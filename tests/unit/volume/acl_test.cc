// POSIX access control lists.
// SPDX-License-Identifier: Apache-2.0
#include "volume/acl.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

namespace mdfs::volume {
namespace {

using Tag = AclEntry;

Acl with_user_and_mask(std::uint32_t uid, std::uint16_t permissions, std::uint16_t mask) {
  return {{Tag::kUserObject, 7, Tag::kNoId},
          {Tag::kUser, permissions, uid},
          {Tag::kGroupObject, 5, Tag::kNoId},
          {Tag::kMask, mask, Tag::kNoId},
          {Tag::kOther, 0, Tag::kNoId}};
}

Acl minimal(std::uint16_t user, std::uint16_t group, std::uint16_t other) {
  return {
      {Tag::kUserObject, user, Tag::kNoId}, {Tag::kGroupObject, group, Tag::kNoId}, {Tag::kOther, other, Tag::kNoId}};
}

TEST(AclTest, ListsSurviveEncoding) {
  const Acl acl = with_user_and_mask(1000, 6, 4);
  const auto again = parse_acl(encode_acl(acl));
  ASSERT_OK(again);
  EXPECT_EQ(*again, acl);
}

TEST(AclTest, NoBytesAndNoEntriesAreNoList) {
  EXPECT_TRUE(parse_acl({})->empty());
  EXPECT_TRUE(parse_acl(encode_acl({}))->empty());
}

TEST(AclTest, ListsThatLinuxRefusesAreRefused) {
  const auto refused = [](const Acl& acl) { return parse_acl(encode_acl(acl)); };
  Acl no_mask = with_user_and_mask(1000, 6, 4);
  no_mask.erase(no_mask.begin() + 3);
  EXPECT_ERROR(Errc::kInvalidArgument, refused(no_mask));
  Acl no_other = minimal(7, 5, 0);
  no_other.pop_back();
  EXPECT_ERROR(Errc::kInvalidArgument, refused(no_other));
  Acl twice = minimal(7, 5, 0);
  twice.push_back(twice.back());
  EXPECT_ERROR(Errc::kInvalidArgument, refused(twice));
  Acl swapped = minimal(7, 5, 0);
  std::swap(swapped[0], swapped[1]);
  EXPECT_ERROR(Errc::kInvalidArgument, refused(swapped));
  EXPECT_ERROR(Errc::kInvalidArgument, refused(minimal(8, 5, 0)));
  EXPECT_ERROR(Errc::kInvalidArgument, refused(with_user_and_mask(Tag::kNoId, 6, 4)));
  ByteVector short_value = encode_acl(minimal(7, 5, 0));
  short_value.pop_back();
  EXPECT_ERROR(Errc::kInvalidArgument, parse_acl(short_value));
  ByteVector other_version = encode_acl(minimal(7, 5, 0));
  other_version[0] = std::byte{3};
  EXPECT_ERROR(Errc::kNotSupported, parse_acl(other_version));
}

TEST(AclTest, TheMaskStandsForTheGroupBits) {
  EXPECT_EQ(mode_bits(with_user_and_mask(1000, 6, 4)), mode_t{0740});
  EXPECT_EQ(mode_bits(minimal(6, 4, 1)), mode_t{0641});
  Acl acl = with_user_and_mask(1000, 6, 4);
  change_mode(acl, 0123);
  EXPECT_EQ(mode_bits(acl), mode_t{0123});
  EXPECT_EQ(acl[2].permissions, 5) << "the owning group's own entry stays";
}

TEST(AclTest, AccessFollowsTheFirstEntryThatFits) {
  const Acl acl = with_user_and_mask(1000, 6, 4);  // others: nothing
  const Caller owner{500, 500, 0, {}}, named{1000, 1000, 0, {}}, member{600, 600, 0, {70}}, stranger{700, 700, 0, {}};
  const auto may = [&](const Caller& caller, int mask) { return may_access(acl, 0640, 500, 70, caller, mask); };
  EXPECT_TRUE(may(owner, R_OK | W_OK | X_OK));
  EXPECT_TRUE(may(named, R_OK));
  EXPECT_FALSE(may(named, W_OK)) << "masked";
  EXPECT_TRUE(may(member, R_OK));
  EXPECT_FALSE(may(member, X_OK)) << "masked";
  EXPECT_FALSE(may(stranger, R_OK));
}

TEST(AclTest, TheSuperuserExecutesOnlyWhatSomeUserMayExecute) {
  const Caller root{0, 0, 0, {}};
  EXPECT_TRUE(may_access({}, S_IFREG | 0000, 5, 5, root, R_OK | W_OK));
  EXPECT_FALSE(may_access({}, S_IFREG | 0666, 5, 5, root, X_OK));
  EXPECT_TRUE(may_access({}, S_IFREG | 0001, 5, 5, root, X_OK));
  EXPECT_TRUE(may_access({}, S_IFDIR | 0000, 5, 5, root, X_OK));
}

class VolumeAclTest : public VolumeTest {
 protected:
  Status set(Ino ino, std::string_view name, const Acl& acl) {
    return volume().set_xattr(ino, name, encode_acl(acl), XattrMode::kSet);
  }
  Acl get(Ino ino, std::string_view name) {
    const auto value = volume().get_xattr(ino, name);
    EXPECT_OK(value);
    return value.ok() ? *parse_acl(*value) : Acl{};
  }
};

TEST_F(VolumeAclTest, AnAccessListSetsTheModeAndAMinimalOneIsNotStored) {
  const Ino ino = make_file("f");
  EXPECT_OK(set(ino, kAccessAclName, with_user_and_mask(1000, 6, 6)));
  EXPECT_EQ(stat(ino).mode & 07777, 0760u);
  EXPECT_EQ(get(ino, kAccessAclName), with_user_and_mask(1000, 6, 6));
  EXPECT_OK(set(ino, kAccessAclName, minimal(6, 0, 4)));
  EXPECT_EQ(stat(ino).mode & 07777, 0604u);
  EXPECT_ERROR(Errc::kNoData, volume().get_xattr(ino, kAccessAclName));
}

TEST_F(VolumeAclTest, ChmodChangesTheMask) {
  const Ino ino = make_file("f");
  EXPECT_OK(set(ino, kAccessAclName, with_user_and_mask(1000, 6, 6)));
  EXPECT_OK(volume().set_attributes(ino, {.mode = 0410}));
  EXPECT_EQ(mode_bits(get(ino, kAccessAclName)), mode_t{0410});
  EXPECT_EQ(get(ino, kAccessAclName)[1].permissions, 6);
}

TEST_F(VolumeAclTest, OnlyDirectoriesHaveADefaultList) {
  EXPECT_ERROR(Errc::kAccessDenied, set(make_file("f"), kDefaultAclName, minimal(7, 5, 0)));
  EXPECT_OK(set(make_file("g"), kDefaultAclName, {}));
  const auto symlink = volume().make_symlink(kRootIno, "s", "target", root_);
  EXPECT_ERROR(Errc::kNotSupported, set(symlink->ino, kAccessAclName, minimal(7, 5, 0)));
}

TEST_F(VolumeAclTest, ChildrenInheritTheDefaultListInPlaceOfTheUmask) {
  const Ino directory = make_directory("d");
  EXPECT_OK(set(directory, kDefaultAclName, with_user_and_mask(1000, 7, 7)));
  const auto file = volume().make_node(directory, "f", S_IFREG | 0664, 0, user_);
  ASSERT_OK(file);
  EXPECT_EQ(file->mode & 0777, 0660u) << "the umask 0022 is not applied";
  Acl inherited = with_user_and_mask(1000, 7, 6);
  inherited[0].permissions = 6;
  EXPECT_EQ(get(file->ino, kAccessAclName), inherited);
  const auto below = volume().make_directory(directory, "e", 0777, user_);
  ASSERT_OK(below);
  EXPECT_EQ(get(below->ino, kDefaultAclName), with_user_and_mask(1000, 7, 7));
  EXPECT_EQ(below->mode & 0777, 0770u);
  const auto symlink = volume().make_symlink(directory, "s", "t", user_);
  EXPECT_ERROR(Errc::kNoData, volume().get_xattr(symlink->ino, kAccessAclName));
}

TEST_F(VolumeAclTest, RemovingAListThatIsNotThereIsFine) {
  const Ino ino = make_file("f");
  EXPECT_OK(volume().remove_xattr(ino, kAccessAclName));
}

TEST_F(VolumeAclTest, CheckAccessLooksAtModeGroupsAndList) {
  const Ino ino = make_file("f", kRootIno, 0640);
  EXPECT_OK(volume().set_attributes(ino, {.uid = 500, .gid = 2000}));
  EXPECT_OK(volume().check_access(ino, R_OK, user_));
  EXPECT_ERROR(Errc::kAccessDenied, volume().check_access(ino, W_OK, user_));
  EXPECT_OK(set(ino, kAccessAclName, with_user_and_mask(1000, 6, 6)));
  EXPECT_OK(volume().check_access(ino, W_OK, user_));
}

}  // namespace
}  // namespace mdfs::volume
