// The data of ordinary files: bytes, sizes, holes, room.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "fixture.h"

namespace mdfs::volume {
namespace {

class DataTest : public VolumeTest {
 protected:
  std::string pattern(std::size_t bytes, unsigned seed = 1) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(1 + (i / 97 + i * 31 + seed * 59) % 250);
    return text;
  }
};

TEST_F(DataTest, BytesSizeAndTimesSurviveARemount) {
  const Ino f = make_file("f");
  const Ino small = make_file("small");
  const std::string text = pattern(1'000'003);
  write(f, 0, text);
  write(small, 0, "a few bytes");
  const Attributes before = stat(f);
  EXPECT_OK(volume().sync());
  mount();
  EXPECT_EQ(stat(f).size_bytes, text.size());
  EXPECT_EQ(stat(f).mtime_ns, before.mtime_ns);
  EXPECT_EQ(stat(f).ctime_ns, before.ctime_ns);
  EXPECT_GE(stat(f).stored_bytes, text.size());
  EXPECT_EQ(read(f), text);
  EXPECT_EQ(read(small), "a few bytes");
  EXPECT_NE(stat(f).data_generation, 0u);
}

TEST_F(DataTest, TimesSetAfterTheLastWriteSurviveARemount) {
  const Ino f = make_file("f");
  write(f, 0, "x");
  EXPECT_OK(volume().set_attributes(f, {.atime_ns = 7, .mtime_ns = 9}));
  mount();
  EXPECT_EQ(stat(f).mtime_ns, 9);
  EXPECT_EQ(stat(f).atime_ns, 7);
}

TEST_F(DataTest, OpeningWithTruncationEmptiesTheFile) {
  const Ino f = make_file("f");
  write(f, 0, pattern(10000));
  EXPECT_OK(volume().open_file(f, true));
  EXPECT_EQ(stat(f).size_bytes, 0u);
  EXPECT_EQ(read(f), "");
  volume().release_file(f);
  mount();
  EXPECT_EQ(stat(f).size_bytes, 0u);
}

TEST_F(DataTest, AppendsOfManyThreadsDoNotOverlap) {
  const Ino f = make_file("f");
  constexpr unsigned kThreads = 4, kAppends = 50;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < kAppends; ++i) {
        const std::string line = std::string(99, static_cast<char>('a' + t)) + "\n";
        EXPECT_OK(volume().write(f, 0, as_bytes(line), true));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const std::string text = read(f);
  ASSERT_EQ(text.size(), std::size_t{kThreads * kAppends * 100});
  for (std::size_t at = 0; at < text.size(); at += 100)
    EXPECT_EQ(text.substr(at, 100), std::string(99, text[at]) + "\n");
}

TEST_F(DataTest, FallocateGrowsPunchesAndZeroes) {
  const Ino f = make_file("f");
  const std::string text = pattern(20000);
  write(f, 0, text);
  EXPECT_OK(volume().allocate(f, FALLOC_FL_KEEP_SIZE, 0, 1 << 20));
  EXPECT_EQ(stat(f).size_bytes, 20000u);
  EXPECT_OK(volume().allocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192));
  std::string expected = text;
  expected.replace(4096, 8192, std::string(8192, '\0'));
  EXPECT_EQ(read(f), expected);
  EXPECT_OK(volume().allocate(f, FALLOC_FL_ZERO_RANGE, 19000, 2000));
  expected.resize(19000);
  expected.resize(21000);
  EXPECT_EQ(read(f), expected);
  EXPECT_OK(volume().allocate(f, 0, 0, 30000));
  EXPECT_EQ(stat(f).size_bytes, 30000u);
  EXPECT_ERROR(Errc::kNotSupported, volume().allocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
  EXPECT_ERROR(Errc::kNotSupported, volume().allocate(f, FALLOC_FL_INSERT_RANGE, 0, 4096));
  EXPECT_ERROR(Errc::kNotSupported, volume().allocate(f, FALLOC_FL_PUNCH_HOLE, 0, 4096));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().allocate(f, 0, 0, 0));
  EXPECT_ERROR(Errc::kTooBig, volume().allocate(f, 0, 1ull << 61, 1ull << 62));
  EXPECT_ERROR(Errc::kNoSpace, volume().allocate(f, 0, 0, 1ull << 40));
  EXPECT_EQ(stat(f).size_bytes, 30000u);
}

