// A window that is read in parts is one version of it, whatever is written meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Geometry;
using geometry::Window;

class WindowVersionTest : public ::testing::TestWithParam<Codec> {};

Window window_at(std::uint64_t y, std::uint64_t x, std::uint64_t height, std::uint64_t width) {
  Window window;
  window.start = {y, x, 0};
  window.length = {height, width, 0};
  return window;
}

// An image of 1.5 MiB on the real store, with less memory than the image takes.
Setting small_setting(Codec codec) {
  Setting setting;
  setting.geometry = image_of(2, {1000, 1500}, {64, 96}, codec);
  setting.cache_bytes = 1u << 20;
  setting.on_disks = true;
  return setting;
}

bool is_stale(const Status& status) { return !status.ok() && status.error().posix_errno() == ESTALE; }

// A reader of one version, from its first byte to its last.
class Parts {
 public:
  Parts(Bench& bench, const Window& window)
      : bench_(bench),
        version_(bench.engine().pin_window(bench.object(), window).value()),
        bytes_(geometry::window_bytes(bench.geometry_now(), window)) {}
  Status read(std::uint64_t most) {
    const std::uint64_t length = std::min<std::uint64_t>(most, bytes_.size() - done_);
    Status status = bench_.engine().read_version(*version_, done_, MutableBytes(bytes_).subspan(done_, length));
    if (status.ok()) done_ += length;
    return status;
  }
  Status read_rest() { return read(bytes_.size()); }
  bool is_done() const { return done_ == bytes_.size(); }
  const ByteVector& bytes() const { return bytes_; }

 private:
  Bench& bench_;
  std::shared_ptr<WindowVersion> version_;
  ByteVector bytes_;
  std::uint64_t done_ = 0;
};

