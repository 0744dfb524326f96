// Finding the disks of a volume by their labels.
// SPDX-License-Identifier: Apache-2.0
#include "device/find_disks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/crc32c.h"
#include "base/environment.h"
#include "format/commit.h"
#include "format/layout.h"
#include "temp_dir.h"

namespace mdfs::device {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDiskBytes = 4u << 20;

// A directory of files with labels and nothing else on them.
class FindDisks : public testing::Test {
 protected:
  // Labels of a new volume; disk i at folder/<prefix>i.
  Uuid make_volume(const std::string& prefix, unsigned disks) {
    format::Label label;
    label.volume_uuid = environment_.new_uuid();
    label.disk_blocks = kDiskBytes / 4096;
    label.room_blocks = 16 * label.disk_blocks;
    label.zone_blocks = 32;
    label.metadata_blocks = 64;
    label.name = prefix;
    for (unsigned i = 0; i < disks; ++i)
      label.members.push_back({.uuid = environment_.new_uuid(), .blocks = label.disk_blocks, .weight = 1});
    for (unsigned i = 0; i < disks; ++i) {
      label.disk_index = static_cast<std::uint16_t>(i);
      label.disk_uuid = label.members[i].uuid;
      write_labels(path(prefix + std::to_string(i)), label);
    }
    return label.volume_uuid;
  }

  static void write_labels(const std::string& path, format::Label label) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, kDiskBytes), 0);
    ByteVector sector(MDFS_SECTOR);
    const std::uint64_t places[] = {0, MDFS_LABEL_AREA, kDiskBytes - 2 * MDFS_LABEL_AREA, kDiskBytes - MDFS_LABEL_AREA};
    for (std::uint16_t number = 0; number < 4; ++number) {
      label.label_number = number;
      format::encode(label, sector);
      ASSERT_EQ(pwrite(fd, sector.data(), sector.size(), static_cast<off_t>(places[number])), 4096);
    }
    close(fd);
  }

  // Any label of a later version counts as such if its checksum is right: the rest of it may mean something else.
  static void put_u32(const std::string& path, std::uint64_t offset, std::uint32_t value) {
    const std::uint64_t label = offset / MDFS_SECTOR * MDFS_SECTOR;
    const int fd = open(path.c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    ByteVector sector(MDFS_SECTOR);
    ASSERT_EQ(pread(fd, sector.data(), sector.size(), static_cast<off_t>(label)), 4096);
    const auto put = [&](std::size_t at, std::uint32_t number) {
      for (unsigned i = 0; i < 4; ++i) sector[at + i] = static_cast<std::byte>(number >> (8 * i));
    };
    put(offset % MDFS_SECTOR, value);
    put(offsetof(mdfs_label, crc32c), 0);
    put(offsetof(mdfs_label, crc32c), crc32c(sector));
    ASSERT_EQ(pwrite(fd, sector.data(), sector.size(), static_cast<off_t>(label)), 4096);
    close(fd);
  }

  static void wipe(const std::string& path, std::uint64_t offset) {
    const int fd = open(path.c_str(), O_WRONLY);
    ASSERT_GE(fd, 0);
    const std::string zeros(4096, '\0');
    ASSERT_EQ(pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(offset)), 4096);
    close(fd);
  }

  // A disk that was away, and the last commit that it took part in.
  struct Away {
    std::size_t disk = 0;
    Uuid last;
  };

  // A committed slot in the first ring.
  static void put_commit(const std::string& path, std::uint64_t generation, const Uuid& commit, const Uuid& parent,
                         const std::vector<Away>& away = {}, std::uint8_t state = MDFS_SLOT_COMMITTED) {
    const auto label = read_label(path);
    ASSERT_TRUE(label.ok());
    format::CommitSlot slot;
    slot.state = state;
    slot.volume_uuid = label->volume_uuid;
    slot.commit_id = commit;
    slot.parent_id = parent;
    slot.generation = generation;
    slot.space.resize(label->members.size());
    slot.members = label->members;
    slot.participants = (std::uint64_t{1} << label->members.size()) - 1;
    const format::Address place{0, 40};
    slot.roots.push_back(
        {MDFS_ROOT_MAIN, 0, 1, 0, format::make_pointer(ByteVector(MDFS_NODE_SIZE), 1, {&place, 1}), {}});
    slot.states = format::member_states(slot, nullptr);
    for (const Away& one : away) {
      slot.participants &= ~(std::uint64_t{1} << one.disk);
      slot.states[one.disk] = {one.last, 1, 0};
    }
    ByteVector sector(MDFS_SLOT_SIZE);
    format::encode(slot, sector);
    const int fd = open(path.c_str(), O_WRONLY);
    ASSERT_GE(fd, 0);
    const unsigned ring = format::ring_slot(generation, slot.state);
    ASSERT_EQ(pwrite(fd, sector.data(), sector.size(), MDFS_SLOT_SIZE * (1 + off_t{ring})), MDFS_SLOT_SIZE);
    close(fd);
  }
  static void wipe_commits(const std::string& path) {
    for (unsigned ring = 0; ring < MDFS_RING_SLOTS; ++ring) wipe(path, std::uint64_t{MDFS_SLOT_SIZE} * (1 + ring));
  }
  Environment& environment() { return environment_; }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string folder() const { return folder_.path().string(); }

 private:
  SystemEnvironment environment_;
  test::TempDir folder_;
};

