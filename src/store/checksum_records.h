// Checksum records of a commit: what its slot says of the writes that it relies on, so that one flush makes it last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "alloc/run.h"
#include "device/disk.h"
#include "format/commit.h"
#include "store/unflushed.h"

namespace mdfs::store {

// Of the writes of one disk those that lie in the published runs become checksum records; what lies elsewhere belongs
// to nobody yet, and may be written again before the commit is finalized. False if a write lies partly in them, so that
// nothing can be said. `published`: of this disk and others, in any order, none over another.
bool add_checksum_records(std::uint16_t disk, const std::vector<Unflushed::Write>& writes,
                          const std::vector<alloc::Run>& published, std::uint32_t block_size,
                          std::vector<format::ChecksumRecord>& checksum_records);

// Reads what the commit's records say of this disk. Those that do not match or cannot be read.
std::vector<format::ChecksumRecord> mismatching_records(device::Disk& disk, std::uint16_t index,
                                                        const format::CommitSlot& slot);

}  // namespace mdfs::store
