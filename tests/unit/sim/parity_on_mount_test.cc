// The parities that the simulator predicts, and those that the engine of a mount makes, reads and rebuilds.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "bench_with_faults.h"
#include "format/extent_copies.h"
#include "geometry/extent_grid.h"
#include "mount_disks.h"
#include "sim/experiment.h"
#include "sim/parity_layout.h"
#include "sim/rebuild.h"

namespace mdfs::sim {
namespace {

using engine::testing::BenchWithFaults;

// Passes everything on, and keeps where was read. Once it is lost, it answers as the disk of a store that is not there.
class ReadsDisk final : public device::Disk {
 public:
  struct Read {
    std::uint64_t offset = 0, bytes = 0;
  };
  explicit ReadsDisk(device::Disk& inner) : inner_(inner) {}
  const std::string& name() const override { return inner_.name(); }
  std::uint64_t size_bytes() const override { return inner_.size_bytes(); }
  bool writable() const override { return inner_.writable(); }
  void lose() { lost_ = true; }
  void submit(std::span<device::Io* const> batch) override {
    if (lost_) {
      for (device::Io* const io : batch) {
        io->status = Error{Errc::kMissingDisk, "lost"};
        io->done(*io);
      }
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      for (const device::Io* const io : batch)
        if (io->op == device::Op::kRead) reads_.push_back({io->offset, io->bytes()});
    }
    inner_.submit(batch);
  }
  std::vector<Read> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reads_, {});
  }

 private:
  device::Disk& inner_;
  bool lost_ = false;
  std::mutex mutex_;
  std::vector<Read> reads_;
};

// A block of an extent's first piece, or of the parity (or the copy) of the group whose lowest member it is.
struct PieceBlock {
  bool is_parity = false;
  std::uint64_t extent = 0;
  std::uint64_t block = 0;
  unsigned disk = 0;
  auto operator<=>(const PieceBlock&) const = default;
};
void PrintTo(const PieceBlock& one, std::ostream* out) {
  *out << (one.is_parity ? "parity of " : "extent ") << one.extent << " block " << one.block << " disk " << one.disk;
}
using Reads = std::map<PieceBlock, unsigned>;  // how often each is read

struct Image {
  const char* name;
  unsigned rank;
  geometry::Coord shape, extent;
  unsigned disks, width;
};
void PrintTo(const Image& image, std::ostream* out) { *out << image.name; }

class ParityOnMountTest : public ::testing::TestWithParam<Image> {
 protected:
  ParityOnMountTest()
      : geometry_(
            engine::testing::image_of(GetParam().rank, GetParam().shape, GetParam().extent, geometry::Codec::kRaw)),
        faults_({.geometry = geometry_,
                 .disks = GetParam().disks,
                 .cache_bytes = 1u << 30,  // a window is one load
                 .copies = true,
                 .group_members = GetParam().width,
                 .base = 0}) {
    std::mt19937_64 random(5);
    data_ = engine::testing::noise(random, geometry_.size_bytes());
    for (unsigned disk = 0; disk < GetParam().disks; ++disk) {
      disks_.push_back(std::make_unique<ReadsDisk>(faults_.disk(disk)));
      bench_.store().put_in_front(disk, *disks_.back());
    }
    EXPECT_TRUE(bench_.engine().write(bench_.object(), 0, data_).ok());
    EXPECT_TRUE(bench_.form_groups().ok());
  }
  ~ParityOnMountTest() override { bench_.stop_engine(); }  // before the disks in front

