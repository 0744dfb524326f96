// What is done with a volume that was edited: whatever it holds, each of these comes to an end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory_volume.h"

namespace mdfs::fuzz {

// Mounts it, lists it, reads all of it, scrubs it, and if `changing` writes, renames, deletes, syncs; then unmounts.
void use(const test::MemoryDisks& disks, bool changing);

// A check without repair writes nothing; a repair is whole, whatever was wrong.
void check_and_repair(const test::MemoryDisks& disks);

}  // namespace mdfs::fuzz
