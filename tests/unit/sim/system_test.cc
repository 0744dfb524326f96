// Machines at work: cases worked out by hand, conservation, layouts, options.
// SPDX-License-Identifier: Apache-2.0
#include "sim/system.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/experiment.h"
#include "sim/simulation.h"

namespace mdfs::sim {
namespace {

constexpr double kMebi = 1048576;
constexpr double kFull = 128 * 128 * 3;

System preset(const std::string& name, unsigned disks) {
  sim::Setup setup = default_setup(model::find_machine(name).value()).value();
  setup.disks = disks;
  return System::make(std::move(setup)).value();
}

System from_text(const std::string& text) {
  const auto machine = model::parse_machine(text, "test");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  return System::make(default_setup(*machine).value()).value();
}

geometry::Window at(std::uint64_t x, std::uint64_t y, std::uint64_t width, std::uint64_t height) {
  geometry::Window window;
  window.start = {y, x, 0};
  window.length = {height, width, 0};
  return window;
}

double delay(const System& system, const geometry::Window& window) {
  return read_window(system, window, 1).record.delay_s();
}

TEST(SystemTest, TwoExtentsOfAGigaViewTakeWhatTheHandSays) {
  const double decompose = 0.19e-3;
  const double read = 0.020 + kFull / (2.28 * kMebi) + 0.82e-3 + 2 * kFull / (18 * kMebi);
  const double send = kFull / (1.32 * kMebi);
  const double merge = 2 * kFull / (18 * kMebi);
  // Both are read and sent at once; the second waits for the first to be merged.
  EXPECT_NEAR(delay(preset("gigaview-t800", 4), at(0, 0, 256, 128)), decompose + read + send + 2 * merge, 1e-12);
}

TEST(SystemTest, ThreeExtentsOnTwoDisksTakeWhatTheHandSays) {
  const double decompose = 0.19e-3;
  const double read = 0.020 + kFull / (2.28 * kMebi) + 0.82e-3 + 2 * kFull / (18 * kMebi);
  const double send = kFull / (1.32 * kMebi);
  const double merge = 2 * kFull / (18 * kMebi);
  // Disk 0 has the first and the third; by the time the third comes nothing else is under way.
  EXPECT_NEAR(delay(preset("gigaview-t800", 2), at(0, 0, 384, 128)), decompose + 2 * read + send + merge, 1e-12);
}

TEST(SystemTest, APartOfAnExtentCostsItsPartOnly) {
  const double part = 100 * 50 * 3;
  const double expected = 0.19e-3 + 0.020 + kFull / (2.28 * kMebi) + 0.82e-3 + (kFull + part) / (18 * kMebi) +
                          part / (1.32 * kMebi) + (kFull + part) / (18 * kMebi);
  EXPECT_NEAR(delay(preset("gigaview-t800", 4), at(10, 20, 100, 50)), expected, 1e-12);
}

TEST(SystemTest, TwoExtentsOnABusTakeWhatTheHandSays) {
  const double bus = 75 * kMebi;
  const double request = 64 / bus;
  const double read = 0.010 + kFull / (4 * kMebi);
  // The bus serves both requests, then the two extents in turn: DMA, fetch and merge of each.
  EXPECT_NEAR(delay(preset("dec-cluster", 8), at(0, 0, 256, 128)), request + read + 2 * (1 + 1 + 3) * kFull / bus,
              1e-12);
}

TEST(SystemTest, OneAtATimeMeansTheSumOfAllReads) {
  const double read = 0.010 + kFull / 2.93e6;
  EXPECT_NEAR(delay(preset("sparc-disk", 1), at(0, 0, 384, 128)), 3 * read, 1e-12);
}

TEST(SystemTest, LeftSymmetricParityGoesRound) {
  const System raid = preset("raid5", 5);
  // Extents of 48 KiB in units of 64 KiB: the second extent straddles units 0 and 1.
  const Split split = raid.split(at(0, 0, 3072, 2048), 0);
  ASSERT_EQ(split.extents, 384U);
  EXPECT_EQ(split.requests[0].disk, 0U);  // stripe 0: parity on disk 4
  EXPECT_EQ(split.requests[1].disk, 0U);
  EXPECT_EQ(split.requests[2].disk, 1U);
  EXPECT_EQ(split.requests[1].full_bytes, 16384);
  EXPECT_EQ(split.requests[2].full_bytes, 32768);
  double bytes = 0;
  std::vector<double> of_disk(5);
  for (const Request& request : split.requests) {
    bytes += request.full_bytes;
    of_disk[request.disk] += request.full_bytes;
    EXPECT_LE(request.full_bytes, 65536);
  }
  EXPECT_EQ(bytes, 384 * kFull);
  for (const double share : of_disk) EXPECT_NEAR(share, bytes / 5, 4 * 65536);
  // Stripe 1 has its parity on disk 3 and begins on disk 4: unit 4 is at byte 262144, in extent 5.
  const auto fifth = std::find_if(split.requests.begin(), split.requests.end(),
                                  [](const Request& r) { return r.address_bytes >= 65536; });
  EXPECT_EQ(fifth->disk, 4U);
}

TEST(SystemTest, NoExtentAndNoByteIsLost) {
  for (const model::Preset& one : model::presets()) {
    const System system = preset(std::string(one.name), model::find_machine(std::string(one.name))->disks);
    const geometry::Geometry& image = system.setup().image;
    geometry::Coord length{};
    for (unsigned axis = 0; axis < image.rank; ++axis) length[axis] = std::min<std::uint64_t>(image.shape[axis], 700);
    Simulation simulation(system, 3);
    Random random(4);
    double bytes = 0;
    std::uint64_t requests = 0;
    for (unsigned i = 0; i < 20; ++i) {
      const auto window = random_window(image, length, random);
      requests += system.split(window, 0).requests.size();
      simulation.submit_at(0.01 * i, window);
    }
    simulation.run();
    for (const WindowRecord& record : simulation.records()) {
      EXPECT_GT(record.done_s, record.arrival_s) << one.name;
      bytes += record.window_bytes;
    }
    EXPECT_EQ(bytes, 20 * std::pow(700.0, image.rank) * static_cast<double>(image.sample_bytes())) << one.name;
    for (const ResourceUse& use : simulation.use()) {
      std::uint64_t served = 0;
      for (const InstanceUse& instance : use.instances) {
        served += instance.served;
        EXPECT_LE(instance.utilization, 1 + 1e-9) << one.name;
      }
      if (use.name == "disk") {
        EXPECT_GE(served, requests * 3 / 4) << one.name;  // a shelf with a cache reads less
        EXPECT_LE(served, requests) << one.name;
      }
    }
  }
}

TEST(SystemTest, ReversedTiesChangeNoDelay) {
  const System system = preset("gigaview-t9000-000", 8);
  for (const auto& window : {at(0, 0, 512, 512), at(128, 256, 1024, 256)}) {
    std::vector<double> delays;
    for (const TieOrder ties : {TieOrder::kInsertion, TieOrder::kReversed}) {
      Simulation simulation(system, 1, ties);
      simulation.submit_at(0, window);
      simulation.run();
      delays.push_back(simulation.records()[0].delay_s());
    }
    EXPECT_NEAR(delays[0], delays[1], 1e-12);
  }
}

constexpr const char* kCache = R"(name = "cache"
hit_ratio = 0.25
[placement]
requests = "extents"
[[resource]]
name = "disk"
count = "disks"
[[stage]]
name = "read"
resource = "disk"
when = "miss"
cost = "10 ms"
)";

TEST(SystemTest, HitsSkipTheStagesOfMisses) {
  const System system = from_text(kCache);
  const WindowResult result = read_window(system, at(0, 0, 8192, 8192), 1);  // 4096 extents on one disk
  EXPECT_NEAR(static_cast<double>(result.use[0].instances[0].served) / 4096, 0.75, 0.03);
  EXPECT_NEAR(result.record.delay_s(), 0.010 * static_cast<double>(result.use[0].instances[0].served), 1e-9);
}

TEST(SystemTest, AMachineOfWindowStagesServesWindows) {
  const System fixed = preset("fixed-server", 1);
  EXPECT_DOUBLE_EQ(delay(fixed, at(5, 5, 512, 512)), 0.305);
  const System both = from_text(R"(name = "both"
outstanding = 2
[placement]
requests = "extents"
[[resource]]
name = "disk"
count = "disks"
servers = 2
[[resource]]
name = "host"
count = 1
[[stage]]
name = "ask"
resource = "host"
per = "window"
cost = "1 ms"
[[stage]]
name = "read"
resource = "disk"
cost = "10 ms"
[[stage]]
name = "reply"
resource = "host"
per = "window"
cost = "part / 1 MB/s"
)");
  // Three extents, two at a time: 1 + 2 * 10 ms, then the window's bytes.
  EXPECT_NEAR(delay(both, at(0, 0, 384, 128)), 0.021 + 384 * 128 * 3 / 1e6, 1e-12);
}

TEST(SystemTest, UniformSeeksKeepTheMean) {
  sim::Setup setup = default_setup(model::find_machine("sparc-disk").value()).value();
  setup.uniform_seeks = true;
  const System system = System::make(std::move(setup)).value();
  const WindowResult result = read_window(system, at(0, 0, 3072, 2048), 1);
  const double extents = 384;
  const double mean = result.record.delay_s() / extents - kFull / 2.93e6;
  EXPECT_NEAR(mean, 0.010, 0.001);
  EXPECT_GT(std::fabs(mean - 0.010), 1e-9);
}

TEST(SystemTest, PlanesAndColumnsOfAVolumeUseAllDisks) {
  const auto machine = model::find_machine("gigaview-t9000-000").value();
  sim::Setup setup = default_setup(machine).value();
  setup.image = make_image("1024x1024x1024", "32x32x32", true, 1).value();
  setup.disks = 8;
  const System system = System::make(std::move(setup)).value();
  for (unsigned axis = 0; axis < 3; ++axis) {
    geometry::Window window = geometry::whole(system.setup().image);
    window.start[axis] = 17;
    window.length[axis] = 1;
    std::vector<unsigned> of_disk(8);
    for (const Request& request : system.split(window, 0).requests) ++of_disk[request.disk];
    for (const unsigned count : of_disk) EXPECT_EQ(count, 32U * 32 / 8) << "axis " << axis;
  }
}

TEST(SystemTest, ExtentsOfADiskLieInOrderInGroupsThatDoNotOverlap) {
  sim::Setup setup = default_setup(model::find_machine("sata-disk").value()).value();
  setup.machine.layout.requests = model::Layout::Requests::kExtents;
  setup.disks = 10;
  const System system = System::make(std::move(setup)).value();
  const double extent_bytes = 512 * 512 * 3;
  const auto requests = system.split(geometry::whole(system.setup().image), 0).requests;
  std::set<std::pair<unsigned, double>> places;
  std::vector<double> last(10, -1);
  int sequential = 0;
  for (const Request& request : requests) {
    EXPECT_TRUE(places.insert({request.disk, request.address_bytes}).second) << request.address_bytes;
    EXPECT_LT(request.address_bytes, 4e12);
    if (request.address_bytes == last[request.disk] + extent_bytes) ++sequential;
    last[request.disk] = request.address_bytes;
  }
  // 256 extents on 10 disks, ten in a group: of 26 on a disk, 2 or 3 begin a group.
  EXPECT_EQ(requests.size(), 256U);
  EXPECT_EQ(sequential, 256 - 30);
}

// Mean delay of windows on a machine with zones, whose disks were filled to this share before.
double delay_when_filled(double filled, const std::string& group) {
  const std::string text = R"(
name = "zones"
disks = 4
[placement]
filled = )" + std::to_string(filled) +
                           group + R"(
[[resource]]
name = "disk"
count = "disks"
head = { track = "0 s", stroke = "0 s", rotation = "0 s", capacity = "100 GB" }
[[stage]]
name = "read"
resource = "disk"
cost = "full / 200 MB/s .. 100 MB/s"
)";
  sim::Setup setup = default_setup(model::parse_machine(text, "zones").value()).value();
  const System system = System::make(setup).value();
  return read_random(system, {2048, 2048, 0}, 100, 1).mean_delay_s;
}

