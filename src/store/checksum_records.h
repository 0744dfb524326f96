// Checksum records of a commit: its slot lists the checksums of the writes on which it relies, so that one flush makes
// it durable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "alloc/run.h"
#include "device/disk.h"
#include "format/commit.h"
#include "store/unflushed.h"

namespace mdfs::store {

// Makes checksum records of the writes of one disk that lie in published runs. Other writes are not part of the commit,
// and may be overwritten before it is finalized. False if a write lies partly in a published run: the commit cannot
// have records. `published`: of all disks, in any order, disjoint.
bool add_checksum_records(std::uint16_t disk, const std::vector<Unflushed::Write>& writes,
                          const std::vector<alloc::Run>& published, std::uint32_t block_size,
                          std::vector<format::ChecksumRecord>& checksum_records);

// Reads the blocks of the commit's records on this disk. Returns the records that do not match or cannot be read.
std::vector<format::ChecksumRecord> mismatching_records(device::Disk& disk, std::uint16_t index,
                                                        const format::CommitSlot& slot);

}  // namespace mdfs::store
