// Changes of the decoded structures of a small volume, written back under checksums that are right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "forge.h"
#include "memory_volume.h"

namespace mdfs::fuzz {

// A volume of two disks of 4 MiB: files with inline data, with runs and with a hole, images raw, zstd and in strips,
// names, links, attributes, and a tree of two levels.
struct ForgedBase {
  ForgedBase();
  test::MemoryDisks disks;
  test::Forge forge;
};

// Carries out what `script` asks for on `disks`, which are clones of those of `base`: any number of changes, each one
// byte for what is changed and some for how. Fields of labels, slots, bitmaps, nodes, pointers, keys and items become
// numbers at the edges of their types, numbers near what they were, or what another field holds; items go, come again
// under other keys, and change places; pointers lead to the same places.
void forge(const ForgedBase& base, ConstBytes script, const test::MemoryDisks& disks);

}  // namespace mdfs::fuzz