TEST(SystemTest, OnDisksWithZonesScatteredGroupsKeepTheirSpeedAsTheDiskFillsAndOthersDoNot) {
  EXPECT_NEAR(delay_when_filled(0.9, "") / delay_when_filled(0.1, ""), 190.0 / 110, 0.02);
  const std::string scattered = "\ngroup = \"1 MiB\"";
  EXPECT_NEAR(delay_when_filled(0.9, scattered) / delay_when_filled(0.1, scattered), 1, 0.001);
}

TEST(SystemTest, OptionsThatDoNotFitAreErrors) {
  sim::Setup setup = default_setup(model::find_machine("raid5").value()).value();
  setup.disks = 7;
  EXPECT_FALSE(System::make(setup).ok());
  setup.disks = 0;
  EXPECT_FALSE(System::make(setup).ok());
  EXPECT_FALSE(make_image("0x12", "4x4", true, 3).ok());
  EXPECT_FALSE(make_image("100x100", "4x4x4", true, 3).ok());
  EXPECT_TRUE(make_image("100x100x100", "4x4", false, 3).ok());
  EXPECT_FALSE(make_image("100x100", "0x4", true, 3).ok());
}

TEST(SystemTest, SeveralWindowsAreOneRequestThatReadsACommonExtentOnce) {
  const System system = preset("gigaview-t800", 4);
  // The left half of one extent and the upper half of it and its right neighbour.
  const std::vector<geometry::Window> windows = {at(0, 0, 64, 128), at(0, 0, 256, 64)};
  const Split split = system.split(windows, 0);
  EXPECT_EQ(split.extents, 2U);
  ASSERT_EQ(split.requests.size(), 2U);
  EXPECT_DOUBLE_EQ(split.full_bytes, 2 * kFull);
  EXPECT_DOUBLE_EQ(split.part_bytes, kFull / 2 + kFull);
  EXPECT_DOUBLE_EQ(split.requests[0].part_bytes, kFull);
  EXPECT_DOUBLE_EQ(split.requests[1].part_bytes, kFull / 2);
}