TEST_F(DataTest, SeekFindsDataAndHoles) {
  const Ino f = make_file("f");
  write(f, 1 << 20, "data");
  EXPECT_EQ(*volume().seek(f, 0, SEEK_HOLE), 0u);
  const auto data = volume().seek(f, 0, SEEK_DATA);
  ASSERT_OK(data);
  EXPECT_GT(*data, (1u << 20) - 131072u);
  EXPECT_LE(*data, 1u << 20);
  EXPECT_ERROR(Errc::kNoDevice, volume().seek(f, (1 << 20) + 4, SEEK_DATA));
  EXPECT_ERROR(Errc::kNoDevice, volume().seek(f, (1 << 20) + 4, SEEK_HOLE));
  EXPECT_ERROR(Errc::kInvalidArgument, volume().seek(f, 0, SEEK_END));
}

TEST_F(DataTest, CopiesOfRangesKeepHoles) {
  const Ino f = make_file("f"), g = make_file("g");
  const std::string text = pattern(300000);
  write(f, 2 << 20, text);
  write(g, 0, pattern(5000, 2));
  const auto copied = volume().copy_range(f, 0, g, 0, 8 << 20);
  ASSERT_OK(copied);
  EXPECT_EQ(*copied, (2u << 20) + 300000u);
  EXPECT_EQ(read(g, 2 << 20), text);
  EXPECT_EQ(read(g, 0, 5000), std::string(5000, '\0'));
  EXPECT_OK(volume().sync());
  EXPECT_LT(stat(g).stored_bytes, 1u << 20) << "the hole takes no blocks";
  EXPECT_ERROR(Errc::kInvalidArgument, volume().copy_range(f, 0, f, 100, 1000));
  EXPECT_EQ(*volume().copy_range(f, 1ull << 40, g, 0, 100), 0u);
}

TEST_F(DataTest, AFullVolumeKeepsWhatItHasAndTheSpaceReturns) {
  const Ino keep = make_file("keep");
  write(keep, 0, "kept");
  const std::string chunk = pattern(1 << 20);
  std::uint64_t first_round = 0;
  for (int round = 0; round < 3; ++round) {
    const Ino f = make_file("fill");
    std::uint64_t offset = 0;
    for (;;) {
      // The last one may be short; what it has left is written next.
      const auto written = volume().write(f, offset, as_bytes(chunk).subspan(offset % chunk.size()), false);
      if (!written.ok()) {
        EXPECT_EQ(written.error().code, Errc::kNoSpace) << written.error().message();
        break;
      }
      offset += *written;
    }
    EXPECT_EQ(stat(f).size_bytes, offset) << "the write that failed changed nothing";
    EXPECT_OK(volume().fsync(f, false));
    if (round == 0) first_round = offset;
    EXPECT_GE(offset, first_round - (4u << 20)) << "round " << round;
    const std::uint64_t rest = offset % chunk.size();
    EXPECT_TRUE(read(f, offset - rest - chunk.size(), 2 << 20) == chunk + chunk.substr(0, rest));
    volume().forget(f, 1);
    EXPECT_OK(volume().unlink(kRootIno, "fill"));
  }
  EXPECT_GT(first_round, 300u << 20);
  EXPECT_EQ(read(keep), "kept");
}

TEST_F(DataTest, AReadOnlyVolumeShowsAndRefuses) {
  const Ino f = make_file("f");
  write(f, 0, "text");
  EXPECT_OK(volume().close());
  volume_.reset();
  auto opened = test::open_volume(test::borrowed(disks_), test::quiet_options(), environment_, {.read_only = true});
  ASSERT_OK(opened);
  volume_ = std::move(*opened);
  EXPECT_EQ(read(f), "text");
  EXPECT_ERROR(Errc::kReadOnly, volume().write(f, 0, as_bytes("x"), false));
  EXPECT_ERROR(Errc::kReadOnly, volume().make_directory(kRootIno, "d", 0755, root_));
  EXPECT_ERROR(Errc::kReadOnly, volume().set_xattr(f, "user.a", {}, XattrMode::kSet));
  EXPECT_OK(volume().fsync(f, false));
}

