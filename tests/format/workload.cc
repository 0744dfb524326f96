// A volume written by random work through the volume layer, beside what it must hold: workload FOLDER SEED STEPS.
// Makes FOLDER/disk0.. and, for each file, FOLDER/expected/NAME.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/environment.h"
#include "device/testing/memory_disk.h"
#include "geometry/default_extent.h"
#include "geometry/level.h"
#include "maintenance/maintenance.h"
#include "store/format_volume.h"
#include "volume/operations.h"
#include "volume/volume.h"

namespace mdfs {
namespace {

using volume::Ino;

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
  std::exit(1);
}

template <typename T>
T need(Result<T> result, const char* what) {
  if (!result.ok()) fail(fmt::format("{}: {}", what, result.error().message()));
  return std::move(result).value();
}
void need(const Status& status, const char* what) {
  if (!status.ok()) fail(fmt::format("{}: {}", what, status.error().message()));
}

struct File {
  Ino ino = 0;
  ByteVector bytes;
  std::optional<geometry::Geometry> geometry;
};

class Workload {
 public:
  Workload(std::string folder, std::uint64_t seed) : folder_(std::move(folder)), generator_(seed), environment_(seed) {
    std::vector<device::Disk*> borrowed;
    const unsigned count = below(4) + 1;
    for (unsigned i = 0; i < count; ++i) {
      disks_.push_back(std::make_unique<device::MemoryDisk>(fmt::format("disk{}", i), 48u << 20));
      borrowed.push_back(disks_.back().get());
    }
    store::FormatOptions options;
    options.block_size = 4096u << below(3);
    need(store::format_volume(borrowed, options, environment_), "format");
    open();
  }

  void step() {
    const unsigned kind = below(100);
    if (kind < 12 || files_.empty()) return make();
    File& file = any();
    if (kind < 45) return write(file);
    if (kind < 65 && file.geometry) return write_window(file);
    if (kind < 72) return truncate(file);
    if (kind < 80) return punch(file);
    if (kind < 84) return remove();
    if (kind < 88) return rename();
    if (kind < 92) return need(volume_->fsync(file.ino, false), "fsync");
    if (kind < 94) return reopen();
    if (kind < 95) return scrub();
    if (kind < 98 && file.geometry) return build_levels(file);
    return read(file);
  }

  // Ends cleanly, or as a power cut after a small commit would leave it, and writes everything out.
  void finish(bool cut) {
    for (auto& [name, file] : files_) {
      read(file);
      if (file.geometry && below(2) == 0) build_levels(file);
    }
    scrub();
    if (cut) {
      need(volume_->sync(), "sync");
      write(any());
      need(volume_->sync(), "sync");
    } else {
      need(volume_->close(), "close");
      volume_.reset();
    }
    for (std::size_t i = 0; i < disks_.size(); ++i) {
      ByteVector bytes(disks_[i]->size_bytes());
      disks_[i]->peek(0, bytes);
      save(fmt::format("{}/disk{}", folder_, i), bytes);
    }
    const std::string expected = folder_ + "/expected";
    if (::mkdir(expected.c_str(), 0755) != 0) fail("mkdir");
    for (const auto& [name, file] : files_) save(expected + "/" + name, file.bytes);
  }

