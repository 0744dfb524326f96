// Reading labels and commit slots.
// SPDX-License-Identifier: Apache-2.0
#include "store/labels.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kArea = MDFS_LABEL_AREA;
constexpr std::uint64_t kUsed = MDFS_SLOT_SIZE * (1 + MDFS_RING_SLOTS);  // of it: the label and the ring
static_assert(kUsed <= kArea && kUsed % MDFS_SECTOR == 0);

// The four areas of a disk that ends at `end` bytes (whole label areas).
std::array<std::uint64_t, MDFS_LABELS_PER_DISK> area_offsets(std::uint64_t end) {
  return {0, kArea, end - 2 * kArea, end - kArea};
}

struct Areas {
  std::array<AlignedBuffer, MDFS_LABELS_PER_DISK> bytes;  // empty: not read
};

void read_areas(device::Disk& disk, std::uint64_t end, unsigned first, unsigned last, Areas& areas) {
  const auto offsets = area_offsets(end);
  std::array<device::Io, MDFS_LABELS_PER_DISK> ios;
  std::vector<device::Addressed> requests;
  for (unsigned i = first; i <= last; ++i) {
    areas.bytes[i] = AlignedBuffer(kUsed);
    ios[i].offset = offsets[i];
    ios[i].buffers = {areas.bytes[i].bytes()};
    requests.push_back({&disk, &ios[i]});
  }
  (void)device::run(requests);  // each request's own status counts
  for (unsigned i = first; i <= last; ++i)
    if (!ios[i].status.ok()) areas.bytes[i] = AlignedBuffer();
}

// A label, if the area holds one that belongs there.
std::optional<format::Label> label_in(ConstBytes area, unsigned number, DiskLabels& found) {
  auto label = format::decode_label(area.first(MDFS_SECTOR));
  if (label.ok() && label->label_number == number) return std::move(*label);
  const Error error = label.ok() ? Error{Errc::kCorrupt, "label.number"} : label.error();
  if (is_other_version(error.code) && !found.other_version) found.other_version = error;
  if (error.code == Errc::kCorrupt && found.damage.empty()) found.damage = error.message();
  return std::nullopt;
}

void choose_label(const Areas& areas, DiskLabels& found) {
  std::array<std::optional<format::Label>, MDFS_LABELS_PER_DISK> labels;
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    if (areas.bytes[i].empty()) continue;
    labels[i] = label_in(areas.bytes[i].bytes(), i, found);
    if (labels[i] && (!found.label || labels[i]->membership > found.label->membership)) found.label = labels[i];
  }
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    found.good[i] = labels[i] && labels[i]->same_identity(*found.label);
    found.membership[i] = found.good[i] ? std::optional(labels[i]->membership) : std::nullopt;
  }
}

ConstBytes slot_bytes(const Areas& areas, unsigned label, unsigned ring_slot) {
  if (areas.bytes[label].empty()) return {};
  return areas.bytes[label].bytes().subspan(MDFS_SLOT_SIZE * (1 + ring_slot), MDFS_SLOT_SIZE);
}

bool is_same(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Most slots are the same in all rings: these are decoded once.
void read_slots(const Areas& areas, DiskLabels& found) {
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    for (unsigned j = 0; j < MDFS_RING_SLOTS; ++j) {
      const ConstBytes bytes = slot_bytes(areas, i, j);
      if (bytes.empty()) continue;
      unsigned same = 0;
      while (same < i && !is_same(bytes, slot_bytes(areas, same, j))) ++same;
      if (same < i) {
        found.ring[i][j] = found.ring[same][j];
        continue;
      }
      auto slot = format::decode_commit_slot(bytes, found.label->volume_uuid);
      if (!slot.ok())
        if (const auto generation = format::sealed_slot_generation(bytes, found.label->volume_uuid))
          found.unusable.push_back({*generation, slot.error()});
      if (!slot.ok() || format::ring_slot(slot->generation, slot->state) != j) continue;
      found.ring[i][j] = slot->commit_id;
      const bool known = std::any_of(found.slots.begin(), found.slots.end(), [&](const format::CommitSlot& other) {
        return other.commit_id == slot->commit_id && other.state == slot->state;
      });
      if (!known) found.slots.push_back(std::move(*slot));
    }
  }
}

}  // namespace

bool DiskLabels::holds(const Uuid& commit_id) const {
  return std::any_of(slots.begin(), slots.end(),
                     [&](const format::CommitSlot& slot) { return slot.commit_id == commit_id; });
}

DiskLabels read_labels(device::Disk& disk, std::optional<std::uint64_t> end_bytes) {
  DiskLabels found;
  const std::uint64_t end = align_down(end_bytes.value_or(disk.size_bytes()), kArea);
  // A disk truncated behind its front labels can still be identified.
  if (end < 2 * kArea) return found;
  Areas areas;
  read_areas(disk, end, 0, 1, areas);
  if (end >= MDFS_MIN_DISK_SIZE) read_areas(disk, end, 2, 3, areas);
  found.readable = std::any_of(areas.bytes.begin(), areas.bytes.end(), [](const auto& area) { return !area.empty(); });
  choose_label(areas, found);
  if (!found.label) return found;
  const std::uint64_t labelled_end = layout_of(*found.label).bytes();
  found.truncated = labelled_end > end;
  if (labelled_end < end) {  // the disk has grown: its end labels are where it ended before
    read_areas(disk, labelled_end, 2, 3, areas);
    choose_label(areas, found);
  }
  read_slots(areas, found);
  return found;
}

