// Staging writes to a window and applying them.
// SPDX-License-Identifier: Apache-2.0
#include "views/window_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "support/fake_volume.h"
#include "views/npy.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

Geometry small_image() {
  Geometry geometry;
  geometry.rank = 2;
  geometry.axes = "yx";
  geometry.shape = {6, 8};
  geometry.extent = {4, 4};
  geometry.type = ElementType::kU16;
  return geometry;
}

// A writer for one window of a small image.
class Bench {
 public:
  explicit Bench(std::string_view name, bool truncated, StagingLimits limits = {})
      : pool_(std::move(*StagingPool::open(std::filesystem::temp_directory_path().string(), limits))) {
    ino_ = volume_.add_image("image", small_image());
    file_ = *view_window(small_image(), *parse_window_name(small_image(), name));
    writer_ = std::move(*WindowWriter::create(volume_, ino_, file_, *pool_, 0, truncated));
  }
  test::FakeVolume& volume() { return volume_; }
  WindowWriter& writer() { return *writer_; }
  const ViewFile& file() const { return file_; }
  volume::Ino ino() const { return ino_; }
  ByteVector content() {
    ByteVector bytes(file_.size_bytes());
    EXPECT_TRUE(read_view(volume_, ino_, file_, 0, bytes).ok());
    return bytes;
  }
  ByteVector image() { return volume_.bytes(ino_); }

 private:
  test::FakeVolume volume_;
  std::unique_ptr<StagingPool> pool_;
  volume::Ino ino_ = 0;
  ViewFile file_;
  std::unique_ptr<WindowWriter> writer_;
};

ByteVector pattern(std::size_t size, unsigned seed) {
  ByteVector bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
  return bytes;
}

TEST(WindowWriter, NothingIsSeenBeforeAllIsThere) {
  Bench bench("y1+2,x3+4.raw", true);
  const ByteVector before = bench.image();
  const ByteVector bytes = pattern(bench.file().size_bytes(), 3);
  ASSERT_TRUE(bench.writer().write(0, ConstBytes(bytes).first(10)).ok());
  EXPECT_FALSE(bench.writer().is_complete());
  EXPECT_FALSE(bench.writer().apply().ok());
  EXPECT_EQ(bench.image(), before);
  ASSERT_TRUE(bench.writer().write(10, ConstBytes(bytes).subspan(10)).ok());
  EXPECT_TRUE(bench.writer().is_full());
  EXPECT_EQ(bench.image(), before);
  ASSERT_TRUE(bench.writer().apply().ok());
  EXPECT_EQ(bench.content(), bytes);
  EXPECT_TRUE(bench.writer().empty());
}

TEST(WindowWriter, WithoutTruncationWhatIsNotWrittenKeepsItsValue) {
  Bench bench("y1+2,x3+4.raw", false);
  ByteVector expected = bench.content();
  const ByteVector bytes = pattern(5, 9);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 7);
  ASSERT_TRUE(bench.writer().write(7, bytes).ok());
  EXPECT_TRUE(bench.writer().is_complete());
  EXPECT_FALSE(bench.writer().is_full());
  ASSERT_TRUE(bench.writer().apply().ok());
  EXPECT_EQ(bench.content(), expected);
}

// Between the moment when the bytes not written could be looked up and the write itself others may write.
TEST(WindowWriter, WhatOthersWriteBesideAPartlyWrittenWindowIsKept) {
  for (const char* name : {"y1+2,x3+4.raw", "y1+2,x3+4.npy"}) {
    Bench bench(name, false);
    const std::size_t header = bench.file().header.size();
    ByteVector expected = bench.content();
    const ByteVector mine = pattern(3, 200), theirs = pattern(5, 90);
    const auto put = [&](std::size_t offset, const ByteVector& bytes) {
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(header + offset));
    };
    put(2, mine);
    put(9, theirs);
    bench.volume().before_window_writes([&] {  // the window's second row begins at its byte 8
      const std::uint64_t at = (2 * 8 + 3) * 2 + 1;
      ASSERT_TRUE(bench.volume().write(bench.ino(), at, theirs, false).ok());
    });
    ASSERT_TRUE(bench.writer().write(header + 2, mine).ok());
    ASSERT_TRUE(bench.writer().apply().ok());
    EXPECT_EQ(bench.content(), expected) << name;
  }
}

TEST(WindowWriter, AnNpyWithAnotherHeaderLengthIsTaken) {
  Bench bench("y1+2,x3+4.npy", true);
  ByteVector bytes = npy_header(ElementType::kU16, {2, 4}, 192);
  const ByteVector data = pattern(16, 5);
  bytes.insert(bytes.end(), data.begin(), data.end());
  ASSERT_TRUE(bench.writer().write(0, bytes).ok());
  ASSERT_TRUE(bench.writer().is_full());
  ASSERT_TRUE(bench.writer().apply().ok());
  const ByteVector content = bench.content();
  EXPECT_TRUE(std::equal(data.begin(), data.end(), content.begin() + 128));
}

TEST(WindowWriter, AnNpyOfAnotherShapeOrTypeIsRefused) {
  const auto refused = [](ElementType type, const std::vector<std::uint64_t>& shape) {
    Bench bench("y1+2,x3+4.npy", false);
    const ByteVector before = bench.image();
    ByteVector bytes = npy_header(type, shape, 128);
    bytes.resize(128 + 16);
    EXPECT_TRUE(bench.writer().write(0, bytes).ok());
    return !bench.writer().apply().ok() && bench.image() == before;
  };
  EXPECT_TRUE(refused(ElementType::kU16, {4, 2}));
  EXPECT_TRUE(refused(ElementType::kU16, {8}));
  EXPECT_TRUE(refused(ElementType::kI16, {2, 4}));
  EXPECT_FALSE(refused(ElementType::kU16, {2, 4}));
}