 private:
  std::uint32_t below(std::uint64_t end) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution<std::uint64_t>(0, end - 1)(generator_));
  }

  File& any() { return std::next(files_.begin(), below(files_.size()))->second; }

  // Hands its disk over for as long as the store lives.
  class Borrowed final : public device::Disk {
   public:
    explicit Borrowed(device::Disk& disk) : disk_(disk) {}
    const std::string& name() const override { return disk_.name(); }
    std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
    bool writable() const override { return disk_.writable(); }
    void submit(std::span<device::Io* const> batch) override { disk_.submit(batch); }

   private:
    device::Disk& disk_;
  };

  void open() {
    std::vector<std::unique_ptr<device::Disk>> disks;
    for (const auto& disk : disks_) disks.push_back(std::make_unique<Borrowed>(*disk));
    volume::VolumeOptions options;
    options.commit_interval_ns = 0;
    options.engine.cache_bytes = 1u << 20;
    options.engine.decode_threads = 2;
    auto store = need(store::Store::open(std::move(disks), {}, environment_), "open the store");
    volume_ = need(volume::Volume::open(std::move(store), options, environment_, maintenance::make_operations),
                   "open the volume");
  }

  // Reads everything and finds nothing.
  void scrub() {
    volume::Operations& operations = volume_->operations();
    need(operations.start({}), "scrub");
    while (operations.turn().worked) {
    }
    const auto record = need(operations.status(volume::OperationKind::kScrub), "status of the scrub");
    if (record.state != MDFS_OPERATION_DONE || record.items_failed + record.items_changed > 0) fail("the scrub");
  }

  void reopen() {
    need(volume_->close(), "close");
    volume_.reset();
    open();
    for (auto& [name, file] : files_) {
      file.ino = need(volume_->lookup(volume::kRootIno, name), "lookup").ino;
      need(volume_->open_file(file.ino, false), "open");
    }
  }

  ByteVector noise(std::size_t size) {
    ByteVector bytes(size);
    const unsigned run = below(3) == 0 ? 1 : 50;  // hard or easy to compress
    std::byte value{};
    for (std::size_t i = 0; i < size; ++i) {
      if (i % run == 0) value = static_cast<std::byte>(generator_());
      bytes[i] = value;
    }
    return bytes;
  }

  void make() {
    if (files_.size() >= 12) return;
    const std::string name = fmt::format("file{}", next_name_++);
    File file;
    file.ino = need(volume_->make_node(volume::kRootIno, name, S_IFREG | 0644, 0, {}), "make").ino;
    need(volume_->open_file(file.ino, false), "open");
    if (below(2) == 0) {
      volume::ImageOptions options;
      geometry::Geometry& geometry = options.geometry;
      geometry.rank = below(5) + 1;
      geometry.channels = below(3) + 1;
      geometry.axes = geometry::default_axes(geometry.rank, false, geometry.channels > 1);
      geometry.type = below(2) == 0 ? geometry::ElementType::kU8 : geometry::ElementType::kF32;
      geometry.codec = below(2) == 0 ? geometry::Codec::kRaw : geometry::Codec::kZstd;
      for (unsigned axis = 0; axis < geometry.rank; ++axis) {
        geometry.shape[axis] = 1 + below(geometry.rank == 1   ? 100000
                                         : geometry.rank == 2 ? 300
                                         : geometry.rank == 3 ? 40
                                                              : 10);
        geometry.extent[axis] = 1 + below(geometry.rank == 1   ? 9000
                                          : geometry.rank == 2 ? 64
                                          : geometry.rank == 3 ? 16
                                                               : 5);
      }
      need(volume_->make_image(file.ino, options), "make an image");
      const unsigned levels = std::min(geometry::level_count(geometry), below(4));
      need(volume_->set_levels(file.ino, levels, static_cast<geometry::Reduction>(1 + below(geometry::kReductions))),
           "set levels");
      if (below(2) == 0 && volume_->store().disk_count() > 1) {
        const bool in_groups = volume_->store().disk_count() > 2 && below(2) == 0;
        need(volume_->set_protection(file.ino, {true, in_groups ? 2u : 1u}), "protect an image");
      }
      file.geometry = geometry;
      file.bytes.resize(geometry.size_bytes());
    }
    files_[name] = std::move(file);
  }

  void write(File& file) {
    const std::size_t limit = file.geometry ? file.bytes.size() : file.bytes.size() + 1000;
    if (limit == 0) return;
    const std::size_t offset = below(limit);
    std::size_t length = 1 + below(below(2) == 0 ? 600 : 200000);
    if (file.geometry) length = std::min(length, file.bytes.size() - offset);
    const ByteVector bytes = noise(length);
    if (need(volume_->write(file.ino, offset, bytes, false), "write") != length) fail("short write");
    file.bytes.resize(std::max(file.bytes.size(), offset + length));
    std::copy(bytes.begin(), bytes.end(), file.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  void write_window(File& file) {
    geometry::Geometry& geometry = *file.geometry;
    geometry.shape[0] = file.bytes.size() / geometry.slab_bytes();  // whole slabs
    if (geometry.shape[0] == 0) return;
    geometry::Window window;
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      window.start[axis] = below(geometry.shape[axis]);
      window.length[axis] = 1 + below(geometry.shape[axis] - window.start[axis]);
    }
    const ByteVector bytes = noise(geometry::window_bytes(geometry, window));
    need(volume_->write_window(file.ino, window,
                               [&](std::uint64_t offset, MutableBytes into) -> Status {
                                 std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(),
                                             into.begin());
                                 return {};
                               }),
         "write a window");
    const std::size_t sample = geometry.sample_bytes();
    for (std::size_t i = 0; i < bytes.size() / sample; ++i) {
      std::size_t rest = i;
      std::size_t at = 0;
      std::size_t stride = sample;
      for (unsigned axis = geometry.rank; axis-- > 0;) {
        at += (window.start[axis] + rest % window.length[axis]) * stride;
        rest /= window.length[axis];
        stride *= geometry.shape[axis];
      }
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * sample), sample,
                  file.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void truncate(File& file) {
    volume::SetAttributes change;
    change.size_bytes = below(file.bytes.size() + 5000);
    need(volume_->set_attributes(file.ino, change), "truncate");
    file.bytes.resize(*change.size_bytes);
  }

  void punch(File& file) {
    if (file.bytes.empty()) return;
    const std::size_t offset = below(file.bytes.size());
    const std::size_t length = 1 + below(file.bytes.size() - offset);
    need(volume_->allocate(file.ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length), "punch");
    std::fill_n(file.bytes.begin() + static_cast<std::ptrdiff_t>(offset), length, std::byte{0});
  }

  void remove() {
    const auto victim = std::next(files_.begin(), below(files_.size()));
    need(volume_->unlink(volume::kRootIno, victim->first), "unlink");
    volume_->release_file(victim->second.ino);
    volume_->forget(victim->second.ino, 1);
    files_.erase(victim);
  }

  void rename() {
    const auto from = std::next(files_.begin(), below(files_.size()));
    const std::string name = fmt::format("file{}", next_name_++);
    need(volume_->rename(volume::kRootIno, from->first, volume::kRootIno, name, volume::RenameMode::kReplace),
         "rename");
    auto node = files_.extract(from);
    node.key() = name;
    files_.insert(std::move(node));
  }

  void read(File& file) {
    ByteVector bytes(file.bytes.size());
    std::size_t done = 0;
    while (done < bytes.size()) {
      const std::size_t more = need(volume_->read(file.ino, done, MutableBytes(bytes).subspan(done)), "read");
      if (more == 0) fail("short read");
      done += more;
    }
    if (bytes != file.bytes) fail(fmt::format("inode {} does not read as it was written", file.ino));
  }

  // Builds the coarsest level, and with it what lies below.
  void build_levels(File& file) {
    const unsigned levels = need(volume_->stored_levels(file.ino), "levels").first;
    geometry::Geometry geometry = need(volume_->image_geometry(file.ino), "geometry");
    if (levels == 0 || geometry.shape[0] == 0) return;
    geometry = geometry::level_geometry(geometry, levels);
    const auto ignore = [](std::uint64_t, ConstBytes) { return Status(); };
    if (!need(volume_->read_level(file.ino, levels, geometry::whole(geometry), 0, geometry.size_bytes(), ignore, 1, {}),
              "read a level"))
      fail("a level cannot be stored");
  }

  static void save(const std::string& path, ConstBytes bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) fail(path);
  }

  const std::string folder_;
  std::mt19937_64 generator_;
  SeededEnvironment environment_;
  std::vector<std::unique_ptr<device::MemoryDisk>> disks_;
  std::unique_ptr<volume::Volume> volume_;
  std::map<std::string, File> files_;
  unsigned next_name_ = 0;
};

}  // namespace
}  // namespace mdfs

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  mdfs::Workload workload(argv[1], seed);
  for (unsigned long i = std::strtoul(argv[3], nullptr, 10); i-- > 0;) workload.step();
  workload.finish(seed % 2 == 1);
  return 0;
}