  System simulated(std::optional<unsigned> lost) const {
    sim::Setup setup = mount_disks(GetParam().disks, 0);
    setup.image = geometry_;
    setup.width = GetParam().width;
    setup.lost_disk = lost;
    return System::make(std::move(setup)).value();
  }
  std::vector<layout::ExtentPlace> rows() { return bench_.layout().value(); }
  std::uint64_t number_of(const geometry::Coord& extent) const {
    return geometry::extent_index(geometry::byte_geometry(geometry_), extent);
  }
  // The last disk, which is the one that the store can miss.
  unsigned lose() {
    const unsigned lost = GetParam().disks - 1;
    bench_.store().set_missing(true);
    disks_[lost]->lose();
    return lost;
  }
  // Reads an extent of the disk outside of the window, so that the engine knows of the loss. False: there is none.
  bool find_out(const System& system, unsigned lost, const geometry::Window& window) {
    const geometry::ByteGeometry bytes = geometry::byte_geometry(geometry_);
    for (std::uint64_t number = 0; number < system.parities().extents(); ++number) {
      const geometry::Coord extent = geometry::extent_coord(bytes, number);
      bool outside = false;
      geometry::Window one;
      for (unsigned axis = 0; axis < geometry_.rank; ++axis) {
        one.start[axis] = extent[axis] * geometry_.extent[axis];
        one.length[axis] = 1;
        outside = outside || one.start[axis] >= window.start[axis] + window.length[axis] ||
                  one.start[axis] + geometry_.extent[axis] <= window.start[axis];
      }
      if (!outside || system.parities().disk_of(extent) != lost) continue;
      bench_.read_window(one);
      return true;
    }
    return false;
  }
  Reads taken_reads() {
    std::map<std::pair<unsigned, std::uint64_t>, std::pair<bool, std::uint64_t>> pieces;  // by disk and first block
    for (const layout::ExtentPlace& row : rows()) pieces[{row.disk, row.block}] = {row.is_copy, number_of(row.index)};
    Reads reads;
    for (unsigned disk = 0; disk < disks_.size(); ++disk)
      for (const ReadsDisk::Read& read : disks_[disk]->take())
        for (std::uint64_t block = read.offset / 4096; block < (read.offset + read.bytes) / 4096; ++block) {
          const auto piece = std::prev(pieces.upper_bound({disk, block}));
          EXPECT_EQ(piece->first.first, disk);
          ++reads[{piece->second.first, piece->second.second, block - piece->first.second, disk}];
        }
    return reads;
  }
  // With nothing in the cache; the engine knows of the loss. Nothing: it cannot know.
  std::optional<Reads> reads_of_mount(const System& system, std::optional<unsigned> lost,
                                      const geometry::Window& window) {
    EXPECT_TRUE(bench_.reopen().ok());
    if (lost && !find_out(system, *lost, window)) return std::nullopt;
    for (const auto& disk : disks_) disk->take();
    EXPECT_EQ(bench_.read_window(window), engine::testing::array_get(geometry_, data_, window));
    return taken_reads();
  }
  // What the simulator reads, by the places of its own layout: each block once.
  static Reads reads_of(const System& system, const std::vector<ReadUnit>& units) {
    std::map<std::pair<unsigned, std::uint64_t>, std::pair<bool, std::uint64_t>> pieces;
    const ParityLayout& parities = system.parities();
    const geometry::ByteGeometry bytes = geometry::byte_geometry(system.setup().image);
    for (std::uint64_t number = 0; number < parities.extents(); ++number)
      pieces[{parities.disk_of(geometry::extent_coord(bytes, number)), system.layout().offset_of(number)}] = {false,
                                                                                                              number};
    for (std::size_t i = 0; i < parities.groups(); ++i) {
      const ParityLayout::Group group = parities.group(i);
      const auto [at, is_new] =
          pieces.insert({{group.disk, system.offset_of_parity(group)}, {true, group.members.front()}});
      EXPECT_TRUE(is_new) << "no two pieces lie at one place";
    }
    Reads reads;
    const auto add = [&](const geometry::PlanPart& part) {
      const auto piece = std::prev(pieces.upper_bound({part.disk, part.offset_bytes}));
      for (std::uint64_t at = 0; at < part.length_bytes; at += 4096)
        reads[{piece->second.first, piece->second.second, (part.offset_bytes - piece->first.second + at) / 4096,
               part.disk}] = 1;
    };
    for (const ReadUnit& unit : units) {
      if (unit.others.empty()) add(unit.place);
      for (const geometry::PlanPart& part : unit.others) add(part);
    }
    return reads;
  }
  static Reads only_in(const Reads& one, const Reads& other) {
    Reads left;
    std::set_difference(one.begin(), one.end(), other.begin(), other.end(), std::inserter(left, left.end()));
    return left;
  }
  // Extents whose copy may be read as well: that choice has tests of its own.
  static void drop_choices(const System& system, Reads& reads) {
    const ParityLayout& parities = system.parities();
    std::erase_if(reads,
                  [&](const auto& one) { return parities.group(parities.group_of(one.first.extent)).is_copy(); });
  }

  const geometry::Geometry geometry_;
  BenchWithFaults faults_;
  engine::testing::Bench& bench_ = faults_.bench();
  std::vector<std::unique_ptr<ReadsDisk>> disks_;
  ByteVector data_;
};

TEST_P(ParityOnMountTest, TheGroupsAndTheDisksOfTheirParitiesAreThoseOfTheMount) {
  const System system = simulated(std::nullopt);
  const ParityLayout& parities = system.parities();
  using Piece = std::tuple<std::uint64_t, unsigned, bool>;  // the lowest member, the disk, a parity
  std::set<Piece> expected, found;
  std::set<std::set<std::uint64_t>> expected_members, found_members;
  for (std::size_t i = 0; i < parities.groups(); ++i) {
    const ParityLayout::Group group = parities.group(i);
    expected.insert({group.members.front(), group.disk, !group.is_copy()});
    if (!group.is_copy()) expected_members.insert({group.members.begin(), group.members.end()});
  }
  for (const layout::ExtentPlace& row : rows()) {
    if (row.is_copy)
      found.insert({number_of(row.index), row.disk, row.is_parity});
    else
      EXPECT_EQ(row.disk, parities.disk_of(row.index));
  }
  EXPECT_EQ(found, expected);
  const format::ExtentTableShape& shape = bench_.object().table;
  for (const auto& [key, value] : bench_.store().items()) {
    if (key.object != bench_.object().number || key.kind != MDFS_KIND_PARITY) continue;
    const format::CopyPage page = format::CopyPage::decode(value, shape).value();
    for (const format::ParityGroup& group : page.groups()) {
      std::set<std::uint64_t> members;
      for (unsigned place = 0; place < bench_.object().page_box.places; ++place)
        if (group.has(place)) members.insert(number_of(bench_.object().extent_of({key.offset, place})));
      found_members.insert(members);
    }
  }
  EXPECT_EQ(found_members, expected_members);
}

