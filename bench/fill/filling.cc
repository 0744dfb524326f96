// Storing images of one kind until a share of the volume is in use, and simulating reads of the last ones.
// SPDX-License-Identifier: Apache-2.0
#include "fill/filling.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "geometry/extent_grid.h"
#include "memory_volume.h"
#include "model/random.h"
#include "sim/simulation.h"

namespace mdfs::bench {
namespace {

constexpr std::uint64_t kSide = 2048;
constexpr std::uint64_t kExtentSide = 256;
constexpr std::uint64_t kWindowSide = 1024;
constexpr unsigned kChannels = 3;
constexpr unsigned kWindows = 8;               // of an image
constexpr std::size_t kForgotten = 64u << 10;  // requests of so many bytes hold extents; nodes and pages are smaller
constexpr double kApartSeconds = 1000;         // windows are read from an idle machine
constexpr std::size_t kCacheBytes = 64u << 20;

// Takes extents and keeps nothing of them.
class ForgetfulDisk final : public device::Disk {
 public:
  explicit ForgetfulDisk(device::Disk& disk) : disk_(disk) {}
  const std::string& name() const override { return disk_.name(); }
  std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  bool writable() const override { return disk_.writable(); }
  void submit(std::span<device::Io* const> batch) override {
    for (device::Io* io : batch) {
      if (io->op == device::Op::kWrite && io->bytes() >= kForgotten) {
        io->status = {};
        io->done(*io);
      } else {
        disk_.submit({&io, 1});
      }
    }
  }

 private:
  device::Disk& disk_;
};

geometry::Geometry image_geometry() {
  geometry::Geometry geometry;
  geometry.rank = 2;
  geometry.shape = {kSide, kSide};
  geometry.extent = {kExtentSide, kExtentSide};
  geometry.channels = kChannels;
  geometry.codec = geometry::Codec::kRaw;
  geometry.axes = "yx";
  return geometry;
}

class Filling {
 public:
  Filling(const model::Machine& machine, const FillOptions& options)
      : machine_(machine), options_(options), environment_(options.seed), noise_(image_geometry().size_bytes()) {
    model::Random random(options.seed);
    for (std::byte& byte : noise_) byte = static_cast<std::byte>(random.bits() | 1);
  }

  Status open() {
    disks_ = test::format_memory_disks(options_.disks, options_.disk_bytes, environment_);
    for (const auto& disk : disks_) forgetful_.push_back(std::make_unique<ForgetfulDisk>(*disk));
    std::vector<device::Disk*> doors;
    for (const auto& disk : forgetful_) doors.push_back(disk.get());
    store::StoreOptions store_options;
    store_options.policy = options_.policy;
    MDFS_TRY_ASSIGN(volume_, test::open_volume(doors, test::quiet_options(kCacheBytes), environment_, store_options));
    return {};
  }

  Result<FillPoint> step(double share) {
    const double last = static_cast<double>(options_.images * noise_.size()) / volume_bytes();
    while (full() < share - last) MDFS_TRY(store_image());
    std::vector<volume::Ino> images;
    for (unsigned i = 0; i < options_.images; ++i) {
      MDFS_TRY_ASSIGN(const volume::Ino ino, store_image());
      images.push_back(ino);
    }
    FillPoint point{.full = full()};
    Totals whole;
    Totals windows;
    for (const volume::Ino ino : images) MDFS_TRY(read(ino, whole, windows, point));
    point.image_bytes_per_s = whole.bytes / whole.seconds;
    point.window_bytes_per_s = windows.bytes / windows.seconds;
    point.runs /= options_.images * options_.disks;
    return point;
  }

  Status close() { return volume_->close(); }

 private:
  struct Totals {
    double bytes = 0;
    double seconds = 0;
  };

  double volume_bytes() const {
    return static_cast<double>(volume_->space().total_blocks) * volume_->store().block_size();
  }
  double full() const {
    const store::SpaceInfo space = volume_->space();
    return 1 - static_cast<double>(space.free_blocks) / static_cast<double>(space.total_blocks);
  }