TEST_F(FindDisks, AnyOneDiskOrTheirDirectoryFindsAllInOrder) {
  const Uuid uuid = make_volume("a", 3);
  const std::vector<std::string> all = {path("a0"), path("a1"), path("a2")};
  for (const auto& named : {std::vector<std::string>{path("a1")}, {folder()}, {path("a2"), path("a0")}}) {
    const auto found = find_disks(named);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->volume_uuid, uuid);
    EXPECT_EQ(found->volume_name, "a");
    EXPECT_EQ(found->paths, all);
    EXPECT_TRUE(found->missing.empty());
  }
}

TEST_F(FindDisks, AnyOneLabelOfADiskIsEnough) {
  make_volume("a", 1);
  for (const std::uint64_t keep : {std::uint64_t{0}, std::uint64_t{MDFS_LABEL_AREA}, kDiskBytes - 2 * MDFS_LABEL_AREA,
                                   kDiskBytes - MDFS_LABEL_AREA}) {
    make_volume("b", 1);
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{MDFS_LABEL_AREA},
                                       kDiskBytes - 2 * MDFS_LABEL_AREA, kDiskBytes - MDFS_LABEL_AREA})
      if (offset != keep) wipe(path("b0"), offset);
    EXPECT_TRUE(read_label(path("b0")).ok()) << keep;
    wipe(path("b0"), keep);
    const auto none = read_label(path("b0"));
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Errc::kForeignDisk);
  }
}

TEST_F(FindDisks, AForgedLabelDoesNotStandInForAMember) {
  make_volume("a", 3);
  const Uuid first = environment().new_uuid(), second = environment().new_uuid();
  for (const char* name : {"a0", "a1", "a2"}) put_commit(path(name), 7, second, first);
  // A label like that of disk 2, alone or with a commit that it has made up; the disk itself is away or not.
  fs::copy_file(path("a2"), path("forged"));
  for (const bool away : {false, true}) {
    if (away) fs::remove(path("a2"));
    for (const bool with_commit : {false, true}) {
      wipe_commits(path("forged"));
      if (with_commit) put_commit(path("forged"), 900, environment().new_uuid(), environment().new_uuid());
      std::vector<std::string> expected = {path("a0"), path("a1")};
      if (!away) expected.push_back(path("a2"));
      for (const auto& named : {std::vector<std::string>{path("a0")}, {folder()}}) {
        const auto found = find_disks(named);
        ASSERT_TRUE(found.ok()) << found.error().message();
        EXPECT_EQ(found->paths, expected);
        EXPECT_EQ(found->missing.size(), away ? 1u : 0u);
      }
      // Who names it wants it looked at.
      const auto named = find_disks({path("a0"), path("forged")});
      ASSERT_TRUE(named.ok()) << named.error().message();
      EXPECT_EQ(named->paths[2], path("forged"));
    }
  }
}