// 2 x 4 extents of 48 KiB on two disks: the rows of disk 0 lie together, those of disk 1 have a hole and a gap.
std::shared_ptr<StoredImage> stored_image() {
  auto stored = std::make_shared<StoredImage>();
  const auto full = static_cast<std::uint64_t>(kFull);
  stored->places = {{0, 0, full},        {0, full, full}, {0, 2 * full, full},  {0, 3 * full, full},
                    {1, 8 * full, full}, {1, 0, 0},       {1, 20 * full, full}, {1, 9 * full, full}};
  stored->disk_bytes = {1e9, 1e9};
  stored->rules = {.sub_block_bytes = 0, .block_bytes = 4096, .max_request_bytes = 3 * full};
  return stored;
}

System stored_system(const std::shared_ptr<StoredImage>& stored) {
  sim::Setup setup = default_setup(model::find_machine("sparc-disk").value()).value();
  setup.machine = model::as_disks(setup.machine);  // all requests at once
  setup.disks = 2;
  setup.image = make_image("256x512", "128x128", true, 3).value();
  setup.stored = stored;
  const auto system = System::make(std::move(setup));
  EXPECT_TRUE(system.ok()) << system.error().message();
  return *system;
}

TEST(SystemTest, AStoredImageIsReadInTheRequestsOfAMount) {
  const System system = stored_system(stored_image());
  const Split split = system.split(at(0, 0, 512, 256), 0);
  // Disk 0: four neighbours, at most three in a request, cut evenly. Disk 1: two neighbours, and one apart.
  ASSERT_EQ(split.requests.size(), 4U);
  EXPECT_EQ(split.requests[0].disk, 0U);
  EXPECT_DOUBLE_EQ(split.requests[0].full_bytes + split.requests[1].full_bytes, 4 * kFull);
  EXPECT_EQ(split.requests[2].disk, 1U);
  EXPECT_DOUBLE_EQ(split.requests[2].address_bytes, 8 * kFull);
  EXPECT_DOUBLE_EQ(split.requests[2].full_bytes, 2 * kFull);
  EXPECT_DOUBLE_EQ(split.requests[3].address_bytes, 20 * kFull);
  EXPECT_DOUBLE_EQ(split.part_bytes, 8 * kFull);  // of the window, the hole included
  EXPECT_DOUBLE_EQ(split.full_bytes, 7 * kFull);
  EXPECT_NEAR(delay(system, at(0, 0, 512, 256)), 2 * 0.010 + 4 * kFull / 2.93e6, 1e-12);
}