  Result<volume::Ino> store_image() {
    MDFS_TRY_ASSIGN(const volume::Attributes made,
                    volume_->make_node(volume::kRootIno, fmt::format("image{}", serial_++), S_IFREG | 0644, 0, {}));
    volume::ImageOptions image;
    image.geometry = image_geometry();
    MDFS_TRY(volume_->make_image(made.ino, image));
    MDFS_TRY(volume_->open_file(made.ino, false));
    // By one window: its extents get their places one after another, whatever else the threads of the engine do.
    const auto noise = [this](std::uint64_t offset, MutableBytes into) -> Status {
      std::copy_n(noise_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
      return {};
    };
    Status written = volume_->write_window(made.ino, geometry::whole(image.geometry), noise);
    if (written.ok()) written = volume_->fsync(made.ino, false);
    volume_->release_file(made.ino);
    MDFS_TRY(written);
    return made.ino;
  }

  // As the records say: the bytes themselves are gone.
  Status read(volume::Ino ino, Totals& whole, Totals& windows, FillPoint& point) {
    const geometry::Geometry geometry = image_geometry();
    MDFS_TRY_ASSIGN(const volume::LayoutPage layout, volume_->layout(ino, {}, SIZE_MAX, {}));
    auto stored = std::make_shared<sim::StoredImage>();
    stored->places.resize(geometry.grid()[0] * geometry.grid()[1]);
    stored->disk_bytes.assign(options_.disks, static_cast<double>(options_.disk_bytes));
    stored->rules.sub_block_bytes = MDFS_SUB_BLOCK;
    stored->rules.block_bytes = layout.block_size;
    stored->rules.max_request_bytes = engine::EngineOptions().largest_request_bytes;
    const geometry::ByteGeometry bytes = geometry::byte_geometry(geometry);
    std::set<std::pair<unsigned, std::uint64_t>> ends;
    for (const layout::ExtentPlace& place : layout.rows) {
      stored->places[geometry::extent_index(bytes, place.index)] = {place.disk, place.block * layout.block_size,
                                                                    place.stored_bytes};
      ends.emplace(place.disk, place.block + place.stored_bytes / layout.block_size);
    }
    for (const layout::ExtentPlace& place : layout.rows) point.runs += !ends.contains({place.disk, place.block});
    sim::Setup setup;
    setup.machine = machine_;
    setup.disks = options_.disks;
    setup.image = geometry;
    setup.stored = stored;
    MDFS_TRY_ASSIGN(const sim::System system, sim::System::make(setup));
    MDFS_TRY(simulate(system, {geometry::whole(geometry)}, whole));
    return simulate(system, some_windows(geometry), windows);
  }

  std::vector<geometry::Window> some_windows(const geometry::Geometry& geometry) {
    std::vector<geometry::Window> windows;
    for (unsigned i = 0; i < kWindows; ++i) {
      geometry::Window window;
      for (unsigned axis = 0; axis < geometry.rank; ++axis) {
        window.start[axis] = environment_.random() % (geometry.shape[axis] - kWindowSide);
        window.length[axis] = kWindowSide;
      }
      windows.push_back(window);
    }
    return windows;
  }

  Status simulate(const sim::System& system, const std::vector<geometry::Window>& windows, Totals& totals) {
    sim::Simulation simulation(system, options_.seed);
    double at = 0;
    for (const geometry::Window& window : windows) simulation.submit_at(at += kApartSeconds, window);
    simulation.run();
    for (const sim::WindowRecord& record : simulation.records()) {
      if (record.done_s < 0) return {Errc::kBusy, "a window was not read to its end"};
      totals.bytes += record.window_bytes;
      totals.seconds += record.delay_s();
    }
    return {};
  }

  const model::Machine& machine_;
  const FillOptions& options_;
  SeededEnvironment environment_;
  ByteVector noise_;  // samples of every image
  test::MemoryDisks disks_;
  std::vector<std::unique_ptr<ForgetfulDisk>> forgetful_;
  std::unique_ptr<volume::Volume> volume_;
  unsigned serial_ = 0;
};

}  // namespace

Result<std::vector<FillPoint>> fill(const model::Machine& machine, const FillOptions& options) {
  Filling filling(machine, options);
  MDFS_TRY(filling.open());
  std::vector<FillPoint> points;
  for (const double share : options.steps) {
    MDFS_TRY_ASSIGN(const FillPoint point, filling.step(share));
    points.push_back(point);
  }
  MDFS_TRY(filling.close());
  return points;
}

}  // namespace mdfs::bench
