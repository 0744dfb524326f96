// Disks that fail at the n-th request: fsync claims only what is safe, a failed one is not made good by asking again,
// and no read returns wrong bytes. Promise 3 of doc/SAFETY.md.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "base/log.h"
#include "device/testing/faulty_disk.h"
#include "memory_volume.h"
#include "tried.h"

namespace mdfs::volume {
namespace {

using device::Fault;
using device::FaultKind;
using device::FaultyDisk;
using device::Op;

constexpr char kRounds = 4;
constexpr std::size_t kFileBytes = 20'000;
constexpr std::size_t kAppendBytes = 3'000;
constexpr std::uint64_t kSide = 64;       // of the image
constexpr std::uint64_t kWindowRows = 8;  // that a round writes
constexpr std::size_t kTargetBytes = 100;

char digit(int round) { return static_cast<char>('0' + round); }

struct Files {
  Ino file = 0, log = 0, image = 0;
};

// What was claimed to be safe, and what each file must hold while the volume runs.
struct Claims {
  int file = 0, image = 0, target = 0, names = 0;  // rounds whose data were claimed safe
  std::size_t log_bytes = 0;                       // of the log, claimed safe
  std::string file_now = std::string(kFileBytes, '0'), log_now;
  bool file_known = true, log_known = true;  // no write to it has failed
  std::string wrong;                         // first thing seen that cannot be

  void complain(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }
};

class Workload {
 public:
  Workload(Volume& volume, const Files& files, Claims& claims) : volume_(volume), files_(files), claims_(claims) {}

  void run() {
    for (int round = 1; round <= kRounds; ++round) {
      const bool file = write_file(round);
      const bool log = append_log(round);
      const bool image = write_image(round);
      const bool name = make_name(round);
      const bool target = replace_target(round);
      look();
      if (round % 2 == 0) {
        if (twice([&] { return volume_.sync(); })) note(round, file, log, image, name, target);
      } else {
        if (twice([&] { return volume_.fsync(files_.file, false); })) note(round, file, false, false, name, false);
        if (twice([&] { return volume_.fsync(files_.log, false); })) note(round, false, log, false, name, false);
        if (twice([&] { return volume_.fsync(files_.image, true); })) note(round, false, false, image, name, false);
      }
      look();
    }
  }

 private:
  // The second success, after a failure, claims the same as the first.
  static bool twice(const std::function<Status()>& sync) { return sync().ok() || sync().ok(); }

  void note(int round, bool file, bool log, bool image, bool name, bool target) {
    if (file) claims_.file = round;
    if (log && claims_.log_known) claims_.log_bytes = claims_.log_now.size();
    if (image) claims_.image = round;
    if (name && claims_.names == round - 1) claims_.names = round;
    if (target) claims_.target = round;
  }

  bool write_file(int round) {
    const std::string text(kFileBytes, digit(round));
    const auto written = volume_.write(files_.file, 0, as_bytes(text), false);
    claims_.file_known = written.ok();
    if (written.ok()) claims_.file_now = text;
    return written.ok();
  }

  bool append_log(int round) {
    const std::string text(kAppendBytes, digit(round));
    const auto written = volume_.write(files_.log, 0, as_bytes(text), true);
    claims_.log_known = claims_.log_known && written.ok();
    if (written.ok()) claims_.log_now += text;
    return written.ok();
  }

  bool write_image(int round) {
    const geometry::Window rows{{static_cast<std::uint64_t>(round) * kWindowRows, 0}, {kWindowRows, kSide}};
    return volume_
        .write_window(files_.image, rows,
                      [&](std::uint64_t, MutableBytes into) -> Status {
                        std::fill(into.begin(), into.end(), static_cast<std::byte>(digit(round)));
                        return {};
                      })
        .ok();
  }

  bool make_name(int round) {
    const auto made = volume_.make_node(kRootIno, fmt::format("n{}", round), S_IFREG | 0644, 0, {});
    if (made.ok()) volume_.forget(made->ino, 1);
    return made.ok();
  }

  bool replace_target(int round) {
    const auto made = volume_.make_node(kRootIno, "t", S_IFREG | 0644, 0, {});
    if (!made.ok()) return false;
    const std::string text(kTargetBytes, digit(round));
    bool done = volume_.write(made->ino, 0, as_bytes(text), false).ok();
    done = done && volume_.rename(kRootIno, "t", kRootIno, "target", RenameMode::kReplace).ok();
    volume_.forget(made->ino, 1);
    if (!done) (void)volume_.unlink(kRootIno, "t").ok();
    return done;
  }