TEST(SystemTest, AStoredImageOfSubBlocksReadsOnlyThoseUnderTheWindow) {
  const auto stored = stored_image();
  stored->rules.sub_block_bytes = 16384;
  const System system = stored_system(stored);
  // 42 rows of 384 bytes are 16128: one sub-block.
  const Split one = system.split(at(0, 0, 128, 42), 0);
  ASSERT_EQ(one.requests.size(), 1U);
  EXPECT_DOUBLE_EQ(one.requests[0].full_bytes, 16384);
  const Split two = system.split(at(0, 0, 128, 43), 0);
  ASSERT_EQ(two.requests.size(), 1U);
  EXPECT_DOUBLE_EQ(two.requests[0].full_bytes, 2 * 16384);
}

TEST(SystemTest, AStoredImageThatDoesNotFitIsRefused) {
  auto stored = stored_image();
  stored->places.pop_back();
  sim::Setup setup = default_setup(model::find_machine("sparc-disk").value()).value();
  setup.disks = 2;
  setup.image = make_image("256x512", "128x128", true, 3).value();
  setup.stored = stored;
  EXPECT_FALSE(System::make(setup).ok());
  stored->places.push_back({2, 0, 1});
  EXPECT_FALSE(System::make(setup).ok());
}

// 2 x 4 extents of 48 KiB on two disks in turn, row by row.
Setup fresh_setup() {
  Setup setup = default_setup(model::find_machine("nvme").value()).value();
  setup.disks = 2;
  setup.row_offset = 0;
  setup.image = make_image("256x512", "128x128", true, 3).value();
  return setup;
}