TEST_F(FindDisks, ADiskThatMissedTheLastCommitsBelongsIfItKnowsOneOfThem) {
  make_volume("a", 2);
  const Uuid first = environment().new_uuid(), second = environment().new_uuid(), third = environment().new_uuid();
  put_commit(path("a0"), 7, second, first);
  put_commit(path("a0"), 8, third, second);
  put_commit(path("a1"), 7, second, first);
  const auto found = find_disks({path("a0")});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->paths.size(), 2u);
}

TEST_F(FindDisks, ADiskThatWasAwayForLongBelongsAndSoDoTheOthersWhereItIsTheOneThatIsNamed) {
  make_volume("a", 3);
  const Uuid common = environment().new_uuid(), first = environment().new_uuid(), second = environment().new_uuid();
  put_commit(path("a2"), 7, common, environment().new_uuid());
  for (const char* name : {"a0", "a1"}) put_commit(path(name), 40, second, first, {{2, common}});
  for (const auto& named : {std::vector<std::string>{path("a0")}, {path("a2")}, {folder()}}) {
    const auto found = find_disks(named);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->paths.size(), 3u);
  }
}

TEST_F(FindDisks, DisksThatWereWrittenApartLongAgoBelongTogetherSoThatTheyAreRefusedTogether) {
  make_volume("a", 2);
  const Uuid common = environment().new_uuid();
  put_commit(path("a0"), 40, environment().new_uuid(), environment().new_uuid(), {{1, common}});
  put_commit(path("a1"), 70, environment().new_uuid(), environment().new_uuid(), {{0, common}});
  for (const auto& named : {std::vector<std::string>{path("a0")}, {path("a1")}, {folder()}}) {
    const auto found = find_disks(named);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->paths.size(), 2u);
  }
}

TEST_F(FindDisks, ADiskThatWasRemovedAndThenWrittenAloneIsRefusedWithTheOthers) {
  for (const bool alone : {true, false}) {
    make_volume("a", 2);
    const Uuid common = environment().new_uuid();
    put_commit(path("a1"), 70, alone ? environment().new_uuid() : common, environment().new_uuid(),
               alone ? std::vector<Away>{{0, common}} : std::vector<Away>{});
    auto label = read_label(path("a0"));
    ASSERT_TRUE(label.ok());
    label->membership = 2;
    label->members.resize(1);
    write_labels(path("a0"), *label);
    put_commit(path("a0"), 40, environment().new_uuid(), common);
    // The volume of the first disk is whole without the other, which is then only reported.
    const auto own = find_disks({path("a0")});
    ASSERT_TRUE(own.ok()) << own.error().message();
    EXPECT_EQ(own->paths, std::vector<std::string>{path("a0")});
    EXPECT_EQ(own->written_apart, alone ? std::vector<std::string>{path("a1")} : std::vector<std::string>{});
    const std::set<Uuid> members = {label->disk_uuid};
    EXPECT_EQ(look_at_former_member(path("a1"), *read_label(path("a1")), members),
              alone ? FormerMember::kWrittenApart : FormerMember::kIsBehind);
    for (const auto& named : {std::vector<std::string>{path("a1")}, {path("a0"), path("a1")}, {folder()}}) {
      const auto found = find_disks(named);
      if (alone) {
        ASSERT_FALSE(found.ok());
        EXPECT_EQ(found.error().code, Errc::kFork);
        EXPECT_NE(found.error().where.find(path("a1")), std::string::npos) << found.error().message();
      } else {
        ASSERT_TRUE(found.ok()) << found.error().message();
        EXPECT_EQ(found->paths, std::vector<std::string>{path("a0")});
      }
    }
  }
}