TEST(WindowWriter, MoreThanTheWindowIsRefused) {
  Bench bench("y1+2,x3+4.raw", false);
  const ByteVector bytes = pattern(20, 1);
  const auto count = bench.writer().write(0, bytes);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 16u);
  const auto beyond = bench.writer().write(16, bytes);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, Errc::kTooBig);
}

TEST(WindowWriter, LimitsOfTheMountHold) {
  test::FakeVolume volume;
  const volume::Ino ino = volume.add_image("image", small_image());
  const ViewFile file = *view_window(small_image(), *parse_window_name(small_image(), "all.raw"));
  const auto pool = StagingPool::open("/tmp", {.memory_bytes = 0, .window_bytes = 95, .file_bytes = 1000});
  const auto too_big = WindowWriter::create(volume, ino, file, **pool, 0, true);
  ASSERT_FALSE(too_big.ok());
  EXPECT_EQ(too_big.error().code, Errc::kTooBig);

  const auto full = StagingPool::open("/tmp", {.memory_bytes = 0, .window_bytes = 96, .file_bytes = 100});
  auto first = WindowWriter::create(volume, ino, file, **full, 0, true);
  auto second = WindowWriter::create(volume, ino, file, **full, 0, true);
  const ByteVector byte(1);
  ASSERT_TRUE((*first)->write(0, byte).ok());
  const auto no_room = (*second)->write(0, byte);
  ASSERT_FALSE(no_room.ok());
  EXPECT_EQ(no_room.error().code, Errc::kNoSpace);
  (*first).reset();
  EXPECT_TRUE((*second)->write(0, byte).ok()) << "the room comes back";
}

TEST(WindowWriter, AUserHasHalfOfWhatTheOthersLeave) {
  test::FakeVolume volume;
  const volume::Ino ino = volume.add_image("image", small_image());
  const ViewFile file = *view_window(small_image(), *parse_window_name(small_image(), "all.raw"));
  const ByteVector byte(1);
  std::vector<std::unique_ptr<WindowWriter>> writers;
  // How many windows a user begins to write until that is refused.
  const auto begun_by = [&](StagingPool& pool, std::uint32_t owner) {
    for (unsigned count = 0;; ++count) {
      writers.push_back(*WindowWriter::create(volume, ino, file, pool, owner, true));
      const auto written = writers.back()->write(0, byte);
      if (written.ok()) continue;
      EXPECT_EQ(written.error().code, Errc::kNoSpace);
      return count;
    }
  };
  const auto few = StagingPool::open("/tmp", {.memory_bytes = 0, .file_bytes = 1u << 20, .files = 16});
  EXPECT_EQ(begun_by(**few, 1000), 8u);
  EXPECT_EQ(begun_by(**few, 1001), 4u);
  EXPECT_EQ(begun_by(**few, 1000), 0u) << "of the eight that the other user left, and has eight";
  EXPECT_EQ(begun_by(**few, 0), 4u) << "root has the rest";
  writers.clear();
  EXPECT_EQ(begun_by(**few, 1001), 8u) << "the room comes back";
  writers.clear();
  const auto small = StagingPool::open("/tmp", {.memory_bytes = 0, .file_bytes = 16 * 96, .files = 1000});
  EXPECT_EQ(begun_by(**small, 1000), 8u);
  EXPECT_EQ(begun_by(**small, 1001), 4u);
  writers.clear();
}

// Any sequence of writes, in memory or in a file, with or without truncation, against a plain byte array.
RC_GTEST_PROP(WindowWriter, AgreesWithAPlainByteArray, ()) {
  const bool truncated = *rc::gen::arbitrary<bool>();
  const bool in_memory = *rc::gen::arbitrary<bool>();
  const char* const name = *rc::gen::element("y1+2,x3+4.raw", "x3+4.npy", "all.raw");
  Bench bench(name, truncated, {.memory_bytes = in_memory ? std::uint64_t{1} << 20 : 0});
  const std::size_t header = bench.file().header.size();
  const std::size_t size = bench.file().size_bytes();
  ByteVector expected = bench.content();
  std::vector<bool> written(size, false);
  if (truncated && header != 0) {
    RC_ASSERT(bench.writer().write(0, ConstBytes(expected).first(header)).ok());
    std::fill_n(written.begin(), header, true);
  }
  const int writes = *rc::gen::inRange(0, 8);
  for (int i = 0; i < writes; ++i) {
    const auto offset = *rc::gen::inRange(header, size);
    const ByteVector bytes = pattern(*rc::gen::inRange<std::size_t>(1, size - offset + 1), static_cast<unsigned>(i));
    RC_ASSERT(bench.writer().write(offset, bytes).ok());
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
    std::fill_n(written.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), true);
  }
  const bool any = std::find(written.begin(), written.end(), true) != written.end();
  const bool all = std::find(written.begin(), written.end(), false) == written.end();
  const ByteVector before = bench.content();
  if (!truncated || all) {
    ByteVector staged(size);
    RC_ASSERT(*bench.writer().read(0, staged) == size);
    RC_ASSERT(staged == expected);
  }
  RC_ASSERT(bench.writer().apply().ok() == (!any || !truncated || all));
  RC_ASSERT(bench.content() == (truncated && !all ? before : expected));
}

}  // namespace
}  // namespace mdfs::views