TEST(SystemTest, AFreshImageIsReadInTheRequestsOfAMount) {
  const System system = System::make(fresh_setup()).value();
  // Four neighbours of 48 KiB on each disk: one request.
  const Split all = system.split(at(0, 0, 512, 256), 0);
  ASSERT_EQ(all.requests.size(), 2U);
  EXPECT_DOUBLE_EQ(all.requests[0].full_bytes, 4 * kFull);
  EXPECT_EQ(all.requests[1].disk, 1U);
  // One sub-block of the second extent of disk 1.
  const Split one = system.split(at(384, 0, 128, 42), 0);
  ASSERT_EQ(one.requests.size(), 1U);
  EXPECT_EQ(one.requests[0].disk, 1U);
  EXPECT_DOUBLE_EQ(one.requests[0].full_bytes, 16384);
  EXPECT_DOUBLE_EQ(one.requests[0].address_bytes, 2 * kFull);  // behind both of the second column
  EXPECT_DOUBLE_EQ(one.part_bytes, 128 * 42 * 3);
}

TEST(SystemTest, ACompressedImageIsReadInWholeExtents) {
  sim::Setup setup = fresh_setup();
  setup.compressed_share = 0.3;  // 14746 bytes: 4 blocks of 4096
  const System system = System::make(setup).value();
  const Split one = system.split(at(384, 0, 1, 1), 0);
  ASSERT_EQ(one.requests.size(), 1U);
  EXPECT_DOUBLE_EQ(one.requests[0].full_bytes, 16384);
  EXPECT_DOUBLE_EQ(one.requests[0].address_bytes, 2 * 16384);
  setup.machine.layout.requests = model::Layout::Requests::kExtents;
  EXPECT_DOUBLE_EQ(System::make(setup).value().split(at(384, 0, 1, 1), 0).requests[0].full_bytes,
                   std::round(kFull * 0.3));
  for (const double bad : {0.0, -1.0, 2.5}) {
    setup.compressed_share = bad;
    EXPECT_FALSE(System::make(setup).ok()) << bad;
  }
}