Status write_labels(const std::vector<LabelWrite>& writes) {
  Status outcome;
  for (const unsigned first : {0u, 1u}) {  // one at each end of a disk
    std::vector<AlignedBuffer> sectors;
    std::vector<device::Io> ios;
    std::vector<device::Disk*> disks;
    for (const LabelWrite& write : writes)
      for (unsigned i = first; i < MDFS_LABELS_PER_DISK; i += 2) {
        if (!write.wanted[i]) continue;
        format::Label label = write.label;
        label.label_number = static_cast<std::uint16_t>(i);
        sectors.emplace_back(MDFS_SECTOR);
        format::encode(label, sectors.back().bytes());
        device::Io& io = ios.emplace_back();
        io.op = device::Op::kWrite;
        io.offset = layout_of(label).label_offset(i);
        io.buffers = {sectors.back().bytes()};
        disks.push_back(write.disk);
      }
    std::vector<device::Addressed> requests;
    for (std::size_t i = 0; i < ios.size(); ++i) requests.push_back({disks[i], &ios[i]});
    const Status written = device::run(requests);
    if (outcome.ok()) outcome = written;
    std::vector<device::Io> flushes(writes.size());
    requests.clear();
    for (std::size_t i = 0; i < writes.size(); ++i) {
      flushes[i].op = device::Op::kFlush;
      requests.push_back({writes[i].disk, &flushes[i]});
    }
    const Status flushed = device::run(requests);
    if (outcome.ok()) outcome = flushed;
  }
  return outcome;
}

namespace {

// A whole label area: the label, and of the ring the one slot.
AlignedBuffer area_with(format::Label label, unsigned number, const format::CommitSlot& slot) {
  const format::DiskLayout layout = layout_of(label);
  AlignedBuffer area(MDFS_LABEL_AREA);
  std::fill(area.bytes().begin(), area.bytes().end(), std::byte{0});
  label.label_number = static_cast<std::uint16_t>(number);
  format::encode(label, area.bytes().first(MDFS_SECTOR));
  const std::uint64_t place = layout.slot_offset(number, format::ring_slot(slot.generation, slot.state));
  format::encode(slot, area.bytes().subspan(place - layout.label_offset(number), MDFS_SLOT_SIZE));
  return area;
}

}  // namespace

Status move_labels(device::Disk& disk, const format::Label& label, const format::DiskLayout& old,
                   const format::CommitSlot& committed) {
  const format::DiskLayout layout = layout_of(label);
  MDFS_CHECK(committed.state == MDFS_SLOT_COMMITTED && old.bytes() != layout.bytes());
  for (const unsigned number : {2u, 3u})
    MDFS_TRY(device::write(disk, layout.label_offset(number), area_with(label, number, committed).bytes()));
  MDFS_TRY(device::flush(disk));
  // One after the other: the other one is good meanwhile.
  for (unsigned number = 0; number < 2; ++number) {
    std::array<bool, MDFS_LABELS_PER_DISK> wanted{};
    wanted[number] = true;
    MDFS_TRY(write_labels({{&disk, label, wanted}}));
  }
  AlignedBuffer zeros(MDFS_LABEL_AREA);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  for (const unsigned number : {2u, 3u})
    if (old.label_offset(number) + MDFS_LABEL_AREA <= disk.size_bytes())
      MDFS_TRY(device::write(disk, old.label_offset(number), zeros.bytes()));
  return device::flush(disk);
}

Status wipe_labels(device::Disk& disk, const format::DiskLayout& layout) {
  AlignedBuffer zeros(MDFS_LABEL_AREA);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i)
    MDFS_TRY(device::write(disk, layout.label_offset(i), zeros.bytes()));
  return device::flush(disk);
}

format::DiskLayout layout_of(const format::Label& label) {
  return {label.block_size, label.disk_blocks, label.metadata_blocks, label.room_blocks};
}

AlignedBuffer encode_slot(const format::CommitSlot& slot) {
  AlignedBuffer buffer(MDFS_SLOT_SIZE);
  format::encode(slot, buffer.bytes());
  return buffer;
}

std::vector<device::Io> slot_writes(const format::DiskLayout& layout, const format::CommitSlot& slot,
                                    const AlignedBuffer& encoded, Rings rings) {
  std::vector<device::Io> ios;
  const unsigned ring_slot = format::ring_slot(slot.generation, slot.state);
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    if (!in_rings(rings, i)) continue;
    device::Io& io = ios.emplace_back();
    io.op = device::Op::kWrite;
    io.offset = layout.slot_offset(i, ring_slot);
    // A disk only reads from the buffers of a write.
    io.buffers = {{const_cast<std::byte*>(encoded.data()), encoded.size()}};
  }
  return ios;
}

}  // namespace mdfs::store