  // Whoever reads now sees what was written, or an error.
  void look() {
    look_at("file", files_.file, claims_.file_now, claims_.file_known);
    look_at("log", files_.log, claims_.log_now, claims_.log_known);
  }
  void look_at(const char* name, Ino ino, const std::string& expected, bool known) {
    ByteVector bytes(expected.size() + 1);
    const auto got = volume_.read(ino, 0, bytes);
    if (!got.ok() || !known) return;
    if (std::string_view(as_text(bytes)).substr(0, *got) != expected)
      claims_.complain(std::string("the running volume shows wrong bytes of the ") + name);
  }

  Volume& volume_;
  const Files& files_;
  Claims& claims_;
};

std::string all_digits(const std::string& what, const std::string& text, int from) {
  for (const char found : text)
    if (found < digit(from) || found > digit(kRounds))
      return fmt::format("{}: '{}' where round {} was claimed", what, found, from);
  return "";
}

std::string judge_log(const std::string& log, std::size_t claimed) {
  if (log.size() < claimed) return fmt::format("log: {} bytes, {} were claimed", log.size(), claimed);
  for (std::size_t i = 0; i < log.size(); ++i)
    if (i < claimed && log[i] != digit(static_cast<int>(i / kAppendBytes) + 1)) return "log: wrong bytes";
  return "";
}

// A window is there whole or not at all, and whole if it was claimed.
std::string judge_image(const std::string& text, int claimed) {
  if (text.size() != kSide * kSide) return fmt::format("image: {} bytes", text.size());
  for (int round = 1; round <= kRounds; ++round) {
    const std::size_t bytes = kWindowRows * kSide;
    const std::string rows = text.substr(static_cast<std::size_t>(round) * bytes, bytes);
    const bool there = rows == std::string(bytes, digit(round));
    if (!there && rows != std::string(bytes, '\0')) return fmt::format("image: the window of round {} is torn", round);
    if (!there && round == claimed) return fmt::format("image: the window of round {} was claimed", round);
  }
  return "";
}

// What is wrong after the crash, or "".
std::string judge(const test::MemoryDisks& disks, const Claims& claims) {
  SeededEnvironment environment(9);
  auto volume = test::open_volume(test::borrowed(disks), test::quiet_options(4u << 20), environment);
  if (!volume.ok()) return "mounting: " + volume.error().message();
  const auto tree = test::read_tree(**volume);
  if (!tree.ok()) return tree.error().message();
  const auto text = [&](const char* path) { return tree->contains(path) ? tree->at(path).text : std::string(); };
  if (text("/f").size() != kFileBytes) return fmt::format("file: {} bytes", text("/f").size());
  std::string wrong = all_digits("file", text("/f"), claims.file);
  if (wrong.empty()) wrong = judge_log(text("/log"), claims.log_bytes);
  if (wrong.empty()) wrong = judge_image(text("/image"), claims.image);
  if (wrong.empty() && text("/target").size() != kTargetBytes) wrong = "target: an empty or cut file";
  if (wrong.empty()) wrong = all_digits("target", text("/target"), claims.target);
  for (int round = 1; round <= claims.names && wrong.empty(); ++round)
    if (!tree->contains(fmt::format("/n{}", round))) wrong = fmt::format("the name of round {} is lost", round);
  return wrong.empty() ? test::find_inconsistency(**volume, false) : wrong;
}

Status make_base(Volume& volume, Files& files) {
  const auto make = [&](const char* name) -> Result<Ino> {
    MDFS_TRY_ASSIGN(const Attributes made, volume.make_node(kRootIno, name, S_IFREG | 0644, 0, {}));
    return made.ino;
  };
  MDFS_TRY_ASSIGN(files.file, make("f"));
  MDFS_TRY_ASSIGN(files.log, make("log"));
  MDFS_TRY_ASSIGN(files.image, make("image"));
  MDFS_TRY_ASSIGN(const Ino target, make("target"));
  MDFS_TRY(volume.write(files.file, 0, as_bytes(std::string(kFileBytes, '0')), false));
  MDFS_TRY(volume.write(target, 0, as_bytes(std::string(kTargetBytes, '0')), false));
  ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {kSide, kSide};
  options.geometry.extent = {kSide / 2, kSide / 2};
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.axes = "yx";
  MDFS_TRY(volume.make_image(files.image, options));
  return volume.close();
}

struct Case {
  const char* name;
  FaultKind kind;
  Op op;
  std::uint64_t times;
};

class FsyncGateCanaryTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(set_log_level("off").ok());  // each failed commit is a line of its own
    SeededEnvironment environment(7);
    base_ = test::format_memory_disks(kDisks, 8u << 20, environment);
    auto volume = test::open_volume(test::borrowed(base_), test::quiet_options(4u << 20), environment);
    ASSERT_TRUE(volume.ok());
    ASSERT_TRUE(make_base(**volume, files_).ok());
  }
  void TearDown() override { ASSERT_TRUE(set_log_level("info").ok()); }

