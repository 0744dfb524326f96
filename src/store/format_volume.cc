// Making a new volume.
// SPDX-License-Identifier: Apache-2.0
#include "store/format_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "format/commit.h"
#include "format/dirent.h"
#include "format/inode.h"
#include "format/label.h"
#include "format/layout.h"
#include "format/node.h"
#include "format/space.h"
#include "store/labels.h"

namespace mdfs::store {
namespace {

constexpr std::size_t kMaxNameBytes = sizeof(mdfs_label::name) - 1;
constexpr std::uint64_t kMaxZoneBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kChunkBytes = 1u << 20;
constexpr std::uint64_t kFirstGeneration = 1;
constexpr std::uint32_t kRootMode = 0040755;

struct NewDisk {
  device::Disk* disk;
  format::Label label;
  format::DiskLayout layout;
  std::vector<std::uint64_t> node_blocks;  // first blocks of the copies of the root node here
  format::SpaceEntry top;
};

Error invalid(std::string where) { return {Errc::kInvalidArgument, std::move(where)}; }

Status check_count(std::size_t disks, const FormatOptions& options) {
  if (disks == 0 || disks > MDFS_MAX_DISKS)
    return invalid(fmt::format("{} disks; a volume has 1 to {}", disks, MDFS_MAX_DISKS));
  const auto& weights = options.weights;
  if (!weights.empty() && weights.size() != disks)
    return invalid(fmt::format("{} weights for {} disks", weights.size(), disks));
  if (!weights.empty() && std::all_of(weights.begin(), weights.end(), [](std::uint16_t weight) { return weight == 0; }))
    return invalid("weight 0 of all disks: one at least takes data");
  return {};
}

Result<NewDisk> plan_disk(device::Disk* disk, const FormatOptions& options, bool takes_data) {
  if (!disk->writable()) return Error{Errc::kReadOnly, disk->name()};
  MDFS_TRY_ASSIGN(format::Label label, plan_label({disk->name(), disk->size_bytes()}, options, takes_data));
  const format::DiskLayout layout = layout_of(label);
  return NewDisk{disk, std::move(label), layout, {}, {}};
}

// UUIDs and the table of members, the same in all labels.
void introduce(std::vector<NewDisk>& disks, const std::vector<std::uint16_t>& weights, Environment& environment) {
  const Uuid volume = environment.new_uuid();
  const std::int64_t now = environment.now_ns();
  std::vector<format::Member> members;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const std::uint16_t weight = weights.empty() ? std::uint16_t{1} : weights[i];
    members.push_back({environment.new_uuid(), disks[i].label.disk_blocks, weight, 0});
  }
  for (std::size_t i = 0; i < disks.size(); ++i) {
    disks[i].label.volume_uuid = volume;
    disks[i].label.disk_uuid = members[i].uuid;
    disks[i].label.disk_index = static_cast<std::uint16_t>(i);
    disks[i].label.created_ns = now;
    disks[i].label.members = members;
  }
}

// Two copies at least, first on the disks for tree nodes alone; on one disk in the two halves of its metadata region.
std::vector<format::Address> place_root(std::vector<NewDisk>& disks) {
  const std::size_t copies = std::clamp<std::size_t>(disks.size(), 2, MDFS_MAX_COPIES);
  std::vector<std::size_t> order(disks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return !disks[i].label.members[i].takes_data(); });
  std::vector<format::Address> places;
  for (std::size_t i = 0; i < copies; ++i) {
    NewDisk& disk = disks[order[i % disks.size()]];
    const std::uint64_t unit = format::node_blocks(disk.label.block_size);
    const std::uint64_t half = align_down(disk.label.metadata_blocks / 2, unit);
    const std::uint64_t block = disk.layout.first_usable() + (i < disks.size() ? 0 : half);
    disk.node_blocks.push_back(block);
    places.push_back({disk.label.disk_index, block});
  }
  return places;
}

