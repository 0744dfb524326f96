// The table of files that will become chunks.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/staged_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mdfs::fuse {
namespace {

StagedFiles::Request request(const std::string& key, uid_t uid = 1000) {
  return {.key = key, .image = 20, .chunk = {}, .is_lock = false, .uid = uid, .gid = 0, .mode = 0644};
}

TEST(StagedFiles, AClosedFileWaitsForItsRename) {
  StagedFiles files;
  const auto file = *files.open(request("a"), nullptr);
  const StagedNumber number = file->number;
  EXPECT_EQ(files.find("a"), file);
  files.close(file);
  EXPECT_EQ(files.find("a"), file);
  files.remove(*file);
  EXPECT_EQ(files.find("a"), nullptr);
  EXPECT_GT((*files.open(request("a"), nullptr))->number, number) << "another file";
}

TEST(StagedFiles, AnOpenFileOutlivesItsName) {
  StagedFiles files;
  const auto file = *files.open(request("a"), nullptr);
  files.remove(*file);
  EXPECT_EQ(files.find("a"), nullptr);
  EXPECT_FALSE(files.has_name(*file));
  files.reopen(*file);  // by a caller who looked it up before
  const auto next = *files.open(request("a"), nullptr);
  EXPECT_NE(next, file);
  files.close(file);
  files.close(file);
  EXPECT_EQ(files.find("a"), next);
}

TEST(StagedFiles, ALockGoesWithItsLastDescriptor) {
  StagedFiles files;
  auto lock = request("a");
  lock.is_lock = true;
  const auto file = *files.open(lock, nullptr);
  EXPECT_EQ(*files.open(lock, nullptr), file) << "the same file again";
  files.close(file);
  EXPECT_EQ(files.find("a"), file);
  files.close(file);
  EXPECT_EQ(files.find("a"), nullptr);
}

TEST(StagedFiles, ExclusiveCreationMeetsTheOther) {
  StagedFiles files;
  const auto file = *files.open(request("a"), nullptr);
  auto exclusive = request("a");
  exclusive.exclusive = true;
  EXPECT_EQ(files.open(exclusive, nullptr).error().code, Errc::kExists);
}

TEST(StagedFiles, FilesThatAreNeverRenamedGoInTheOrderTheyCame) {
  StagedFiles files;
  const std::size_t most = StagedFiles::kMostClosed;
  files.close(*files.open(request("other", 7), nullptr));
  for (std::size_t i = 0; i < most + 3; ++i) files.close(*files.open(request("file" + std::to_string(i)), nullptr));
  for (std::size_t i = 0; i < most + 3; ++i) EXPECT_EQ(files.find("file" + std::to_string(i)) != nullptr, i >= 3) << i;
  EXPECT_NE(files.find("other"), nullptr);
  EXPECT_TRUE(files.drop_oldest(1000));
  EXPECT_EQ(files.find("file3"), nullptr);
}

TEST(StagedFiles, OpenFilesOfOneUserLeaveRoomForThoseOfOthers) {
  StagedFiles files;
  std::vector<std::shared_ptr<StagedFile>> open;
  const auto fill = [&](uid_t uid) {
    std::size_t made = 0;
    for (;; ++made) {
      auto file = files.open(request(std::to_string(uid) + "/" + std::to_string(made), uid), nullptr);
      if (!file.ok()) return made;
      open.push_back(*file);
    }
  };
  EXPECT_EQ(fill(1000), StagedFiles::kMost / 2);
  EXPECT_EQ(fill(1001), StagedFiles::kMost / 4);
  EXPECT_EQ(fill(0), StagedFiles::kMost / 4);
  EXPECT_FALSE(files.drop_oldest(1000)) << "all are open";
}

}  // namespace
}  // namespace mdfs::fuse