TEST_P(ParityOnMountTest, AWindowIsReadFromThePiecesThatTheMountReads) {
  for (const bool degraded : {false, true}) {
    const std::optional<unsigned> lost = degraded ? std::optional(lose()) : std::nullopt;
    const System system = simulated(lost);
    Random random(7);
    unsigned made = 0;
    for (unsigned i = 0; i < 40; ++i) {
      geometry::Coord length{};
      for (unsigned axis = 0; axis < geometry_.rank; ++axis) length[axis] = 1 + random.below(geometry_.shape[axis]);
      const geometry::Window window = random_window(geometry_, length, random);
      std::optional<Reads> found = reads_of_mount(system, lost, window);
      if (!found) continue;
      drop_choices(system, *found);
      double bytes = 0;
      const std::vector<ReadUnit> units = system.units_under({&window, 1}, 0, bytes);
      for (const ReadUnit& unit : units) made += unit.others.empty() ? 0 : 1;
      Reads expected = reads_of(system, units);
      drop_choices(system, expected);
      // On a busy computer a request may be late, and its bytes are read again from others.
      for (unsigned tries = 0; tries < 5 && *found != expected; ++tries) {
        found = reads_of_mount(system, lost, window);
        drop_choices(system, *found);
      }
      EXPECT_EQ(only_in(*found, expected), Reads()) << "read by the mount alone, window " << i;
      EXPECT_EQ(only_in(expected, *found), Reads()) << "read by the simulator alone, window " << i;
    }
    EXPECT_EQ(made > 0, degraded);
  }
}

TEST_P(ParityOnMountTest, ARebuildReadsAndWritesOnEachDiskWhatTheMountDoes) {
  const unsigned lost = lose();
  const System system = simulated(lost);
  const RebuildPlan plan = plan_rebuild(system).value();
  ASSERT_TRUE(bench_.reopen().ok());
  for (const auto& disk : disks_) disk->take();
  const engine::ProtectOutcome outcome = bench_.convert().value();
  EXPECT_EQ(outcome.no_room, 0U);
  for (unsigned disk = 0; disk < disks_.size(); ++disk) {
    std::uint64_t read = 0;
    for (const ReadsDisk::Read& one : disks_[disk]->take()) read += one.bytes;
    EXPECT_EQ(plan.disks[disk].read_bytes, read) << disk;
    EXPECT_EQ(plan.disks[disk].written_bytes, outcome.bytes_of_disks[disk]) << disk;
  }
}

constexpr Image kImages[] = {
    {"PairsOn3", 2, {1024, 1024}, {128, 128}, 3, 2},      {"PairsOn4", 2, {1024, 1024}, {128, 128}, 4, 2},
    {"PairsOn5", 2, {1024, 1024}, {128, 128}, 5, 2},      {"FoursOn5", 2, {1024, 1024}, {128, 128}, 5, 4},
    {"FoursOn6", 2, {1024, 1024}, {128, 128}, 6, 4},      {"FoursOn7", 2, {1024, 1024}, {128, 128}, 7, 4},
    {"FoursOn8", 2, {1024, 1024}, {128, 128}, 8, 4},      {"EightsOn9", 2, {1024, 1024}, {128, 128}, 9, 8},
    {"EightsOn12", 2, {1024, 1024}, {128, 128}, 12, 8},   {"OddGrid", 2, {1350, 900}, {128, 128}, 8, 4},
    {"Volume", 3, {48, 192, 192}, {8, 48, 48}, 8, 4},     {"Line", 1, {1 << 20}, {16384}, 6, 4},
    {"LargeExtents", 2, {3072, 3072}, {512, 768}, 7, 4},  {"SeveralBatches", 2, {6144, 2048}, {256, 256}, 8, 4},
    {"SeveralPages", 2, {2048, 4096}, {128, 128}, 10, 4},
};
constexpr auto kNameOfImage = [](const auto& one) { return std::string(one.param.name); };
INSTANTIATE_TEST_SUITE_P(Images, ParityOnMountTest, ::testing::ValuesIn(kImages), kNameOfImage);

}  // namespace
}  // namespace mdfs::sim
