// What is done with a volume that was edited.
// SPDX-License-Identifier: Apache-2.0
#include "use_volume.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "geometry/decompose.h"
#include "small_volume.h"
#include "volume/operations.h"

namespace mdfs::fuzz {

using volume::Ino;
using volume::Volume;

namespace {

constexpr std::size_t kMaxEntries = 300;
constexpr std::size_t kReadBytes = 128u << 10;
constexpr std::uint64_t kMaxPieces = 256;

// Reads all that is there, and goes on after errors. A damaged volume may have circles of directories.
class Visitor {
 public:
  explicit Visitor(Volume& volume) : volume_(volume), buffer_(kReadBytes) {}

  void directory(Ino ino, unsigned depth) {
    std::uint64_t cookie = 0;
    while (seen_ < kMaxEntries) {
      const auto entries = volume_.read_directory(ino, cookie, 32);
      if (!entries.ok() || entries->empty()) return;
      for (const volume::DirectoryEntry& entry : *entries) {
        MDFS_CHECK(entry.cookie > cookie);
        cookie = entry.cookie;
        if (entry.name == "." || entry.name == ".." || ++seen_ >= kMaxEntries) continue;
        const auto found = volume_.lookup(ino, entry.name);
        if (!found.ok()) continue;
        object(*found);
        if (S_ISDIR(found->mode) && depth < 6) directory(found->ino, depth + 1);
        volume_.forget(found->ino, 1);
      }
    }
  }

 private:
  void object(const volume::Attributes& attributes) {
    const Ino ino = attributes.ino;
    (void)volume_.attributes(ino).ok();
    if (const auto names = volume_.list_xattrs(ino); names.ok())
      for (const std::string& name : *names) (void)volume_.get_xattr(ino, name).ok();
    if (S_ISLNK(attributes.mode)) (void)volume_.read_symlink(ino).ok();
    if (!S_ISREG(attributes.mode)) return;
    const std::uint64_t size = attributes.size_bytes;
    for (const std::uint64_t offset : {std::uint64_t{0}, size / 2, size - std::min<std::uint64_t>(size, 5000)})
      if (const auto got = volume_.read(ino, offset, buffer_); got.ok())
        MDFS_CHECK(offset > size || *got <= size - offset);
    (void)volume_.seek(ino, size / 3, SEEK_HOLE).ok();
    (void)volume_.seek(ino, size / 3, SEEK_DATA).ok();
    if (attributes.is_image) image(ino);
  }

  void image(Ino ino) {
    const auto info = volume_.image_info(ino);
    if (!info.ok() || !geometry::check(info->geometry).ok()) return;
    const geometry::Geometry& geometry = info->geometry;
    const geometry::Window all = geometry::whole(geometry);
    if (!geometry::check(geometry, all).ok()) return;
    geometry::Window part = all;
    for (unsigned axis = 0; axis < geometry.rank; ++axis) {
      part.start[axis] = all.length[axis] / 2;
      part.length[axis] = std::min<std::uint64_t>(all.length[axis] - part.start[axis], 40);
    }
    for (const geometry::Window& window : {all, part}) {
      const std::uint64_t pieces =
          geometry::piece_count(geometry::byte_geometry(geometry), geometry::byte_box(geometry, window));
      if (pieces > kMaxPieces) continue;
      (void)volume_.plan_window(ino, window, {}).ok();
      (void)volume_.start_window(ino, window).ok();
      const std::uint64_t bytes = std::min<std::uint64_t>(geometry::window_bytes(geometry, window), kReadBytes);
      (void)volume_.read_window(ino, window, 0, MutableBytes(buffer_).first(bytes)).ok();
    }
    if (volume_.layout(ino, {}, SIZE_MAX, {}).ok()) ++images_;
  }

  Volume& volume_;
  ByteVector buffer_;
  std::size_t seen_ = 0;
  std::size_t images_ = 0;
};

// A file that was made and synced is read as it was written.
void make_a_file(Volume& volume, ConstBytes bytes) {
  const auto made = volume.make_node(volume::kRootIno, "after", S_IFREG | 0644, 0, {});
  if (!made.ok()) return;
  if (!volume.write(made->ino, 0, bytes, false).ok() || !volume.fsync(made->ino, false).ok()) return;
  ByteVector got(bytes.size());
  const auto read = volume.read(made->ino, 0, got);
  MDFS_CHECK(!read.ok() || (*read == bytes.size() && std::equal(got.begin(), got.end(), bytes.begin())));
}

void change(Volume& volume) {
  const ByteVector bytes(9000, std::byte{7});
  volume::SetAttributes shorter;
  shorter.size_bytes = 5000;
  for (const std::string name : {"small", "file", "raw", "zstd", "stack"}) {
    const auto found = volume.lookup(volume::kRootIno, name);
    if (!found.ok()) continue;
    (void)volume.write(found->ino, 100, bytes, false).ok();
    (void)volume.set_attributes(found->ino, shorter).ok();
    if (name == "raw") (void)volume.write(found->ino, 0, bytes, true).ok();
    (void)volume.set_xattr(found->ino, "user.more", ConstBytes(bytes).first(300), volume::XattrMode::kSet).ok();
    if (name == "file") (void)volume.fsync(found->ino, false).ok();
    volume.forget(found->ino, 1);
  }
  (void)volume.rename(volume::kRootIno, "file", volume::kRootIno, "small", volume::RenameMode::kReplace).ok();
  (void)volume.unlink(volume::kRootIno, "raw").ok();
  (void)volume.unlink(volume::kRootIno, "link").ok();
  (void)volume.remove_directory(volume::kRootIno, "dir").ok();
  make_a_file(volume, ConstBytes(bytes).first(6000));
  (void)volume.sync().ok();
}

// Whatever the volume says, it comes to an end.
void scrub(Volume& volume) {
  constexpr unsigned kMostSteps = 10'000;
  if (!volume.operations().start({}).ok()) return;
  unsigned steps = 0;
  while (volume.operations().turn().worked) MDFS_CHECK(++steps < kMostSteps);
}

}  // namespace

void use(const test::MemoryDisks& disks, bool changing) {
  SeededEnvironment environment(3);
  auto volume = safety::mount(disks, environment);
  if (!volume.ok()) return;
  Visitor(**volume).directory(volume::kRootIno, 0);
  scrub(**volume);
  if (changing) change(**volume);
  (void)(*volume)->close().ok();
}

void check_and_repair(const test::MemoryDisks& disks) {
  const auto digest = [&] {
    std::vector<std::uint64_t> digests;
    for (const auto& disk : disks) digests.push_back(disk->digest());
    return digests;
  };
  const auto before = digest();
  const std::set<std::string> found = safety::findings(disks);
  MDFS_CHECK(digest() == before);
  const std::set<std::string> left = safety::findings(disks, store::RepairMode::kAll);
  const std::set<std::string> again = safety::findings(disks);
  for (const std::string& name : again)
    if (name != "data-damaged" && !name.starts_with("error: ") && left.empty()) {
      std::fprintf(stderr, "after a repair that left nothing: %s\n", name.c_str());
      MDFS_CHECK(false);
    }
}

}  // namespace mdfs::fuzz