// A power cut ended 'disk add': the new disk has its label and no commit, the others have the old table or the new one.
TEST_F(FindDisks, ADiskThatWasAboutToJoinLeadsToItsVolume) {
  for (const unsigned members : {1u, 2u}) {
    for (const bool tables_written : {false, true}) {
      make_volume("a", members);
      const Uuid last = environment().new_uuid();
      std::vector<std::string> all;
      for (unsigned i = 0; i < members; ++i) {
        all.push_back(path("a" + std::to_string(i)));
        put_commit(all.back(), 7, last, environment().new_uuid());
      }
      auto label = read_label(all[0]);
      ASSERT_TRUE(label.ok());
      label->membership = 2;
      label->disk_uuid = environment().new_uuid();
      label->disk_index = static_cast<std::uint16_t>(members);
      label->members.push_back({.uuid = label->disk_uuid, .blocks = label->disk_blocks, .weight = 1});
      write_labels(path("new"), *label);
      for (unsigned i = 0; tables_written && i < members; ++i) {
        label->disk_index = static_cast<std::uint16_t>(i);
        label->disk_uuid = label->members[i].uuid;
        write_labels(all[i], *label);
        put_commit(all[i], 7, last, environment().new_uuid());
      }
      EXPECT_EQ(look_at_former_member(path("new"), *read_label(path("new")), {}), FormerMember::kHoldsNothing);
      for (const auto& named : {std::vector<std::string>{path("new")}, {all[0]}, {folder()}}) {
        const auto found = find_disks(named);
        ASSERT_TRUE(found.ok()) << found.error().message();
        for (const std::string& disk : all) EXPECT_EQ(std::count(found->paths.begin(), found->paths.end(), disk), 1);
      }
    }
  }
}

// The next 'disk add' gave its number to another disk.
TEST_F(FindDisks, ADiskWhoseFirstCommitWasCutOffIsNoHalfOfAFork) {
  make_volume("a", 2);
  const Uuid last = environment().new_uuid();
  auto label = read_label(path("a0"));
  ASSERT_TRUE(label.ok());
  label->membership = 2;
  label->disk_uuid = environment().new_uuid();
  label->disk_index = 2;
  label->members.push_back({.uuid = label->disk_uuid, .blocks = label->disk_blocks, .weight = 1});
  write_labels(path("new"), *label);
  put_commit(path("new"), 8, environment().new_uuid(), last, {}, MDFS_SLOT_PREPARED);
  label->membership = 3;
  label->members.back().uuid = environment().new_uuid();
  for (const std::string name : {"a0", "a1", "b"}) {
    label->disk_index = name == "a0" ? 0 : name == "a1" ? 1 : 2;
    label->disk_uuid = label->members[label->disk_index].uuid;
    write_labels(path(name), *label);
    put_commit(path(name), 9, environment().new_uuid(), last);
  }
  EXPECT_EQ(look_at_former_member(path("new"), *read_label(path("new")), {label->disk_uuid}),
            FormerMember::kHoldsNothing);
  for (const auto& named : {std::vector<std::string>{path("a0")}, {path("a0"), path("new")}, {folder()}}) {
    const auto found = find_disks(named);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->paths.size(), 3u);
    EXPECT_EQ(std::count(found->paths.begin(), found->paths.end(), path("new")), 0);
    EXPECT_TRUE(found->written_apart.empty());
  }
}

TEST_F(FindDisks, ANamedDiskDoesNotOutvoteAsManyOthersThatDoNotKnowIt) {
  make_volume("a", 3);
  const Uuid first = environment().new_uuid(), second = environment().new_uuid();
  for (const char* name : {"a0", "a1"}) put_commit(path(name), 40, second, first);
  put_commit(path("a2"), 900, environment().new_uuid(), environment().new_uuid());
  for (const bool two : {true, false}) {
    if (!two) fs::remove(path("a1"));
    const auto found = find_disks({path("a2")});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Errc::kForeignDisk);
    EXPECT_NE(found.error().where.find("a0"), std::string::npos) << found.error().message();
    EXPECT_TRUE(find_disks({path("a2"), path("a0")}).ok()) << "which are to be looked at is said";
  }
  fs::remove(path("a0"));
  EXPECT_TRUE(find_disks({path("a2")}).ok()) << "the others are out of reach";
}