  static constexpr unsigned kDisks = 2;
  test::MemoryDisks base_;
  Files files_;
};

class FsyncGateTest : public FsyncGateCanaryTest, public testing::WithParamInterface<Case> {
 protected:
  // Either the volume says why it takes nothing more, or it takes something and keeps it.
  std::string judge_live(Volume& volume, const test::MemoryDisks& disks) {
    const std::string text(kFileBytes, digit(kRounds));
    const auto written = volume.write(files_.file, 0, as_bytes(text), false);
    Status synced = written.ok() ? volume.fsync(files_.file, false) : Status(written.error());
    if (volume.store().read_only()) {
      ++read_only_;
      if (volume.store().read_only_reason().empty()) return "read-only without a reason";
      return synced.ok() ? "a read-only volume claims an fsync" : "";
    }
    if (!synced.ok()) synced = volume.fsync(files_.file, false);  // reports what the background has met, once
    if (!synced.ok()) return "neither read-only nor good: " + synced.error().message();
    Claims claims;
    claims.file = kRounds;
    const std::string wrong = judge(clone(disks), claims);
    return wrong.empty() ? "" : "after it went on: " + wrong;
  }

  static test::MemoryDisks clone(const test::MemoryDisks& disks) {
    test::MemoryDisks clones;
    for (const auto& disk : disks) clones.push_back(disk->clone());
    return clones;
  }

  // Runs the workload with the n-th request of one disk failing; false when there were not that many.
  bool fail_nth(std::size_t struck_disk, std::uint64_t n) {
    const test::MemoryDisks disks = clone(base_);
    std::vector<device::Disk*> doors = test::borrowed(disks);
    FaultyDisk faulty(*disks[struck_disk], {{GetParam().kind, GetParam().op, 0, UINT64_MAX, n, GetParam().times}}, n);
    doors[struck_disk] = &faulty;
    SeededEnvironment environment(8);
    store::StoreOptions store_options;
    store_options.node_cache_bytes = 0;
    Claims claims;
    auto volume = test::open_volume(doors, test::quiet_options(4u << 20), environment, store_options);
    if (volume.ok()) Workload(**volume, files_, claims).run();
    const bool struck = !faulty.injections().empty();
    const std::string where = fmt::format("request {} of disk {}", n, struck_disk);
    EXPECT_EQ(claims.wrong, "") << where;
    EXPECT_EQ(judge(clone(disks), claims), "") << where;
    EXPECT_TRUE(struck || (volume.ok() && claims.file == kRounds - 1 + (kRounds + 1) % 2)) << where;
    faulty.work_again();
    if (!volume.ok()) return struck;
    out_ += (*volume)->store().disk_info(static_cast<unsigned>(struck_disk)).is_out ? 1 : 0;
    EXPECT_EQ(judge_live(**volume, disks), "") << where;
    (void)(*volume)->close().ok();
    return struck;
  }

  unsigned read_only_ = 0;
  unsigned out_ = 0;
};

TEST_P(FsyncGateTest, WhatFsyncClaimedIsThereAfterACrashWhicheverRequestFails) {
  std::uint64_t cases = 0;
  for (std::size_t disk = 0; disk < kDisks; ++disk)
    for (std::uint64_t n = 0; fail_nth(disk, n) && !HasFailure(); ++n) ++cases;
  EXPECT_GT(cases, 3u) << "the fault has never struck";
  if (GetParam().op == Op::kFlush) {
    EXPECT_GT(read_only_, 0u) << "no disk has lost unflushed data";
  }
  if (GetParam().op == Op::kFlush || (GetParam().op == Op::kWrite && GetParam().times == Fault::kSticky)) {
    EXPECT_GT(out_, 0u) << "no disk was left out";
  }
  test::tried("{}: each of {} requests", GetParam().name, cases);
}

// The judge itself sees a loss.
TEST_F(FsyncGateCanaryTest, AClaimThatTheDisksDoNotHoldIsSeen) {
  Claims claims;
  EXPECT_EQ(judge(base_, claims), "");
  for (int* claim : {&claims.file, &claims.image, &claims.target, &claims.names}) {
    *claim = 1;
    EXPECT_NE(judge(base_, claims), "");
    *claim = 0;
  }
  claims.log_bytes = 1;
  EXPECT_NE(judge(base_, claims), "");
}

constexpr std::uint64_t kOnce = 1;

