// A whole volume, store and engine included, on disks in memory that outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "borrowed_disk.h"
#include "device/testing/memory_disk.h"
#include "volume/volume.h"

namespace mdfs::test {

using MemoryDisks = std::vector<std::unique_ptr<device::MemoryDisk>>;

// Options that make a volume do nothing by itself.
volume::VolumeOptions quiet_options(std::size_t cache_bytes = 16u << 20);

// Freshly formatted disks.
MemoryDisks format_memory_disks(unsigned disks, std::uint64_t disk_bytes, Environment& environment);
// Mounts the volume on disks that somebody else keeps.
Result<std::unique_ptr<volume::Volume>> open_volume(const std::vector<device::Disk*>& disks,
                                                    const volume::VolumeOptions& options, Environment& environment,
                                                    const store::StoreOptions& store_options = {});
std::vector<device::Disk*> borrowed(const MemoryDisks& disks);

// All rows of an image's layout in one page.
inline Result<volume::LayoutPage> whole_layout(volume::Volume& volume, volume::Ino ino) {
  return volume.layout(ino, {}, SIZE_MAX, {});
}

// What a person sees of a file or directory: all of it but the times.
struct Seen {
  volume::Ino ino = 0;
  mode_t mode = 0;
  std::uint32_t links = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size_bytes = 0;
  std::string text;  // bytes of a file, target of a symbolic link
  std::map<std::string, std::string> xattrs;
  bool operator==(const Seen&) const = default;
};
// By path; the root is "".
using Tree = std::map<std::string, Seen>;

// Walks the whole volume. Errors name the path. Files larger than `most_bytes` are read up to there.
Result<Tree> read_tree(volume::Volume& volume, std::uint64_t most_bytes = 1u << 20);
// Examines the other items of the store: link counts, entry counts and the reachability of every inode. Describes the
// first error, or "". Orphans are fine only if `orphans_allowed`.
std::string find_inconsistency(volume::Volume& volume, bool orphans_allowed);

}  // namespace mdfs::test
