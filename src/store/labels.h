// Labels and rings of commit slots of one disk: reads them, and writes slots to all four.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/commit.h"
#include "format/label.h"
#include "format/layout.h"

namespace mdfs::store {

// The contents of the label areas of one disk.
struct DiskLabels {
  std::optional<format::Label> label;             // of the highest membership; label_number is that of the copy
  std::array<bool, MDFS_LABELS_PER_DISK> good{};  // this label is valid, and of the same disk as `label`
  std::array<std::optional<std::uint32_t>, MDFS_LABELS_PER_DISK> membership{};  // of each good one
  std::vector<format::CommitSlot> slots;  // valid slots of all rings, each commit and state once
  // [label number][ring slot]: the commit in that slot in that state, if valid.
  std::array<std::array<std::optional<Uuid>, MDFS_RING_SLOTS>, MDFS_LABELS_PER_DISK> ring{};
  // Slots with a valid checksum that this version cannot use.
  struct UnusableSlot {
    std::uint64_t generation = 0;
    Error error;
  };
  std::vector<UnusableSlot> unusable;
  bool readable = false;               // at least one label area could be read
  bool truncated = false;              // smaller than its label says
  std::optional<Error> other_version;  // a label of another version was found
  std::string damage;                  // the first defect, for messages

  bool holds(const Uuid& commit_id) const;
};

// Reads the four label areas. Never fails: areas that cannot be read or are not valid are absent. `end_bytes`: the end
// of the disk, if it is known. Otherwise the device gives its size, which may be larger, or may not have been measured
// since the device shrank.
DiskLabels read_labels(device::Disk& disk, std::optional<std::uint64_t> end_bytes = std::nullopt);

// Writes the label to all four places of each disk, two and a flush at a time. Two good labels therefore survive any
// power cut. Tries every disk, and returns the first error.
struct LabelWrite {
  device::Disk* disk = nullptr;
  format::Label label;
  std::array<bool, MDFS_LABELS_PER_DISK> wanted{true, true, true, true};
};
Status write_labels(const std::vector<LabelWrite>& writes);
// Moves the labels at the end of a disk, with their rings, to the place that `label` gives, and writes its contents to
// all four. `old`: the former layout, whose end differs by at least two label areas. Two labels with whole rings
// survive any power cut, and identify the disk. The old areas are zeroed last.
Status move_labels(device::Disk& disk, const format::Label& label, const format::DiskLayout& old,
                   const format::CommitSlot& committed);
// Overwrites the four label areas, rings included, with zeros.
Status wipe_labels(device::Disk& disk, const format::DiskLayout& layout);

// The layout that a label describes.
format::DiskLayout layout_of(const format::Label& label);

// Which labels have a slot in their rings.
enum class Rings : std::uint8_t { kAll, kOneAtEachEnd };
constexpr bool in_rings(Rings rings, unsigned label) { return rings == Rings::kAll || label % 2 == 0; }

// Requests that write one slot to rings of a disk. The buffer is borrowed until the requests have ended.
std::vector<device::Io> slot_writes(const format::DiskLayout& layout, const format::CommitSlot& slot,
                                    const AlignedBuffer& encoded, Rings rings = Rings::kAll);
AlignedBuffer encode_slot(const format::CommitSlot& slot);

}  // namespace mdfs::store