INSTANTIATE_TEST_SUITE_P(Requests, FsyncGateTest,
                         testing::Values(Case{"ReadOnce", FaultKind::kError, Op::kRead, kOnce},
                                         Case{"ReadSticky", FaultKind::kError, Op::kRead, Fault::kSticky},
                                         Case{"ReadBitFlip", FaultKind::kBitFlip, Op::kRead, kOnce},
                                         Case{"WriteOnce", FaultKind::kError, Op::kWrite, kOnce},
                                         Case{"WriteSticky", FaultKind::kError, Op::kWrite, Fault::kSticky},
                                         Case{"WriteShort", FaultKind::kShort, Op::kWrite, kOnce},
                                         Case{"FlushOnce", FaultKind::kError, Op::kFlush, kOnce},
                                         Case{"FlushSticky", FaultKind::kError, Op::kFlush, Fault::kSticky},
                                         Case{"Gone", FaultKind::kGone, Op::kWrite, kOnce}),
                         [](const auto& one) { return std::string(one.param.name); });

// More files than stay open without a user, and a disk that fails while they are closed in the background.
class IdleFilesTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_log_level("off").ok()); }
  void TearDown() override { ASSERT_TRUE(set_log_level("info").ok()); }
  static constexpr unsigned kFiles = 1500;
  static std::string bytes(unsigned i) { return std::string(10'000, static_cast<char>('a' + i % 26)); }

  unsigned lost(Volume& volume) const {
    unsigned count = 0;
    for (unsigned i = 0; i < kFiles; ++i) {
      ByteVector found(bytes(i).size());
      const auto at = volume.lookup(kRootIno, "f" + std::to_string(i));
      const auto got = at.ok() ? volume.read(at->ino, 0, found) : Result<std::size_t>(at.error());
      count += got.ok() && *got == found.size() && as_text(found) == bytes(i) ? 0 : 1;
      if (at.ok()) volume.forget(at->ino, 1);
    }
    return count;
  }
};

TEST_P(IdleFilesTest, WhatCannotBeWrittenWhenItIsClosedStaysUntilItCan) {
  SeededEnvironment environment(1);
  test::MemoryDisks disks = test::format_memory_disks(2, 64u << 20, environment);
  {
    FaultyDisk faulty(*disks[1], {{FaultKind::kError, Op::kWrite, 0, UINT64_MAX, 40, GetParam(), 0}});
    auto volume = test::open_volume({disks[0].get(), &faulty}, test::quiet_options(64u << 20), environment);
    ASSERT_TRUE(volume.ok());
    for (unsigned i = 0; i < kFiles; ++i) {
      const auto made = (*volume)->make_node(kRootIno, "f" + std::to_string(i), S_IFREG | 0644, 0, {});
      ASSERT_TRUE(made.ok());
      ASSERT_TRUE((*volume)->open_file(made->ino, false).ok());
      const auto written = (*volume)->write(made->ino, 0, as_bytes(bytes(i)), false);
      ASSERT_TRUE(written.ok()) << written.error().message();
      (*volume)->release_file(made->ino);
      (*volume)->forget(made->ino, 1);
    }
    ASSERT_FALSE(faulty.injections().empty());
    ASSERT_FALSE((*volume)->store().read_only());
    EXPECT_EQ(lost(**volume), 0u) << "while the disk fails";
    faulty.work_again();
    // What went wrong before is told once; then all is well.
    (void)(*volume)->sync().ok();
    EXPECT_TRUE((*volume)->sync().ok());
    EXPECT_TRUE((*volume)->close().ok());
  }
  auto volume = test::open_volume(test::borrowed(disks), test::quiet_options(64u << 20), environment);
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(lost(**volume), 0u);
}

INSTANTIATE_TEST_SUITE_P(Times, IdleFilesTest, testing::Values(1, 3, Fault::kSticky));

// A failed commit loses what came after the last one: whoever unmounts hears of it.
TEST(FailedCommitTest, ClosingTheVolumeSaysThatSomethingIsLost) {
  SeededEnvironment environment(1);
  test::MemoryDisks disks = test::format_memory_disks(1, 8u << 20, environment);
  FaultyDisk faulty(*disks[0], {});
  auto volume = test::open_volume({&faulty}, test::quiet_options(4u << 20), environment);
  ASSERT_TRUE(volume.ok());
  const auto made = (*volume)->make_node(kRootIno, "file", S_IFREG | 0644, 0, {});
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*volume)->write(made->ino, 0, as_bytes("before"), false).ok());
  ASSERT_TRUE((*volume)->sync().ok());
  ASSERT_TRUE((*volume)->write(made->ino, 0, as_bytes("behind"), false).ok());
  faulty.add({FaultKind::kError, Op::kFlush, 0, UINT64_MAX, 0, 1, 0});
  EXPECT_FALSE((*volume)->sync().ok());
  ASSERT_TRUE((*volume)->store().read_only());
  const Status closed = (*volume)->close();
  ASSERT_FALSE(closed.ok());
  EXPECT_NE(closed.error().message().find("lost"), std::string::npos) << closed.error().message();
}

}  // namespace
}  // namespace mdfs::volume