// The same requests whether the layout says where extents lie or the mount.
TEST(SystemTest, AnyWindowOfAFreshImageIsReadLikeThatOfAnImageStoredInOrder) {
  for (const bool compressed : {false, true}) {
    sim::Setup setup = fresh_setup();
    setup.disks = 3;
    setup.row_offset.reset();
    setup.image = make_image("900x1100", "100x130", true, 3).value();
    if (compressed) setup.compressed_share = 0.41;
    const System fresh = System::make(setup).value();
    auto stored = std::make_shared<StoredImage>();
    stored->disk_bytes = {1e9, 1e9, 1e9};
    stored->rules.sub_block_bytes = compressed ? 0 : 16384;
    const std::uint64_t bytes = compressed ? static_cast<std::uint64_t>(std::round(39000 * 0.41)) : 39000;
    stored->places.resize(81);
    std::vector<std::uint64_t> end(3);
    for (std::uint64_t band = 0; band < 3; ++band)  // a mount writes three rows of extents, column by column
      for (std::uint64_t x = 0; x < 9; ++x)
        for (std::uint64_t y = 3 * band; y < 3 * band + 3; ++y) {
          const unsigned disk = fresh.split(at(x * 130, y * 100, 1, 1), 0).requests.at(0).disk;
          stored->places[y * 9 + x] = {disk, end[disk], bytes};
          end[disk] += (bytes + 4095) / 4096 * 4096;
        }
    setup.stored = stored;
    const System known = System::make(setup).value();
    Random random(1);
    for (int i = 0; i < 300; ++i) {
      const geometry::Coord length{1 + random.below(900), 1 + random.below(1100), 0};
      const geometry::Window window = random_window(setup.image, length, random);
      const Split a = fresh.split(window, 0), b = known.split(window, 0);
      ASSERT_EQ(a.requests.size(), b.requests.size());
      for (std::size_t r = 0; r < a.requests.size(); ++r) {
        EXPECT_EQ(a.requests[r].disk, b.requests[r].disk);
        EXPECT_EQ(a.requests[r].address_bytes, b.requests[r].address_bytes);
        EXPECT_EQ(a.requests[r].full_bytes, b.requests[r].full_bytes);
      }
    }
  }
}

TEST(SystemTest, RequestsEndWithTheirGroup) {
  sim::Setup setup = default_setup(model::find_machine("sata-disk").value()).value();
  setup.machine.layout.group_bytes = 2 * kFull;
  setup.disks = 1;
  setup.image = make_image("128x1152", "128x128", true, 3).value();
  const Split split = System::make(setup).value().split(geometry::whole(setup.image), 0);
  ASSERT_EQ(split.requests.size(), 5U);  // four groups of two, and one extent
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(split.requests[i].full_bytes, 2 * kFull);
  EXPECT_DOUBLE_EQ(split.requests[4].full_bytes, kFull);
}