AlignedBuffer root_node(const std::vector<NewDisk>& disks, std::vector<format::Address> places,
                        const format::NameSecret& secret, const FormatOptions& options) {
  format::Inode inode;
  inode.mode = kRootMode;
  inode.links = 2;
  inode.atime_ns = inode.mtime_ns = inode.ctime_ns = inode.btime_ns = disks.front().label.created_ns;
  inode.parent = MDFS_OBJECT_ROOT_DIRECTORY;
  inode.set_copies(options.copies, options.group_members);
  inode.spare_disks = static_cast<std::uint8_t>(options.spare_disks);
  format::Node node;
  node.volume_uuid = disks.front().label.volume_uuid;
  node.generation = kFirstGeneration;
  std::copy(places.begin(), places.end(), node.address.begin());
  node.items.push_back({format::kSecretKey, format::encode(secret)});
  node.items.push_back({{MDFS_OBJECT_ROOT_DIRECTORY, MDFS_KIND_INODE, 0}, format::encode(inode)});
  AlignedBuffer bytes(MDFS_NODE_SIZE);
  format::encode(node, bytes.bytes());
  return bytes;
}

// Writes consecutive sectors through a buffer.
class SectorStream {
 public:
  SectorStream(device::Disk& disk, std::uint64_t offset) : disk_(disk), offset_(offset), buffer_(kChunkBytes) {}

  // The next sector, zeroed, to be filled before the next call.
  Result<MutableBytes> next() {
    if (used_ == buffer_.size()) MDFS_TRY(finish());
    const MutableBytes sector = buffer_.bytes().subspan(used_, MDFS_SECTOR);
    std::fill(sector.begin(), sector.end(), std::byte{0});
    used_ += MDFS_SECTOR;
    return sector;
  }
  Status finish() {
    if (used_ == 0) return {};
    MDFS_TRY(device::write(disk_, offset_, buffer_.bytes().first(used_)));
    offset_ += used_;
    used_ = 0;
    return {};
  }

 private:
  device::Disk& disk_;
  std::uint64_t offset_;
  AlignedBuffer buffer_;
  std::size_t used_ = 0;
};

format::SpaceEntry fill_bitmap(const NewDisk& disk, std::uint64_t page, MutableBytes out) {
  format::make_empty_bitmap(disk.layout, page, out);
  const std::uint64_t unit = format::node_blocks(disk.label.block_size);
  for (const std::uint64_t first : disk.node_blocks)
    for (std::uint64_t block = first; block < first + unit; ++block)
      if (format::DiskLayout::bitmap_page(block) == page)
        format::bitmap_set(out, format::DiskLayout::bitmap_bit(block), true);
  return format::make_space_entry(out, 0, format::bitmap_free(out));
}

// All space pages in their first place, zeros in the second. Behind those of a level there is room for more of them.
Status write_space(NewDisk& disk) {
  std::vector<format::SpaceEntry> below;
  for (unsigned level = 0; level < disk.layout.space_levels(); ++level) {
    SectorStream stream(*disk.disk, disk.layout.space_offset({level, 0}, 0));
    std::vector<format::SpaceEntry> entries;
    for (std::uint64_t page = 0; page < disk.layout.space_pages(level); ++page) {
      MDFS_TRY_ASSIGN(const MutableBytes sector, stream.next());
      if (level == 0) {
        entries.push_back(fill_bitmap(disk, page, sector));
      } else {
        const std::size_t first = page * MDFS_ENTRIES_PER_PAGE;
        const std::size_t last = std::min<std::size_t>(first + MDFS_ENTRIES_PER_PAGE, below.size());
        const std::vector<format::SpaceEntry> part(below.begin() + static_cast<std::ptrdiff_t>(first),
                                                   below.begin() + static_cast<std::ptrdiff_t>(last));
        std::uint64_t free = 0;
        for (const format::SpaceEntry& entry : part) free += entry.free_blocks;
        format::encode_space_page(part, sector);
        entries.push_back(format::make_space_entry(sector, 0, free));
      }
      MDFS_TRY(stream.next());
    }
    MDFS_TRY(stream.finish());
    below = std::move(entries);
  }
  disk.top = below.front();
  return {};
}