// The blocks of the first version leave the tree with the first write and would be allocated again by the third one.
TEST_P(WindowVersionTest, PartsReadBetweenWindowWritesAndCommitsAreOfOneVersion) {
  Bench bench(small_setting(GetParam()));
  std::mt19937_64 random(3);
  const Window window = window_at(10, 20, 900, 1300);
  const ByteVector first = noise(random, 900 * 1300);
  ASSERT_TRUE(bench.write_window(window, first).ok());
  ASSERT_TRUE(bench.any_store().commit().ok());
  Parts parts(bench, window);
  while (!parts.is_done()) {
    const Status status = parts.read(100'000);
    ASSERT_TRUE(status.ok()) << status.error().message();
    ASSERT_TRUE(bench.write_window(window, noise(random, first.size())).ok());
    for (unsigned i = 0; i < 2; ++i) ASSERT_TRUE(bench.any_store().commit_freed().ok());
  }
  EXPECT_TRUE(parts.bytes() == first);
}

// What a cut reads: boxes here and there, of which some have been kept and some have not.
TEST_P(WindowVersionTest, BoxesReadBetweenWindowWritesAreOfOneVersion) {
  Bench bench(small_setting(GetParam()));
  std::mt19937_64 random(6);
  const Window whole = window_at(0, 0, 1000, 1500);
  const ByteVector first = noise(random, 1000 * 1500);
  ASSERT_TRUE(bench.write_window(whole, first).ok());
  const auto version = bench.engine().pin_window(bench.object(), window_at(100, 200, 800, 1200)).value();
  for (unsigned round = 0; round < 6; ++round) {
    std::vector<Window> boxes;
    ByteVector expected;
    for (unsigned i = 0; i < 30; ++i) {
      const Window box = window_at(100 + random() % 700, 200 + random() % 1100, 1 + random() % 100, 1 + random() % 100);
      boxes.push_back(box);
      for (std::uint64_t y = 0; y < box.length[0]; ++y) {
        const auto row = first.begin() + static_cast<std::ptrdiff_t>((box.start[0] + y) * 1500 + box.start[1]);
        expected.insert(expected.end(), row, row + static_cast<std::ptrdiff_t>(box.length[1]));
      }
    }
    ByteVector read(expected.size());
    const Status status = bench.engine().read_version_parts(*version, boxes, read, {});
    ASSERT_TRUE(status.ok()) << status.error().message();
    ASSERT_TRUE(read == expected);
    ASSERT_TRUE(bench.write_window(window_at(150 * round, 0, 200, 1500), noise(random, 200 * 1500)).ok());
    ASSERT_TRUE(bench.any_store().commit().ok());
  }
}

TEST_P(WindowVersionTest, ABoxBeyondTheVersionIsRefused) {
  Bench bench(small_setting(GetParam()));
  const auto version = bench.engine().pin_window(bench.object(), window_at(100, 200, 800, 1200)).value();
  for (const Window& box :
       {window_at(99, 200, 2, 2), window_at(100, 199, 2, 2), window_at(899, 200, 2, 2), window_at(100, 1399, 2, 2)}) {
    ByteVector read(4);
    EXPECT_EQ(bench.engine().read_version_parts(*version, std::vector{box}, read, {}).error().code, Errc::kOutOfRange);
  }
  ByteVector read(5);
  EXPECT_EQ(bench.engine().read_version_parts(*version, std::vector{window_at(100, 200, 2, 2)}, read, {}).error().code,
            Errc::kInvalidArgument);
}

TEST_P(WindowVersionTest, PartsReadBetweenPlainWritesAreOfOneVersion) {
  Setting setting = small_setting(GetParam());
  setting.cache_bytes = 32u << 20;  // what plain writes change is kept in memory
  Bench bench(setting);
  std::mt19937_64 random(4);
  const ByteVector first = noise(random, 1000 * 1500);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, first).ok());
  if (random() % 2 == 0) {
    ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  }
  const Window window = window_at(0, 0, 1000, 1500);
  Parts parts(bench, window);
  while (!parts.is_done()) {
    const Status status = parts.read(90'000);
    ASSERT_TRUE(status.ok()) << status.error().message();
    ASSERT_TRUE(bench.engine().write(bench.object(), random() % 100'000, noise(random, 1'200'000)).ok());
    if (random() % 2 == 0) {
      ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
    }
  }
  EXPECT_TRUE(parts.bytes() == first);
}

TEST_P(WindowVersionTest, ExtentsThatMoveStayInTheVersion) {
  Bench bench(small_setting(GetParam()));
  std::mt19937_64 random(5);
  const Window window = window_at(0, 0, 1000, 1500);
  const ByteVector first = noise(random, 1000 * 1500);
  ASSERT_TRUE(bench.write_window(window, first).ok());
  Parts parts(bench, window);
  while (!parts.is_done()) {
    ASSERT_TRUE(parts.read(200'000).ok());
    const auto places = bench.layout();
    ASSERT_TRUE(places.ok());
    MoveRequest request;
    for (const layout::ExtentPlace& place : *places) request.extents.push_back(place.index);
    ASSERT_TRUE(bench.engine().move(bench.object(), request).ok());
    ASSERT_TRUE(bench.write_window(window_at(100, 100, 300, 900), noise(random, 300 * 900)).ok());
    for (unsigned i = 0; i < 2; ++i) ASSERT_TRUE(bench.any_store().commit_freed().ok());
  }
  EXPECT_TRUE(parts.bytes() == first);
}

TEST_P(WindowVersionTest, AVersionOfAnImageThatIsCutOffOrPunchedEndsInAnError) {
  Bench bench(small_setting(GetParam()));
  std::mt19937_64 random(6);
  const Window window = window_at(0, 0, 1000, 1500);
  ASSERT_TRUE(bench.write_window(window, noise(random, 1000 * 1500)).ok());
  Parts punched(bench, window);
  ASSERT_TRUE(punched.read(1000).ok());
  ASSERT_TRUE(bench.engine().punch(bench.object(), 1500 * 640, 1500 * 128).ok());
  EXPECT_TRUE(is_stale(punched.read_rest()));
  Parts above(bench, window_at(0, 0, 200, 1500)), cut(bench, window);
  ASSERT_TRUE(above.read(1000).ok());
  ASSERT_TRUE(cut.read(1000).ok());
  ASSERT_TRUE(bench.engine().truncate(bench.object(), 1500 * 700).ok());
  EXPECT_TRUE(is_stale(cut.read_rest()));
  EXPECT_TRUE(above.read_rest().ok());
}

// Plain writes keep what they change in memory, of which there is an eighth of 1 MiB.
TEST_P(WindowVersionTest, BeyondTheBoundOfMemoryAVersionIsGivenUpAndNeverMixed) {
  Bench bench(small_setting(GetParam()));
  std::mt19937_64 random(7);
  const ByteVector first = noise(random, 1000 * 1500);
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, first).ok());
  Parts parts(bench, window_at(0, 0, 1000, 1500));
  ASSERT_TRUE(parts.read(100'000).ok());
  ASSERT_TRUE(bench.engine().write(bench.object(), 0, noise(random, first.size())).ok());
  EXPECT_TRUE(is_stale(parts.read(100'000)));
  EXPECT_TRUE(is_stale(parts.read(100'000))) << "for good";
}

// Blocks that readers hold are taken from them before a write is refused.
TEST_P(WindowVersionTest, ReadersDoNotMakeTheVolumeFull) {
  Setting setting = small_setting(GetParam());
  setting.disks = 1;
  setting.disk_bytes = 16u << 20;
  Bench bench(setting);
  std::mt19937_64 random(8);
  const Window window = window_at(0, 0, 1000, 1500);
  std::vector<std::pair<std::unique_ptr<Parts>, ByteVector>> readers;
  unsigned stale = 0;
  for (unsigned i = 0; i < 24; ++i) {
    const ByteVector bytes = noise(random, 1000 * 1500);
    const Status written = bench.write_window(window, bytes);
    ASSERT_TRUE(written.ok()) << i << ": " << written.error().message();
    ASSERT_TRUE(bench.any_store().commit().ok());
    readers.emplace_back(std::make_unique<Parts>(bench, window), bytes);
    ASSERT_TRUE(readers.back().first->read(1000).ok());
  }
  for (auto& [parts, bytes] : readers) {
    const Status status = parts->read_rest();
    if (status.ok())
      EXPECT_TRUE(parts->bytes() == bytes);
    else if (is_stale(status))
      ++stale;
    else
      ADD_FAILURE() << status.error().message();
  }
  EXPECT_GT(stale, 0u) << "24 versions of 1.5 MB do not fit";
  EXPECT_LT(stale, 24u) << "the newest is there in any case";
}

TEST_P(WindowVersionTest, ManyReadersBesideWritersAndHolesSeeOneVersionEach) {
  Setting setting = small_setting(GetParam());
  setting.disk_bytes = 64u << 20;
  setting.cache_bytes = 4u << 20;
  Bench bench(setting);
  const Window window = window_at(30, 50, 900, 1200);
  const std::uint64_t bytes = 900 * 1200;
  std::atomic<bool> done{false};
  std::atomic<unsigned> mixed{0}, whole{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      for (unsigned round = 0; round < 30; ++round) {
        if (!bench.write_window(window, ByteVector(bytes, static_cast<std::byte>(1 + round * 2 + i))).ok()) ++wrong;
        if (i == 1 && round % 3 == 0 && !bench.engine().punch(bench.object(), 0, bench.size()).ok()) ++wrong;
        if (i == 0 && !bench.any_store().commit_freed().ok()) ++wrong;
      }
      done = true;
    });
  threads.emplace_back([&] {  // moves extents to and fro
    for (unsigned disk = 0; !done; disk = (disk + 1) % 3) {
      const auto places = bench.layout();
      MoveRequest request;
      for (const layout::ExtentPlace& place : *places) request.extents.push_back(place.index);
      request.disk = [disk](const geometry::Coord&) { return disk; };
      if (!bench.engine().move(bench.object(), request).ok()) ++wrong;
    }
  });
  for (unsigned i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      std::mt19937_64 random(i);
      while (!done) {
        Parts parts(bench, window);
        Status status;
        while (status.ok() && !parts.is_done()) status = parts.read(1 + random() % 200'000);
        if (!status.ok() && !is_stale(status)) ++wrong;
        const ByteVector& got = parts.bytes();
        if (status.ok() && std::any_of(got.begin(), got.end(), [&](std::byte b) { return b != got[0]; })) ++mixed;
        if (status.ok()) ++whole;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed, 0u);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(whole, 0u);
}

INSTANTIATE_TEST_SUITE_P(Codecs, WindowVersionTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& one) { return one.param == Codec::kRaw ? "raw" : "zstd"; });

// Versions among all the ways in which an extent can change: each part is that of the array at the time of the pin.
// Only what frees extents may end a version.
class Changes {
 public:
  explicit Changes(const Setting& setting, std::uint64_t seed)
      : bench_(setting), full_(*setting.geometry), random_(seed), array_(bench_.size()) {}

  void step() {
    using Step = void (Changes::*)();
    static constexpr std::array<Step, 14> kSteps = {
        &Changes::pin,        &Changes::write_window, &Changes::write_window, &Changes::write, &Changes::append,
        &Changes::write_back, &Changes::consolidate,  &Changes::move,         &Changes::punch, &Changes::truncate,
        &Changes::grow,       &Changes::read,         &Changes::read,         &Changes::read};
    (this->*kSteps[random_() % kSteps.size()])();
  }
  void finish() {
    read();
    RC_ASSERT(bench_.read_all() == ByteVector(array_.begin(), array_.begin() + static_cast<std::ptrdiff_t>(size_)));
  }

 private:
  struct Reader {
    std::shared_ptr<WindowVersion> version;
    ByteVector bytes;
    bool may_end = false;
  };

  bool has_window() { return bench_.geometry_now().shape[0] > 0; }
  Window window() { return random_window(random_, bench_.geometry_now()); }
  void zero(std::uint64_t from, std::uint64_t to) {
    std::fill(array_.begin() + static_cast<std::ptrdiff_t>(from), array_.begin() + static_cast<std::ptrdiff_t>(to),
              std::byte{0});
    for (Reader& reader : readers_) reader.may_end = true;
  }
  void write_at(std::uint64_t offset, std::uint64_t most) {
    if (offset >= array_.size()) return;
    const ByteVector bytes = noise(random_, 1 + random_() % std::min<std::uint64_t>(array_.size() - offset, most));
    RC_ASSERT(bench_.engine().write(bench_.object(), offset, bytes).ok());
    std::copy(bytes.begin(), bytes.end(), array_.begin() + static_cast<std::ptrdiff_t>(offset));
    size_ = std::max(size_, offset + bytes.size());
  }

  void pin() {
    if (!has_window()) return;
    const Window one = window();
    readers_.push_back(
        {bench_.engine().pin_window(bench_.object(), one).value(), array_get(full_, array_, one), false});
    if (readers_.size() > 4) readers_.erase(readers_.begin());
  }
  void write_window() {
    if (!has_window()) return;
    const Window one = window();
    const ByteVector bytes = noise(random_, geometry::window_bytes(full_, one), random_() % 2 == 0);
    RC_ASSERT(bench_.write_window(one, bytes).ok());
    array_put(full_, array_, one, bytes);
    size_ = bench_.size();
  }
  void write() { write_at(random_() % std::max<std::uint64_t>(1, size_), 20'000); }
  void append() { write_at(size_, 5'000); }
  void write_back() {
    RC_ASSERT(bench_.engine().write_back(bench_.object()).ok());
    RC_ASSERT(bench_.any_store().commit_freed().ok());
  }
  void consolidate() { RC_ASSERT(bench_.engine().consolidate(bench_.object(), UINT64_MAX, true).ok()); }
  void move() {
    const auto places = bench_.layout();
    RC_ASSERT(places.ok());
    MoveRequest request;
    for (const layout::ExtentPlace& place : *places) request.extents.push_back(place.index);
    if (random_() % 2 == 0) request.disk = [](const geometry::Coord&) { return 1u; };
    RC_ASSERT(bench_.engine().move(bench_.object(), request).ok());
  }
  // Whole rows of extents are freed, the rest is zeroed.
  void punch() {
    if (size_ == 0) return;
    const std::uint64_t first = random_() % size_, last = std::min(size_, first + random_() % (size_ / 2 + 1));
    if (first == last) return;
    RC_ASSERT(bench_.engine().punch(bench_.object(), first, last - first).ok());
    zero(first, last);
  }
  void truncate() {
    const std::uint64_t to = size_ - random_() % (size_ / 3 + 1);
    RC_ASSERT(bench_.engine().truncate(bench_.object(), to).ok());
    zero(to, array_.size());
    size_ = to;
  }
  void grow() {
    size_ += random_() % (array_.size() - size_ + 1);
    RC_ASSERT(bench_.engine().grow(bench_.object(), size_).ok());
  }
  void read() {
    for (Reader& reader : readers_) {
      const std::uint64_t offset = random_() % reader.bytes.size();
      ByteVector got(1 + random_() % (reader.bytes.size() - offset));
      const Status status = bench_.engine().read_version(*reader.version, offset, got);
      RC_ASSERT((status.ok() || (is_stale(status) && reader.may_end)));
      RC_ASSERT((!status.ok() ||
                 std::equal(got.begin(), got.end(), reader.bytes.begin() + static_cast<std::ptrdiff_t>(offset))));
    }
  }

  Bench bench_;
  const Geometry full_;
  std::mt19937_64 random_;
  ByteVector array_;  // of the full shape: zeros beyond the size
  std::uint64_t size_ = array_.size();
  std::vector<Reader> readers_;
};

RC_GTEST_PROP(WindowVersionPropertyTest, EveryPartIsOfTheArrayAtTheTimeOfThePin, ()) {
  Setting setting;
  const auto rank = *rc::gen::inRange(2u, 4u);
  const std::uint64_t longest = rank == 2 ? 300 : 50;
  geometry::Coord shape{}, extent{};
  for (unsigned axis = 0; axis < rank; ++axis) {
    shape[axis] = *rc::gen::inRange<std::uint64_t>(longest / 2, longest);
    extent[axis] = *rc::gen::inRange<std::uint64_t>(longest / 8, longest / 3);
  }
  setting.geometry =
      image_of(rank, shape, extent, *rc::gen::element(Codec::kRaw, Codec::kZstd), *rc::gen::element(1u, 3u));
  setting.on_disks = true;
  setting.cache_bytes = 16u << 20;
  Changes changes(setting, *rc::gen::arbitrary<std::uint64_t>());
  for (unsigned step = *rc::gen::inRange(5u, 80u); step > 0; --step) changes.step();
  changes.finish();
}

}  // namespace
}  // namespace mdfs::engine::testing
