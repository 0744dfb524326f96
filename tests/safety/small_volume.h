// A small volume with a piece of everything, and a look at all of it that tells right bytes, errors and wrong bytes
// apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "memory_volume.h"
#include "store/check/check.h"

namespace mdfs::safety {

using test::MemoryDisks;

// Disks of `disk_bytes` with:
//   /small       100 bytes in the tree, with an extended attribute
//   /file        100 000 bytes, with a hole
//   /raw, /zstd  images of 64 x 96 in extents of 32 x 32
//   /link        a symbolic link
//   /dir/sub/f0 .. f59   files of a few bytes
// Unmounted. `expected` is what read_tree() says of it.
struct SmallVolume {
  SmallVolume(unsigned disks, std::uint64_t disk_bytes, std::uint64_t seed = 1);
  MemoryDisks disks;
  test::Tree expected;
};

MemoryDisks clone(const MemoryDisks& disks);
Result<std::unique_ptr<volume::Volume>> mount(const MemoryDisks& disks, Environment& environment,
                                              const store::StoreOptions& options = {});

// What a look at everything has seen. An error is fine where damage explains it; something else than what was stored
// never is.
struct Sight {
  std::uint64_t pieces = 0;  // blocks of files, names, attributes and so on
  std::uint64_t errors = 0;  // of them: refused with an I/O error
  std::set<std::string> paths_with_errors;
  std::string wrong;  // the first thing that is not as it was stored, or was refused for another reason
};
// Reads every file in pieces of 4 KiB and images by windows as well.
Sight look(volume::Volume& volume, const test::Tree& expected);

// Mounted volumes take a file and keep it; "" if so.
std::string write_something(volume::Volume& volume);

// Findings of the checker that are there, by name; "error: ..." if it gave up.
std::set<std::string> findings(const MemoryDisks& disks, store::RepairMode repair = store::RepairMode::kNothing,
                               bool data = true);

// Everything, or what a test run can afford? By the environment variable MDFS_TEST_WHOLE.
bool whole_run();

}  // namespace mdfs::safety