format::CommitSlot first_commit(const std::vector<NewDisk>& disks, const format::Pointer& root,
                                Environment& environment) {
  format::CommitSlot slot;
  slot.volume_uuid = disks.front().label.volume_uuid;
  slot.commit_id = environment.new_uuid();
  slot.generation = kFirstGeneration;
  slot.time_ns = disks.front().label.created_ns;
  slot.objects = 1;
  slot.membership = disks.front().label.membership;
  slot.members = disks.front().label.members;
  slot.roots = {{MDFS_ROOT_MAIN, 0, 1, 0, root, {}}};
  for (const NewDisk& disk : disks) {
    slot.participants |= std::uint64_t{1} << disk.label.disk_index;
    slot.space.push_back(disk.top);
  }
  slot.features = disks.front().label.features;
  slot.states = format::member_states(slot, nullptr);
  return slot;
}

// The four label areas of a disk, whole; `slot` null: zeros, so that nothing older is taken for this volume.
Status write_label_areas(NewDisk& disk, const format::CommitSlot* slot) {
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    AlignedBuffer area(MDFS_LABEL_AREA);
    std::fill(area.bytes().begin(), area.bytes().end(), std::byte{0});
    if (slot != nullptr) {
      format::Label label = disk.label;
      label.label_number = static_cast<std::uint16_t>(i);
      format::encode(label, area.bytes().first(MDFS_SECTOR));
      for (const std::uint32_t state : {MDFS_SLOT_PREPARED, MDFS_SLOT_COMMITTED}) {
        format::CommitSlot written = *slot;
        written.state = state;
        const std::size_t offset =
            disk.layout.slot_offset(i, format::ring_slot(slot->generation, state)) - disk.layout.label_offset(i);
        format::encode(written, area.bytes().subspan(offset, MDFS_SLOT_SIZE));
      }
    }
    MDFS_TRY(device::write(*disk.disk, disk.layout.label_offset(i), area.bytes()));
  }
  return device::flush(*disk.disk);
}

}  // namespace

Status check_options(const FormatOptions& options) {
  if (!format::valid_block_size(options.block_size))
    return invalid(fmt::format("block-size {}: must be a power of two from {} to {}", options.block_size,
                               MDFS_MIN_BLOCK_SIZE, MDFS_MAX_BLOCK_SIZE));
  const std::uint64_t zone = options.zone_bytes;
  if (zone != 0 && (zone % options.block_size != 0 || zone > kMaxZoneBytes))
    return invalid(fmt::format("zone-size {}: must be a multiple of the block size, at most {}", zone, kMaxZoneBytes));
  if (options.name.size() > kMaxNameBytes || options.name.find('\0') != std::string::npos)
    return invalid(
        fmt::format("label of {} bytes: must have at most {}, without NUL", options.name.size(), kMaxNameBytes));
  if (!is_one_line(options.name)) return invalid("label: must be UTF-8 without control characters");
  return {};
}

