// Making a new volume on blank disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "base/uuid.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/label.h"
#include "geometry/geometry.h"
#include "mdfs/ondisk.h"

namespace mdfs::store {

struct FormatOptions {
  std::uint32_t block_size = 4096;  // 4096..65536, a power of two
  std::uint64_t zone_bytes = 0;     // 0 = chosen by the size of each disk
  std::uint64_t room_bytes = 0;     // the largest size that a disk can be given later; 0 = 16 times its size
  std::string name;                 // at most 63 bytes of UTF-8
  geometry::AllocationPolicy policy = geometry::AllocationPolicy::kDefault;
  std::vector<std::uint16_t> weights;  // of the disks, each at least 1; empty: all are 1
  std::uint64_t features_incompat = MDFS_INCOMPAT_STRIPS | MDFS_INCOMPAT_CHECKSUM_RECORDS;
};

struct FormattedDisk {
  Uuid uuid;
  std::uint64_t blocks = 0;
  std::uint64_t zone_blocks = 0;
  std::uint64_t metadata_blocks = 0;
  std::uint64_t room_blocks = 0;  // what it can be grown to
  std::uint64_t free_blocks = 0;
};

struct FormattedVolume {
  Uuid uuid;
  std::uint32_t block_size = 0;
  std::vector<FormattedDisk> disks;
};

struct DiskSize {
  std::string name;  // for messages
  std::uint64_t bytes = 0;
};

// The options alone, without disks. Errors begin with the field, as block-size, zone-size or label.
Status check_options(const FormatOptions& options);

// Could a volume be made on such disks? Looks at numbers only; errors name the disk, the field and the allowed range.
Status check_format(const std::vector<DiskSize>& disks, const FormatOptions& options);

// Writes labels, space pages and the first commit: an empty tree holding the root directory (mode 0755, owner
// root:root). What the disks held before is lost; the caller has asked. Errors name the disk, the field and the
// allowed range; nothing is written before all are checked.
Result<FormattedVolume> format_volume(const std::vector<device::Disk*>& disks, const FormatOptions& options,
                                      Environment& environment);

// ---- one more disk for a volume that is there

// The label of a disk with the sizes that mkmdfs would give it; UUIDs and members are the caller's.
Result<format::Label> plan_label(const DiskSize& disk, const FormatOptions& options);
// Zeroes the label areas and writes space pages on which nothing is in use, then flushes; gives the top page. The
// label itself is not written: till then the disk belongs to no volume.
Result<format::SpaceEntry> write_blank_disk(device::Disk& disk, const format::Label& label);

}  // namespace mdfs::store
