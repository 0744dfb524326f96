// A small volume with a piece of everything.
// SPDX-License-Identifier: Apache-2.0
#include "small_volume.h"

#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace mdfs::safety {

using volume::Ino;
using volume::kRootIno;
using volume::Volume;

namespace {

constexpr std::uint64_t kRows = 64, kColumns = 96;
constexpr std::size_t kPieceBytes = 4096;
const volume::Caller kRoot;

ByteVector noise(std::uint64_t seed, std::size_t bytes) {
  std::mt19937_64 generator(seed);
  ByteVector out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(generator());
  return out;
}

Result<Ino> make(Volume& volume, Ino parent, std::string_view name, ConstBytes bytes) {
  MDFS_TRY_ASSIGN(const volume::Attributes made, volume.make_node(parent, name, S_IFREG | 0644, 0, kRoot));
  if (!bytes.empty()) MDFS_TRY(volume.write(made.ino, 0, bytes, false));
  return made.ino;
}

Status make_image(Volume& volume, std::string_view name, geometry::Codec codec, std::uint64_t seed) {
  MDFS_TRY_ASSIGN(const Ino ino, make(volume, kRootIno, name, {}));
  volume::ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {kRows, kColumns};
  options.geometry.extent = {32, 32};
  options.geometry.codec = codec;
  options.geometry.axes = "yx";
  MDFS_TRY(volume.make_image(ino, options));
  const ByteVector bytes = noise(seed, kRows * kColumns);
  return volume.write_window(ino, {{0, 0}, {kRows, kColumns}}, [&](std::uint64_t offset, MutableBytes into) -> Status {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  });
}

// Three frames of extents of eight, synced one after another: they lie in strips.
Status make_stack(Volume& volume, std::uint64_t seed) {
  MDFS_TRY_ASSIGN(const Ino ino, make(volume, kRootIno, "stack", {}));
  volume::ImageOptions options;
  options.geometry.rank = 3;
  options.geometry.shape = {0, 64, 64};
  options.geometry.extent = {8, 32, 32};
  options.geometry.codec = geometry::Codec::kZstd;
  options.geometry.axes = "zyx";
  MDFS_TRY(volume.make_image(ino, options));
  for (std::uint64_t frame = 0; frame < 3; ++frame) {
    MDFS_TRY(volume.write(ino, frame * 4096, noise(seed + frame, 4096), false));
    MDFS_TRY(volume.fsync(ino, false));
  }
  return {};
}

Status fill(Volume& volume, std::uint64_t seed) {
  MDFS_TRY_ASSIGN(const Ino small, make(volume, kRootIno, "small", noise(seed, 100)));
  MDFS_TRY(volume.set_xattr(small, "user.note", as_bytes("a note"), volume::XattrMode::kSet));
  MDFS_TRY_ASSIGN(const Ino file, make(volume, kRootIno, "file", noise(seed + 1, 100'000)));
  MDFS_TRY(volume.allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 40'960, 8'192));
  MDFS_TRY(make_image(volume, "raw", geometry::Codec::kRaw, seed + 2));
  MDFS_TRY(make_image(volume, "zstd", geometry::Codec::kZstd, seed + 3));
  MDFS_TRY(make_stack(volume, seed + 4));
  MDFS_TRY(volume.make_symlink(kRootIno, "link", "dir/sub/f7", kRoot));
  MDFS_TRY_ASSIGN(const volume::Attributes dir, volume.make_directory(kRootIno, "dir", 0755, kRoot));
  MDFS_TRY_ASSIGN(const volume::Attributes sub, volume.make_directory(dir.ino, "sub", 0700, kRoot));
  for (unsigned i = 0; i < 60; ++i)
    MDFS_TRY(make(volume, sub.ino, "f" + std::to_string(i), noise(seed + 10 + i, 1 + i * 30)));
  return {};
}

// Notes what became of each piece.
class Looker {
 public:
  Looker(Volume& volume, Sight& sight) : volume_(volume), sight_(sight) {}

  void look_at(const std::string& path, const test::Seen& expected) {
    const auto found = find(path);
    if (!passed(path, found)) return;
    const auto attributes = volume_.attributes(*found);
    if (passed(path, attributes)) {
      const bool same = attributes->mode == expected.mode && attributes->links == expected.links &&
                        (S_ISDIR(expected.mode) || attributes->size_bytes == expected.size_bytes);
      if (!same) complain(path + ": other attributes");
    }
    if (S_ISREG(expected.mode)) read_file(path, *found, expected.text);
    if (S_ISLNK(expected.mode)) {
      const auto target = volume_.read_symlink(*found);
      if (passed(path, target) && *target != expected.text) complain(path + ": another target");
    }
    for (const auto& [name, value] : expected.xattrs) {
      const auto got = volume_.get_xattr(*found, name);
      if (passed(path, got) && as_text(*got) != value) complain(path + ": another extended attribute");
    }
  }

  void list(const std::string& path, const std::set<std::string>& expected) {
    const auto found = find(path);
    if (!passed(path, found)) return;
    std::set<std::string> names;
    for (std::uint64_t cookie = 0;;) {
      const auto entries = volume_.read_directory(*found, cookie, 16);
      if (!passed(path, entries)) return;
      if (entries->empty()) break;
      for (const auto& entry : *entries)
        if (entry.name != "." && entry.name != "..") names.insert(entry.name);
      cookie = entries->back().cookie;
    }
    if (!std::includes(names.begin(), names.end(), expected.begin(), expected.end()))
      complain(path + ": names missing");
  }

 private:
  template <typename T>
  bool passed(const std::string& path, const Result<T>& result) {
    ++sight_.pieces;
    if (result.ok()) return true;
    ++sight_.errors;
    sight_.paths_with_errors.insert(path);
    const Errc code = result.error().code;
    if (code != Errc::kCorrupt && code != Errc::kIo && code != Errc::kMissingDisk)
      complain(path + ": " + result.error().message());
    return false;
  }
  void complain(std::string what) {
    if (sight_.wrong.empty()) sight_.wrong = std::move(what);
  }

  Result<Ino> find(const std::string& path) {
    Ino at = kRootIno;
    for (std::size_t begin = 1; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      MDFS_TRY_ASSIGN(const volume::Attributes found, volume_.lookup(at, path.substr(begin, end - begin)));
      volume_.forget(found.ino, 1);
      at = found.ino;
      begin = end + 1;
    }
    return at;
  }

  void read_file(const std::string& path, Ino ino, const std::string& text) {
    for (std::size_t at = 0; at < text.size(); at += kPieceBytes) {
      ByteVector bytes(std::min(kPieceBytes, text.size() - at));
      const auto got = volume_.read(ino, at, bytes);
      if (!passed(path, got)) continue;
      if (*got != bytes.size() || as_text(bytes) != std::string_view(text).substr(at, bytes.size()))
        complain(path + ": wrong bytes at " + std::to_string(at));
    }
    const auto geometry = volume_.image_geometry(ino);
    if (!geometry.ok()) return;
    if (geometry->rank == 3) return read_frames(path, ino, text);
    for (std::uint64_t y = 0; y < kRows; y += 16) {
      ByteVector bytes(16 * 40);
      const Status status = volume_.read_window(ino, {{y, 30}, {16, 40}}, 0, bytes);
      if (!passed(path, status)) continue;
      for (std::uint64_t row = 0; row < 16; ++row)
        if (as_text(bytes).substr(row * 40, 40) != std::string_view(text).substr((y + row) * kColumns + 30, 40))
          complain(path + ": wrong bytes in a window");
    }
  }

  // A part of each frame, of all four extents that it lies in.
  void read_frames(const std::string& path, Ino ino, const std::string& text) {
    for (std::uint64_t frame = 0; frame < text.size() / 4096; ++frame) {
      ByteVector bytes(32 * 40);
      const Status status = volume_.read_window(ino, {{frame, 16, 12}, {1, 32, 40}}, 0, bytes);
      if (!passed(path, status)) continue;
      for (std::uint64_t row = 0; row < 32; ++row)
        if (as_text(bytes).substr(row * 40, 40) !=
            std::string_view(text).substr(frame * 4096 + (16 + row) * 64 + 12, 40))
          complain(path + ": wrong bytes in a window");
    }
  }

  Volume& volume_;
  Sight& sight_;
};

}  // namespace

SmallVolume::SmallVolume(unsigned count, std::uint64_t disk_bytes, std::uint64_t seed) {
  SeededEnvironment environment(seed);
  disks = test::format_memory_disks(count, disk_bytes, environment);
  auto volume = mount(disks, environment);
  MDFS_CHECK(volume.ok());
  const Status filled = fill(**volume, seed * 1000);
  MDFS_CHECK(filled.ok());
  MDFS_CHECK((*volume)->sync().ok());
  auto tree = test::read_tree(**volume);
  MDFS_CHECK(tree.ok());
  expected = std::move(*tree);
  MDFS_CHECK((*volume)->close().ok());
}

MemoryDisks clone(const MemoryDisks& disks) {
  MemoryDisks clones;
  for (const auto& disk : disks) clones.push_back(disk ? disk->clone() : nullptr);
  return clones;
}

Result<std::unique_ptr<Volume>> mount(const MemoryDisks& disks, Environment& environment,
                                      const store::StoreOptions& options) {
  std::vector<device::Disk*> doors;
  for (const auto& disk : disks)
    if (disk) doors.push_back(disk.get());
  volume::VolumeOptions volume_options = test::quiet_options(4u << 20);
  volume_options.engine.decode_threads = 1;
  return test::open_volume(doors, volume_options, environment, options);
}

Sight look(Volume& volume, const test::Tree& expected) {
  Sight sight;
  Looker looker(volume, sight);
  std::map<std::string, std::set<std::string>> names;
  for (const auto& [path, seen] : expected) {
    looker.look_at(path, seen);
    if (!path.empty()) names[path.substr(0, path.rfind('/'))].insert(path.substr(path.rfind('/') + 1));
  }
  for (const auto& [directory, inside] : names) looker.list(directory, inside);
  return sight;
}

std::string write_something(Volume& volume) {
  const ByteVector bytes = noise(99, 20'000);
  const auto made = make(volume, kRootIno, "after", bytes);
  if (!made.ok()) return "making a file: " + made.error().message();
  const Status synced = volume.fsync(*made, false);
  if (!synced.ok()) return "fsync: " + synced.error().message();
  ByteVector got(bytes.size());
  const auto read = volume.read(*made, 0, got);
  if (!read.ok()) return "reading it: " + read.error().message();
  return got == bytes ? "" : "the new file has wrong bytes";
}

std::set<std::string> findings(const MemoryDisks& disks, store::RepairMode repair, bool data) {
  SeededEnvironment environment(31);
  std::vector<std::unique_ptr<device::Disk>> doors;
  for (const auto& disk : disks)
    if (disk) doors.push_back(std::make_unique<test::BorrowedDisk>(*disk));
  store::CheckOptions options;
  options.repair = repair;
  options.data = data;
  const auto report = store::check_volume(std::move(doors), options, environment);
  if (!report.ok()) return {"error: " + report.error().message()};
  std::set<std::string> names;
  for (const store::Finding& finding : report->findings)
    if (!finding.repaired && store::info(finding.id).severity != store::Severity::kNote)
      names.insert(std::string(store::info(finding.id).name));
  return names;
}

bool whole_run() { return std::getenv("MDFS_TEST_WHOLE") != nullptr; }

}  // namespace mdfs::safety
