// Space pages: bitmaps of blocks in use, and the pages above them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/commit.h"
#include "format/layout.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// A bitmap page (level 0) is used as it is on the disk: bit i is bit i % 8 of byte i / 8; set = in use.
bool bitmap_get(ConstBytes page, std::uint64_t bit);
void bitmap_set(MutableBytes page, std::uint64_t bit, bool in_use);
// Sets or clears [first, first + count), byte-wise inside.
void bitmap_fill(MutableBytes page, std::uint64_t first, std::uint64_t count, bool in_use);
// True if all of [first, first + count) are set.
bool bitmap_all_set(ConstBytes page, std::uint64_t first, std::uint64_t count);
// Number of clear bits among the first `bits`.
std::uint64_t bitmap_free(ConstBytes page, std::uint64_t bits = MDFS_BITS_PER_PAGE);

// The bitmap page of an empty disk: blocks that are always in use, and the bits behind the disk's
// last block, are set.
void make_empty_bitmap(const DiskLayout& layout, std::uint64_t page, MutableBytes out);

// Checks: space.size, space.checksum, space.free-count, space.permanent (a block that is always in use, or a bit behind
// the disk's last block, is clear).
Status check_bitmap(const DiskLayout& layout, std::uint64_t page, const SpaceEntry& entry, ConstBytes bytes);

// Writes a page of level n > 0: the entries of the pages of level n - 1 that it stands for, the rest of it zero. The
// entries fit (else abort).
void encode_space_page(const std::vector<SpaceEntry>& entries, MutableBytes out);
// Checks: space.size, space.checksum, space.entry (place 0 or 1), space.free-count (sum of its entries).
// `page` is its number in `level`.
Result<std::vector<SpaceEntry>> decode_space_page(const DiskLayout& layout, SpacePage page, const SpaceEntry& entry,
                                                  ConstBytes bytes);

// The entry for a page that lies at `place`.
SpaceEntry make_space_entry(ConstBytes page, std::uint32_t place, std::uint64_t free_blocks);

}  // namespace mdfs::format
