// Valid structures made from a seed.
// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <set>

#include "format/limits.h"

namespace mdfs::format {

Uuid Samples::uuid() {
  Uuid uuid;
  for (auto& octet : uuid.octets) octet = static_cast<std::uint8_t>(number(0, 255));
  uuid.octets[6] = 0x40;  // never nil
  return uuid;
}

ByteVector Samples::bytes(std::size_t size) {
  ByteVector out(size);
  for (auto& byte : out) byte = static_cast<std::byte>(number(0, 255));
  return out;
}

std::string Samples::name(std::size_t largest) {
  std::string text(number(1, largest), 'a');
  for (auto& c : text) c = static_cast<char>(number('a', 'z'));
  return text;
}

Pointer Samples::pointer(std::uint64_t youngest) {
  std::set<Address> places;
  const std::size_t copies = number(1, 3);
  while (places.size() < copies) places.insert(address());
  Pointer pointer;
  pointer.crc32c = static_cast<std::uint32_t>(number(0, UINT32_MAX));
  pointer.length = MDFS_NODE_SIZE;
  pointer.birth = number(1, youngest);
  pointer.copies = static_cast<std::uint8_t>(copies);
  std::copy(places.begin(), places.end(), pointer.address.begin());
  return pointer;
}

Label Samples::label() {
  Label label;
  label.features.compat = number(0, UINT64_MAX);
  fill(label.reserved0);
  fill(label.reserved1);
  fill(label.reserved2);
  label.volume_uuid = uuid();
  label.block_size = static_cast<std::uint32_t>(4096u << number(0, 4));
  label.created_ns = static_cast<std::int64_t>(number(0, INT64_MAX));
  label.policy = static_cast<std::uint8_t>(number(0, 3));
  label.label_number = static_cast<std::uint16_t>(number(0, 3));
  label.name = name(64);
  for (std::size_t i = number(1, MDFS_MAX_DISKS); i-- > 0;)
    label.members.push_back({uuid(), disk_blocks(label.block_size, number(MDFS_MIN_DISK_SIZE, 1ull << 44)),
                             static_cast<std::uint16_t>(number(1, 8))});
  label.disk_index = static_cast<std::uint16_t>(number(0, label.members.size() - 1));
  label.disk_uuid = label.members[label.disk_index].uuid;
  label.disk_blocks = label.members[label.disk_index].blocks;
  label.room_blocks = number(1, 16) * label.disk_blocks;
  label.zone_blocks = default_zone_blocks(label.block_size, label.disk_blocks);
  label.metadata_blocks = default_metadata_blocks(label.block_size, label.disk_blocks);
  return label;
}

CommitSlot Samples::commit_slot() {
  CommitSlot slot;
  slot.state = coin() ? MDFS_SLOT_PREPARED : MDFS_SLOT_COMMITTED;
  slot.volume_uuid = uuid();
  slot.commit_id = uuid();
  slot.parent_id = uuid();
  slot.generation = number(1, kMaxGeneration);
  slot.time_ns = static_cast<std::int64_t>(number(0, INT64_MAX));
  slot.next_object = number(MDFS_OBJECT_FIRST, kMaxObject);
  slot.objects = number(1, kMaxObject);
  slot.roots.push_back(
      {MDFS_ROOT_MAIN, static_cast<std::uint16_t>(number(0, 5)), number(1, 1u << 30), 0, pointer(slot.generation), {}});
  fill(slot.roots.back().reserve.first);
  fill(slot.roots.back().reserve.second);
  fill(slot.reserve.counters);
  fill(slot.reserve.middle);
  fill(slot.reserve.end);
  slot.features.compat = number(0, UINT64_MAX);
  slot.features.ro_compat = number(0, UINT64_MAX);
  for (std::size_t i = number(1, MDFS_MAX_DISKS); i-- > 0;)
    slot.space.push_back({static_cast<std::uint32_t>(number(0, UINT32_MAX)), static_cast<std::uint32_t>(number(0, 1)),
                          number(0, Address::kMaxBlock)});
  slot.participants = number(1, slot.space.size() == 64 ? UINT64_MAX : (1ull << slot.space.size()) - 1);
  if (coin())
    for (std::size_t i = number(1, MDFS_MAX_CHECKSUM_RECORDS); i-- > 0;) {
      ChecksumRecord checksum_record{0, static_cast<std::uint16_t>(number(1, MDFS_MAX_RECORDED_SECTORS)),
                                     static_cast<std::uint32_t>(number(0, UINT32_MAX)), number(0, Address::kMaxBlock)};
      do {
        checksum_record.disk = static_cast<std::uint16_t>(number(0, slot.space.size() - 1));
      } while (((slot.participants >> checksum_record.disk) & 1) == 0);
      slot.checksum_records.push_back(checksum_record);
    }
  slot.membership = static_cast<std::uint32_t>(number(1, kMaxMembership));
  for (std::size_t i = 0; i < slot.space.size(); ++i) {
    const bool hole = ((slot.participants >> i) & 1) == 0 && coin();
    const auto flags = static_cast<std::uint16_t>(coin() ? MDFS_MEMBER_DRAINING : 0);
    slot.members.push_back(hole ? Member::hole()
                                : Member{uuid(), number(1, Address::kMaxBlock),
                                         static_cast<std::uint16_t>(number(1, UINT16_MAX)), flags,
                                         static_cast<std::uint32_t>(number(0, UINT32_MAX))});
    MemberState& state = slot.states.emplace_back();
    if (hole) continue;
    const bool takes_part = ((slot.participants >> i) & 1) != 0;
    if (takes_part) slot.members[i].marks &= ~MDFS_MARK_OUT;
    state = {takes_part ? slot.commit_id : uuid(), takes_part ? slot.generation : number(1, slot.generation),
             number(0, UINT64_MAX)};
  }
  return slot;
}

Node Samples::node() {
  Node node;
  node.volume_uuid = uuid();
  node.generation = number(1, UINT64_MAX);
  for (auto& place : node.address)
    if (&place == &node.address[0] || coin()) place = address();
  if (node.address[1] == Address{}) std::swap(node.address[1], node.address[2]);
  return node;
}

Node Samples::leaf() {
  Node leaf = node();
  Key key{number(0, 100), number(0, 100), number(0, 100)};
  for (std::size_t wanted = number(0, 400); wanted > 0; --wanted) {
    LeafItem item{key, bytes(number(0, coin() ? 200 : MDFS_MAX_ITEM))};
    if (leaf_bytes(leaf) + leaf_item_bytes(item.value.size()) > kNodeRoom) break;
    leaf.items.push_back(std::move(item));
    key = coin() ? Key{key.object, key.kind, key.offset + number(1, 1000)} : Key{key.object + 1, number(0, 20), 0};
  }
  return leaf;
}

Node Samples::interior() {
  Node interior = node();
  interior.level = static_cast<std::uint16_t>(number(1, kMaxTreeLevel));
  std::uint64_t object = 0;
  for (std::size_t i = number(1, kMaxBranches); i-- > 0;)
    interior.branches.push_back(
        {{object += number(1, 9), number(0, 20), number(0, UINT64_MAX)}, pointer(interior.generation)});
  return interior;
}

Inode Samples::inode() {
  static constexpr std::uint32_t kTypes[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK};
  Inode inode;
  inode.mode = kTypes[number(0, 6)] | static_cast<std::uint32_t>(number(0, 07777));
  inode.links = static_cast<std::uint32_t>(number(0, UINT32_MAX));
  inode.uid = static_cast<std::uint32_t>(number(0, UINT32_MAX));
  inode.gid = static_cast<std::uint32_t>(number(0, UINT32_MAX));
  inode.size = number(0, MDFS_MAX_INLINE);
  inode.stored_bytes = number(0, kMaxFileBytes);
  inode.atime_ns = static_cast<std::int64_t>(number(0, UINT64_MAX));
  inode.mtime_ns = static_cast<std::int64_t>(number(0, UINT64_MAX));
  inode.ctime_ns = static_cast<std::int64_t>(number(0, UINT64_MAX));
  inode.btime_ns = static_cast<std::int64_t>(number(0, UINT64_MAX));
  inode.device = number(0, UINT64_MAX);
  if (inode.is_regular()) inode.flags = number(0, 2);
  if (inode.is_directory()) inode.parent = number(1, UINT64_MAX);
  if (inode.is_directory()) inode.entries = number(0, UINT64_MAX);
  inode.base = number(0, UINT64_MAX);
  inode.placement = number(0, UINT64_MAX);
  inode.data_generation = number(0, UINT64_MAX);
  if (inode.is_regular() || inode.is_directory()) inode.set_copies(coin());
  fill(inode.reserved);
  return inode;
}

geometry::Geometry Samples::geometry() {
  geometry::Geometry geometry;
  geometry.rank = static_cast<unsigned>(number(1, 5));
  geometry.type = static_cast<geometry::ElementType>(number(1, 11));
  geometry.channels = static_cast<unsigned>(number(1, 4));
  geometry.codec = coin() ? geometry::Codec::kRaw : geometry::Codec::kZstd;
  geometry.codec_level = static_cast<int>(number(0, 19)) - 5;
  geometry.policy = static_cast<geometry::AllocationPolicy>(number(0, 3));
  geometry.axes = std::string("sqtyx").substr(5 - geometry.rank);
  for (unsigned i = 0; i < geometry.rank; ++i) {
    geometry.shape[i] = number(i == 0 ? 0 : 1, geometry.rank > 3 ? 1000 : 100000);
    geometry.extent[i] = number(1, geometry.rank > 3 ? 8 : 64);
    geometry.spacing[i] = static_cast<double>(number(0, 1000)) / 7;
    geometry.unit[i] = name(7);
  }
  return geometry;
}

geometry::Placement Samples::placement() {
  geometry::Placement placement;
  placement.disks = static_cast<unsigned>(number(1, 64));
  const std::size_t slots = number(placement.disks, kMaxPlacementSlots);
  for (std::size_t i = 0; i < slots; ++i) {
    placement.row.push_back(static_cast<std::uint16_t>(number(0, slots - 1)));
    placement.plane.push_back(static_cast<std::uint16_t>(number(0, slots - 1)));
    placement.slot.push_back(static_cast<std::uint16_t>(number(0, 63)));
  }
  placement.fourth = static_cast<std::uint16_t>(number(0, slots - 1));
  placement.fifth = static_cast<std::uint16_t>(number(0, slots - 1));
  return placement;
}

OperationRecord Samples::operation() {
  const auto any = [&] { return number(0, UINT64_MAX); };
  OperationRecord record;
  record.state = static_cast<std::uint32_t>(number(MDFS_OPERATION_RUNNING, MDFS_OPERATION_FAILED));
  record.flags = static_cast<std::uint32_t>(number(0, kOperationFlags));
  record.object = (record.flags & MDFS_OPERATION_OBJECT) != 0 ? number(1, UINT64_MAX) : 0;
  for (auto* field :
       {&record.budget_bytes_s, &record.threshold, &record.work_ns, &record.bytes_total, &record.bytes_done,
        &record.items_total, &record.items_done, &record.items_changed, &record.items_failed})
    *field = any();
  for (std::uint64_t& value : record.parameters) value = any();
  for (std::uint64_t& value : record.cursor) value = any();
  for (std::uint64_t& value : record.figures) value = any();
  record.started_ns = static_cast<std::int64_t>(any());
  record.updated_ns = static_cast<std::int64_t>(any());
  record.reason = coin() ? "" : name(sizeof mdfs_operation::reason - 1);
  for (auto i = number(0, MDFS_MAX_DISKS); i > 0; --i) record.disks.push_back({any(), any(), any(), any()});
  for (auto i = number(0, MDFS_MAX_ERRORS); i > 0; --i)
    record.errors.push_back({any(), any(), any(), static_cast<std::uint16_t>(number(0, MDFS_MAX_DISKS - 1)),
                             static_cast<std::uint16_t>(number(MDFS_ERROR_DATA, MDFS_ERROR_SKIPPED))});
  return record;
}

ExtentTableShape Samples::table_shape() {
  return {static_cast<std::uint8_t>(number(0, 1)), static_cast<std::uint32_t>(number(1, MDFS_MAX_EXTENT))};
}

CopyPage Samples::copies(const ExtentTableShape& shape) {
  CopyPage page;
  // Parities share the room of the copies that their members do not have.
  const unsigned grouped = shape.places() >= 8 && coin() ? shape.places() / 2 : 0;
  for (unsigned place = shape.places() - grouped; place < shape.places(); ++place) {
    if (page.group_of(place) != nullptr || number(0, 3) == 0) continue;
    ParityGroup group;
    group.members = std::uint64_t{1} << place;
    for (unsigned other = place + 1; other < std::min(place + 4, shape.places()); ++other)
      if (coin() && page.group_of(other) == nullptr) group.members |= std::uint64_t{1} << other;
    const auto members = static_cast<unsigned>(std::popcount(group.members));
    for (unsigned i = members == 1 ? 1 : static_cast<unsigned>(number(0, 1)); i > 0; --i)
      group.leavers.push_back(record_in_one_run(shape));
    for (ExtentRecord& leaver : group.leavers) leaver.crc32c = {};
    group.parity = record_in_one_run(shape);
    page.add_group(std::move(group));
  }
  for (unsigned place = 0; place < shape.places() - grouped; ++place) {
    if (place > 0 && coin()) continue;
    const std::uint64_t at = number(0, 9) == 0 ? MDFS_SCATTERED : address().packed();
    page.set(place, {at, number(1, UINT64_MAX), static_cast<std::uint32_t>(number(1, kMaxStoredBytes))});
  }
  return page;
}

ExtentRecord Samples::record_in_one_run(const ExtentTableShape& shape) {
  ExtentRecord one = record(shape);
  if (one.is_scattered()) one.address = address().packed();
  one.written = one.birth;
  return one;
}

ExtentRecord Samples::record(const ExtentTableShape& shape) {
  ExtentRecord record;
  record.address = number(0, 9) == 0 ? MDFS_SCATTERED : address().packed();
  record.birth = number(1, UINT64_MAX);
  record.written = number(1, record.birth);
  record.stored_bytes =
      shape.codec == MDFS_CODEC_RAW ? shape.extent_bytes : static_cast<std::uint32_t>(number(1, kMaxStoredBytes));
  for (unsigned i = 0; i < shape.checksums(); ++i)
    record.crc32c.push_back(static_cast<std::uint32_t>(number(0, UINT32_MAX)));
  return record;
}

Strip Samples::strip(const ExtentTableShape& shape, std::uint32_t block_size) {
  Strip strip;
  strip.address = {static_cast<std::uint16_t>(number(0, 63)), number(0, Address::kMaxBlock / 2)};
  strip.birth = number(1, UINT64_MAX);
  strip.written = number(1, strip.birth);
  fill(strip.reserved);
  if (coin())
    strip.copy = StripCopy{
        {static_cast<std::uint16_t>((strip.address.disk + number(1, 63)) % 64), number(0, Address::kMaxBlock / 2)},
        number(strip.written, UINT64_MAX)};
  strip.begin = static_cast<std::uint32_t>(number(0, shape.extent_bytes - 1));
  strip.bytes = static_cast<std::uint32_t>(
      number(1, std::min<std::uint64_t>(shape.extent_bytes - strip.begin, std::uint64_t{1024} * block_size)));
  for (unsigned left = strip_parts(strip.part_blocks(block_size)), place = 0; place < shape.places(); ++place) {
    if (left == 0 || (place > 0 && coin())) continue;
    --left;
    strip.places |= std::uint64_t{1} << place;
    if (strip.live == 0 || coin()) strip.live |= std::uint64_t{1} << place;
    for (unsigned i = strip.part_blocks(block_size); i-- > 0;)
      strip.crc32c.push_back(static_cast<std::uint32_t>(number(0, UINT32_MAX)));
  }
  return strip;
}

FileRun Samples::run(unsigned cell, unsigned first) {
  FileRun run;
  run.address = {static_cast<std::uint16_t>(number(0, 1)), number(0, 40)};
  run.birth = number(1, 2);
  run.written = number(1, run.birth);
  run.first = static_cast<std::uint16_t>(first);
  for (std::size_t i = number(1, cell - first); i-- > 0;)
    run.crc32c.push_back(static_cast<std::uint32_t>(number(0, UINT32_MAX)));
  return run;
}

CellPieces Samples::cell_pieces(std::uint32_t block_size) {
  const unsigned count = cell_blocks(block_size);
  CellPieces pieces;
  for (std::size_t i = number(1, 5); i-- > 0;)
    pieces.first.replace(run(count, static_cast<unsigned>(number(0, count - 1))));
  fill(pieces.copy.reserved);
  fill(pieces.group_reserved);
  std::uint64_t away = number(1, 50);  // of a copy from its block, on the next disk
  for (const FileRun& run : pieces.first.runs) {
    for (unsigned block = run.first; block < run.end(); ++block) {
      if (number(0, 3) == 0) away = number(1, 50);
      if (pieces.has_copies() && number(0, 3) == 0) continue;
      const auto disk = static_cast<std::uint16_t>(run.address.disk + 1);
      pieces.copy.replace({{disk, run.address.block + (block - run.first) + away},
                           run.birth,
                           run.written,
                           static_cast<std::uint16_t>(block),
                           {run.crc32c[block - run.first]}});
    }
  }
  return pieces;
}

NodeExpectation expectation_of(const Node& node, ConstBytes bytes) {
  std::vector<Address> places;
  for (const Address& place : node.address)
    if (place != Address{} || places.empty()) places.push_back(place);
  NodeExpectation expectation;
  expectation.volume_uuid = node.volume_uuid;
  expectation.pointer = make_pointer(bytes, node.generation, places);
  expectation.owner = node.owner;
  expectation.level = node.level;
  return expectation;
}

}  // namespace mdfs::format
