// Makes a new volume on blank disks.
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
  std::vector<std::uint16_t> weights;  // of the disks; 0: tree nodes alone, but not for all; empty: all are 1
  bool copies = false;                 // new files inherit second copies from the root; needs two disks
  std::uint8_t group_members = 1;      // with copies: extents of new images that share a parity: 1 (none), 2, 4 or 8
  unsigned spare_disks = 0;            // room stays free for the rebuild of so many; at most the disks less two
  std::uint64_t features_incompat = MDFS_INCOMPAT_STRIPS | MDFS_INCOMPAT_CHECKSUM_RECORDS;
};

struct FormattedDisk {
  Uuid uuid;
  std::uint64_t blocks = 0;
  std::uint64_t zone_blocks = 0;
  std::uint64_t metadata_blocks = 0;
  std::uint64_t room_blocks = 0;  // the largest size that it can be given
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

// Checks the options alone, without disks. Errors begin with the field: block-size, zone-size or label.
Status check_options(const FormatOptions& options);

// Checks whether a volume could be made on such disks. Looks at numbers only. Errors name the disk, the field and the
// allowed range.
Status check_format(const std::vector<DiskSize>& disks, const FormatOptions& options);

// Writes labels, space pages and the first commit: an empty tree with the root directory (mode 0755, owner root:root).
// The former contents of the disks are lost; the caller has checked that they may be. Errors name the disk, the field
// and the allowed range. Nothing is written before all disks are checked.
Result<FormattedVolume> format_volume(const std::vector<device::Disk*>& disks, const FormatOptions& options,
                                      Environment& environment);

// ---- one more disk for an existing volume

// The label of a disk with the sizes that mkmdfs would give it, whether it takes data or tree nodes alone. The caller
// fills in UUIDs and members.
Result<format::Label> plan_label(const DiskSize& disk, const FormatOptions& options, bool takes_data = true);
// Zeroes the label areas, writes space pages without blocks in use, and flushes. Returns the top page. Does not write
// the label: the disk belongs to no volume until the caller writes one.
Result<format::SpaceEntry> write_blank_disk(device::Disk& disk, const format::Label& label);

}  // namespace mdfs::store