TEST(SystemTest, WithTwoCopiesALostDiskIsNotReadAndNoByteIsMissing) {
  sim::Setup setup = fresh_setup();
  setup.disks = 5;
  setup.image = make_image("1024x1280", "128x128", true, 3).value();
  const System one = System::make(setup).value();
  setup.copies = 2;
  for (unsigned lost = 0; lost < setup.disks; ++lost) {
    setup.lost_disk = lost;
    const System degraded = System::make(setup).value();
    Random random(lost + 1);
    for (int i = 0; i < 100; ++i) {
      const geometry::Window window = random_window(
          setup.image, {1 + random.below(setup.image.shape[0]), 1 + random.below(setup.image.shape[1])}, random);
      double bytes = 0, also = 0;
      const std::vector<ReadUnit> alone = one.units_under({&window, 1}, 0, bytes);
      const std::vector<ReadUnit> units = degraded.units_under({&window, 1}, 0, also);
      ASSERT_EQ(bytes, also);
      ASSERT_EQ(units.size(), alone.size());
      for (std::size_t unit = 0; unit < units.size(); ++unit) {
        ASSERT_TRUE(units[unit] == alone[unit]);
        ASSERT_EQ(units[unit].place.length_bytes, alone[unit].place.length_bytes);
        ASSERT_NE(units[unit].place.disk, lost);
      }
      std::set<std::pair<unsigned, std::uint64_t>> places;  // no two lie at the same place
      for (const ReadUnit& unit : units) places.insert({unit.place.disk, unit.place.offset_bytes});
      ASSERT_EQ(places.size(), units.size());
    }
  }
}

TEST(SystemTest, ALostDiskCountsInNoUtilization) {
  sim::Setup setup = fresh_setup();
  setup.disks = 4;
  setup.image = make_image("2048x2048", "128x128", true, 3).value();
  setup.copies = 2;
  setup.lost_disk = 2;
  const System degraded = System::make(setup).value();
  const RandomResult result = read_random(degraded, setup.image.shape, 1, 1);
  for (const ResourceUse& use : result.use) {
    if (use.name != "disk") continue;
    ASSERT_EQ(use.instances.size(), 4u);
    EXPECT_TRUE(use.instances[2].lost);
    double sum = 0;
    for (const InstanceUse& instance : use.instances) sum += instance.utilization;
    EXPECT_EQ(use.instances[2].served, 0u);
    EXPECT_DOUBLE_EQ(use.mean_utilization(), sum / 3);
  }
}

TEST(SystemTest, CopiesThatAMachineCannotHaveAreRefused) {
  sim::Setup setup = fresh_setup();
  setup.disks = 4;
  setup.lost_disk = 1;
  EXPECT_FALSE(System::make(setup).ok());  // one copy
  setup.copies = 2;
  EXPECT_TRUE(System::make(setup).ok());
  setup.lost_disk = 4;
  EXPECT_FALSE(System::make(setup).ok());
  setup.lost_disk.reset();
  setup.disks = 1;
  EXPECT_FALSE(System::make(setup).ok());
  sim::Setup striped = default_setup(model::find_machine("raid5").value()).value();
  striped.copies = 2;
  EXPECT_FALSE(System::make(striped).ok());
}

TEST(SystemTest, AnImageWhoseExtentsFillMoreThanAnyDiskIsRefused) {
  sim::Setup setup = fresh_setup();
  setup.image = make_image("4611686018427387904", "1", true, 1).value();  // each takes a block
  EXPECT_FALSE(System::make(setup).ok());
}

}  // namespace
}  // namespace mdfs::sim