Result<format::Label> plan_label(const DiskSize& disk, const FormatOptions& options, bool takes_data) {
  const std::uint64_t blocks = format::disk_blocks(options.block_size, disk.bytes);
  if (!format::valid_disk_blocks(options.block_size, blocks))
    return invalid(fmt::format("{}: a size of {} bytes; a disk must have at least {}, at most 2^62", disk.name,
                               disk.bytes, MDFS_MIN_DISK_SIZE));
  format::Label label;
  label.features.incompat = options.features_incompat;
  label.features.ro_compat = options.copies ? MDFS_RO_COMPAT_PROTECTION : 0;
  label.block_size = options.block_size;
  label.disk_blocks = blocks;
  label.zone_blocks = options.zone_bytes != 0 ? options.zone_bytes / options.block_size
                                              : format::default_zone_blocks(options.block_size, blocks);
  label.metadata_blocks = format::default_metadata_blocks(options.block_size, blocks);
  label.room_blocks = options.room_bytes != 0 ? format::disk_blocks(options.block_size, options.room_bytes)
                                              : format::default_room_blocks(options.block_size, blocks);
  if (!takes_data && label.room_blocks >= blocks)
    label.metadata_blocks = format::whole_metadata_blocks(options.block_size, blocks, label.room_blocks);
  label.name = options.name;
  label.policy = static_cast<std::uint8_t>(options.policy);
  if (label.zone_blocks > blocks)
    return invalid(fmt::format("{}: zone size {}: larger than the disk", disk.name, options.zone_bytes));
  if (label.room_blocks < blocks || !format::valid_disk_blocks(options.block_size, label.room_blocks))
    return invalid(fmt::format("{}: room for {} bytes: must be at least the {} of the disk, at most 2^62", disk.name,
                               options.room_bytes, disk.bytes));
  if (!layout_of(label).consistent() && label.room_blocks > blocks && options.room_bytes != 0)
    return invalid(fmt::format("{}: {} bytes are too few for growth to {}", disk.name, disk.bytes, options.room_bytes));
  if (!layout_of(label).consistent() || label.metadata_blocks < 2 * format::node_blocks(options.block_size))
    return invalid(fmt::format("{}: {} bytes are too few for blocks of {}", disk.name, disk.bytes, options.block_size));
  return label;
}

Result<format::SpaceEntry> write_blank_disk(device::Disk& disk, const format::Label& label) {
  NewDisk blank{&disk, label, layout_of(label), {}, {}};
  MDFS_TRY(write_label_areas(blank, nullptr));
  MDFS_TRY(write_space(blank));
  MDFS_TRY(device::flush(disk));
  return blank.top;
}

Status check_format(const std::vector<DiskSize>& disks, const FormatOptions& options) {
  MDFS_TRY(check_count(disks.size(), options));
  MDFS_TRY(check_options(options));
  for (const DiskSize& disk : disks) MDFS_TRY(plan_label(disk, options));
  return {};
}

Result<FormattedVolume> format_volume(const std::vector<device::Disk*>& disks, const FormatOptions& options,
                                      Environment& environment) {
  MDFS_TRY(check_count(disks.size(), options));
  MDFS_TRY(check_options(options));
  if (std::set<device::Disk*>(disks.begin(), disks.end()).size() != disks.size())
    return invalid("the same disk is given twice");
  std::vector<NewDisk> planned;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const bool takes_data = options.weights.empty() || options.weights[i] > 0;
    MDFS_TRY_ASSIGN(NewDisk plan, plan_disk(disks[i], options, takes_data));
    planned.push_back(std::move(plan));
  }
  introduce(planned, options.weights, environment);
  const std::vector<format::Address> places = place_root(planned);
  const AlignedBuffer node = root_node(planned, places, {environment.random(), environment.random()}, options);
  const format::Pointer root = format::make_pointer(node.bytes(), kFirstGeneration, places);

  for (NewDisk& disk : planned) MDFS_TRY(write_label_areas(disk, nullptr));
  for (NewDisk& disk : planned) {
    MDFS_TRY(write_space(disk));
    for (const std::uint64_t block : disk.node_blocks)
      MDFS_TRY(device::write(*disk.disk, block * options.block_size, node.bytes()));
    MDFS_TRY(device::flush(*disk.disk));
  }
  const format::CommitSlot slot = first_commit(planned, root, environment);
  for (NewDisk& disk : planned) MDFS_TRY(write_label_areas(disk, &slot));

  FormattedVolume volume{planned.front().label.volume_uuid, options.block_size, {}};
  for (const NewDisk& disk : planned)
    volume.disks.push_back({disk.label.disk_uuid, disk.label.disk_blocks, disk.label.zone_blocks,
                            disk.label.metadata_blocks, disk.label.room_blocks, disk.top.free_blocks});
  return volume;
}

}  // namespace mdfs::store