TEST_F(FindDisks, WhatIsMissingIsNamed) {
  make_volume("a", 3);
  fs::remove(path("a1"));
  const auto found = find_disks({path("a0")});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->paths, (std::vector<std::string>{path("a0"), path("a2")}));
  ASSERT_EQ(found->missing.size(), 1u);
  EXPECT_EQ(found->missing[0].find("disk 1 ("), 0u);
}

TEST_F(FindDisks, DisksOfOtherVolumesArePassedOverUnlessTheyAreNamed) {
  make_volume("a", 2);
  make_volume("b", 2);
  const auto found = find_disks({path("b0")});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->paths, (std::vector<std::string>{path("b0"), path("b1")}));
  EXPECT_EQ(find_disks({path("a0"), path("b0")}).error().code, Errc::kForeignDisk);
  EXPECT_EQ(find_disks({folder()}).error().code, Errc::kForeignDisk);
}

TEST_F(FindDisks, OneDiskTwiceAndCopiesAreRefused) {
  make_volume("a", 2);
  EXPECT_EQ(find_disks({path("a0"), path("a0")}).error().code, Errc::kInvalidArgument);
  fs::create_symlink(path("a0"), path("link"));
  EXPECT_EQ(find_disks({path("a0"), path("link")}).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(find_disks({path("a0")}).ok()) << "another name of the same file is no copy";
  fs::remove(path("link"));
  fs::copy_file(path("a1"), path("a1.copy"));
  EXPECT_FALSE(find_disks({folder()}).ok());
  EXPECT_FALSE(find_disks({path("a0")}).ok()) << "which of the two is meant?";
  const auto found = find_disks({path("a0"), path("a1.copy")});
  ASSERT_TRUE(found.ok()) << "the named one";
  EXPECT_EQ(found->paths[1], path("a1.copy"));
}

TEST_F(FindDisks, ADirectoryOfANewerVolumeIsRefusedAsSuch) {
  make_volume("a", 2);
  for (const char* name : {"a0", "a1"})
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{MDFS_LABEL_AREA},
                                      kDiskBytes - 2 * MDFS_LABEL_AREA, kDiskBytes - MDFS_LABEL_AREA})
      put_u32(path(name), place + offsetof(mdfs_label, format_version), MDFS_FORMAT_VERSION + 1);
  EXPECT_EQ(find_disks({path("a0")}).error().code, Errc::kNewerFormat);
  EXPECT_EQ(find_disks({folder()}).error().code, Errc::kNewerFormat);
  make_volume("b", 2);
  EXPECT_TRUE(find_disks({folder()}).ok()) << "the other volume is meant";
}

TEST_F(FindDisks, ABlankDiskBesideDisksOfAVolumeIsRefusedWithTheWayOut) {
  make_volume("a", 2);
  for (const std::string& name : {path("a0"), path("a1")}) put_commit(name, 7, Uuid{{1}}, Uuid{{2}});
  std::ofstream(path("blank")) << std::string(kDiskBytes, '\0');
  for (const auto& named : {std::vector<std::string>{path("a0"), path("blank")}, {path("blank"), path("a0")}}) {
    const auto found = find_disks(named);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Errc::kForeignDisk);
    for (const std::string& part : {path("blank"), path("a0"), std::string("mdfs disk add")})
      EXPECT_NE(found.error().where.find(part), std::string::npos) << found.error().message();
  }
  EXPECT_EQ(find_disks({path("blank")}).error().where, path("blank") + " holds no MDFS volume");
}

TEST_F(FindDisks, NonsenseIsRefused) {
  EXPECT_FALSE(find_disks({}).ok());
  EXPECT_FALSE(find_disks({path("nowhere")}).ok());
  EXPECT_FALSE(find_disks({folder()}).ok());
  EXPECT_FALSE(find_disks({"/dev/null"}).ok());
  EXPECT_FALSE(find_disks({"UUID=nonsense"}).ok());
  EXPECT_EQ(find_disks({"UUID=12345678-1234-4234-8234-123456789abc"}).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace mdfs::device
