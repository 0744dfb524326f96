// Labels and rings of commit slots on one disk: reading what is there, writing slots to all four.
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

// What the label areas of one disk hold.
struct DiskLabels {
  std::optional<format::Label> label;             // of the highest membership; label_number is that of the copy
  std::array<bool, MDFS_LABELS_PER_DISK> good{};  // this label verifies and is of the same disk as `label`
  std::array<std::optional<std::uint32_t>, MDFS_LABELS_PER_DISK> membership{};  // of each good one
  std::vector<format::CommitSlot> slots;  // valid ones of all rings, each commit and state once
  // [label number][ring slot]: the commit held there in that state, if valid.
  std::array<std::array<std::optional<Uuid>, MDFS_RING_SLOTS>, MDFS_LABELS_PER_DISK> ring{};
  // Slots that some program wrote as they are and that this one cannot use.
  struct UnusableSlot {
    std::uint64_t generation = 0;
    Error error;
  };
  std::vector<UnusableSlot> unusable;
  bool readable = false;               // one label area at least could be read
  bool truncated = false;              // smaller than its label says
  std::optional<Error> other_version;  // a label of one was found
  std::string damage;                  // the first thing wrong, for messages

  bool holds(const Uuid& commit_id) const;
};

// Never fails: what cannot be read or verified is absent. The four label areas are read. `end_bytes`: where the disk
// ends, if that is known; else the device tells, which may be larger, or not have been measured since it was cut off.
DiskLabels read_labels(device::Disk& disk, std::optional<std::uint64_t> end_bytes = std::nullopt);

// Writes the label to all four places of each disk, two of them and a flush at a time, so that whatever a cut does to
// the sectors under way, two good ones stay. Every disk is tried; the first error.
struct LabelWrite {
  device::Disk* disk = nullptr;
  format::Label label;
  std::array<bool, MDFS_LABELS_PER_DISK> wanted{true, true, true, true};
};
Status write_labels(const std::vector<LabelWrite>& writes);
// The labels at the end of a disk, with their rings, go where `label` says that they lie, and all four get its
// contents. `old`: where the last two have been; another end by two label areas at least. Whatever a cut does, two
// labels with whole rings stay, and say who the disk is. The old areas are zeroed last.
Status move_labels(device::Disk& disk, const format::Label& label, const format::DiskLayout& old,
                   const format::CommitSlot& committed);
// Overwrites the four label areas, rings included, with zeros.
Status wipe_labels(device::Disk& disk, const format::DiskLayout& layout);

// The layout that a label describes.
format::DiskLayout layout_of(const format::Label& label);

// In which labels' rings a slot is.
enum class Rings : std::uint8_t { kAll, kOneAtEachEnd };
constexpr bool in_rings(Rings rings, unsigned label) { return rings == Rings::kAll || label % 2 == 0; }

// Requests that write one slot to rings of a disk. The buffer is borrowed until they are done.
std::vector<device::Io> slot_writes(const format::DiskLayout& layout, const format::CommitSlot& slot,
                                    const AlignedBuffer& encoded, Rings rings = Rings::kAll);
AlignedBuffer encode_slot(const format::CommitSlot& slot);

}  // namespace mdfs::store