TEST_F(DataTest, OrphansOfACrashAreFreedByTheNextMount) {
  const Ino f = make_file("f");
  const std::uint64_t free_before = volume().space().free_blocks;
  write(f, 0, pattern(3 << 20));
  EXPECT_OK(volume().open_file(f, false));
  EXPECT_OK(volume().set_xattr(f, "user.a", as_bytes("v"), XattrMode::kSet));
  EXPECT_OK(volume().unlink(kRootIno, "f"));
  EXPECT_OK(volume().sync());
  test::MemoryDisks cut;
  for (const auto& disk : disks_) cut.push_back(disk->clone());
  auto after = test::open_volume(test::borrowed(cut), test::quiet_options(), environment_);
  ASSERT_OK(after);
  EXPECT_FALSE((*after)->store().get({f, MDFS_KIND_INODE, 0})->has_value());
  EXPECT_EQ(test::find_inconsistency(**after, false), "");
  for (int i = 0; i < 3; ++i) EXPECT_OK((*after)->sync());
  EXPECT_GE((*after)->space().free_blocks + 64, free_before);
  volume().release_file(f);
}

enum class FileOp : std::uint8_t { kWrite, kAppend, kTruncate, kPunch, kRead, kFsync, kRemount };

// As a plain string does.
RC_GTEST_PROP(DataPropertyTest, AFileDoesWhatAByteArrayDoes, ()) {
  SeededEnvironment environment(3);
  const test::MemoryDisks disks = test::format_memory_disks(2, 16u << 20, environment);
  auto volume = std::move(test::open_volume(test::borrowed(disks), test::quiet_options(), environment)).value();
  const Ino f = volume->make_node(kRootIno, "f", S_IFREG | 0644, 0, {})->ino;
  std::string model;
  const auto steps =
      *rc::gen::resize(40, rc::gen::arbitrary<std::vector<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>>>());
  for (const auto& [kind, a, b] : steps) {
    const std::uint64_t offset = a % 400'000, length = b % 200'000 >> (b >> 28);
    switch (static_cast<FileOp>(kind % 7)) {
      case FileOp::kWrite:
      case FileOp::kAppend: {
        const bool append = static_cast<FileOp>(kind % 7) == FileOp::kAppend;
        const std::string text(length, static_cast<char>('a' + b % 26));
        RC_ASSERT(volume->write(f, offset, as_bytes(text), append).ok());
        const std::size_t at = append ? model.size() : offset;
        if (!text.empty()) model.resize(std::max(model.size(), at + text.size()));
        if (!text.empty()) model.replace(at, text.size(), text);
        break;
      }
      case FileOp::kTruncate:
        RC_ASSERT(volume->set_attributes(f, {.size_bytes = offset}).ok());
        model.resize(offset);
        break;
      case FileOp::kPunch:
        if (length == 0) break;
        RC_ASSERT(volume->allocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length).ok());
        for (std::size_t i = offset; i < std::min(model.size(), offset + length); ++i) model[i] = '\0';
        break;
      case FileOp::kRead:
        break;
      case FileOp::kFsync:
        RC_ASSERT(volume->fsync(f, true).ok());
        break;
      case FileOp::kRemount:
        RC_ASSERT(volume->close().ok());
        volume.reset();
        volume = std::move(test::open_volume(test::borrowed(disks), test::quiet_options(), environment)).value();
        break;
    }
    RC_ASSERT(volume->attributes(f)->size_bytes == model.size());
    ByteVector bytes(model.size() + 100);
    const auto got = volume->read(f, 0, bytes);
    RC_ASSERT(got.ok());
    bytes.resize(*got);
    RC_ASSERT(as_text(bytes) == model);
  }
}

}  // namespace
}  // namespace mdfs::volume
