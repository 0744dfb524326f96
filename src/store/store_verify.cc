// Verifying the metadata of a store that is in use.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "device/disk_counters.h"
#include "format/space.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

constexpr std::size_t kLeavesAtOnce = 32;

using format::OperationRecord;
using format::SpacePage;

std::uint64_t all_pages(const format::DiskLayout& layout) {
  std::uint64_t pages = 0;
  for (unsigned level = 0; level < layout.space_levels(); ++level) pages += layout.space_pages(level);
  return pages;
}

// The pages of all levels in the order in which they lie on the disk.
SpacePage page_at(const format::DiskLayout& layout, std::uint64_t index) {
  unsigned level = 0;
  for (; index >= layout.space_pages(level); ++level) index -= layout.space_pages(level);
  return {level, index};
}

void count_read(OperationRecord& record, unsigned disk, std::uint64_t bytes) {
  if (disk < record.disks.size()) record.disks[disk].read_bytes += bytes;
  record.bytes_done += bytes;
}

void note_repaired(OperationRecord& record, unsigned disk) {
  ++record.items_changed;
  if (disk < record.disks.size()) ++record.disks[disk].repaired;
}

}  // namespace

void StoreImpl::count_repaired(unsigned disk) {
  if (device::DiskCounters* counted = counters(disk)) ++counted->repaired;
}

Status StoreImpl::at_rest(const std::function<Status()>& work) {
  for (;;) {
    {
      std::unique_lock lock(commit_mutex_);
      committed_.wait(lock, [&] { return !in_flight_; });
    }
    const std::lock_guard writer(writer_);
    {
      const std::lock_guard lock(commit_mutex_);
      if (in_flight_) continue;
    }
    MDFS_TRY(write_committed_slots());
    take_over_out();
    return work();
  }
}

// ---- labels

// The labels that are damaged, or whose ring lacks the newest commit.
std::vector<unsigned> StoreImpl::bad_labels(unsigned disk, DiskLabels& found) const {
  found = read_labels(*members_[disk].disk, layout(disk).bytes());
  Uuid commit_id;
  {
    const std::lock_guard lock(commit_mutex_);
    commit_id = last_commit_.commit_id;
  }
  const unsigned slot = format::ring_slot(generation_, MDFS_SLOT_COMMITTED);
  std::vector<unsigned> bad;
  for (unsigned i = 0; i < MDFS_LABELS_PER_DISK; ++i) {
    // Before recovery has written, or on a mount for reading, a ring may rightly lack it.
    const bool good = found.good[i] && (read_only_ || recovery_waits_ || found.ring[i][slot] == commit_id);
    if (!good) bad.push_back(i);
  }
  return bad;
}

Status StoreImpl::verify_labels(unsigned disk, bool repair, OperationRecord& record) {
  if (!is_healthy(disk)) return {};
  const MemberDisk& member = members_[disk];
  count_read(record, disk, std::uint64_t{MDFS_LABELS_PER_DISK} * MDFS_LABEL_AREA);
  record.items_done += MDFS_LABELS_PER_DISK;
  DiskLabels found;
  if (bad_labels(disk, found).empty()) return {};
  if (repair) MDFS_TRY(begin_writing());
  // Perhaps a commit came between, or has not been finalized. When nothing moves there is no doubt.
  std::vector<unsigned> bad;
  MDFS_TRY(at_rest([&]() -> Status {
    bad = bad_labels(disk, found);
    if (!repair) return {};
    for (const unsigned i : bad) {
      if (found.good[i]) continue;
      format::Label label = *member.label;
      label.label_number = static_cast<std::uint16_t>(i);
      AlignedBuffer sector(MDFS_SECTOR);
      format::encode(label, sector.bytes());
      const Status written = device::write(*member.disk, layout_of(label).label_offset(i), sector.bytes());
      if (written.ok()) record.disks[disk].written_bytes += MDFS_SECTOR;
    }
    return {};
  }));
  if (bad.empty()) return {};
  std::vector<unsigned> still = bad;
  if (repair) {
    MDFS_TRY(commit_until(applied_, true));  // writes its slot to all rings, and flushes
    MDFS_TRY(at_rest([&]() -> Status {
      still = bad_labels(disk, found);
      return {};
    }));
  }
  for (const unsigned i : bad) {
    if (std::find(still.begin(), still.end(), i) != still.end()) {
      spdlog::error("{}: label {} or the commit beside it is bad", member.disk->name(), i);
      record.note_error({0, 0, i, static_cast<std::uint16_t>(disk), MDFS_ERROR_LABEL});
    } else {
      spdlog::warn("{}: label {} or the commit beside it was bad; rewritten", member.disk->name(), i);
      note_repaired(record, disk);
      note_checksum_error(disk);
      count_repaired(disk);
    }
  }
  return {};
}

// ---- space pages

std::uint64_t StoreImpl::space_pages(unsigned disk) const { return is_healthy(disk) ? all_pages(layout(disk)) : 0; }

Status StoreImpl::check_space_page(unsigned disk, SpacePage page, const format::SpaceEntry& entry,
                                   ConstBytes bytes) const {
  const format::DiskLayout layout = this->layout(disk);
  if (page.level == 0) return format::check_bitmap(layout, page.page, entry, bytes);
  const auto below = format::decode_space_page(layout, page, entry, bytes);
  return below.ok() ? Status() : Status(below.error());
}

// At rest.
Status StoreImpl::read_space_page(unsigned disk, SpacePage page) {
  const auto entry = space_.page_entry(disk, page);
  if (!entry) return {};  // the page above it is bad, and reported
  AlignedBuffer sector(MDFS_SECTOR);
  const std::uint64_t offset = layout(disk).space_offset(page, entry->place);
  MDFS_TRY(device::read(*members_[disk].disk, offset, sector.bytes()));
  return check_space_page(disk, page, *entry, sector.bytes());
}

Status StoreImpl::verify_space(unsigned disk, std::uint64_t first, std::uint64_t count, bool repair,
                               OperationRecord& record) {
  const std::uint64_t all = space_pages(disk);
  if (first >= all || count == 0) return {};
  count = std::min(count, all - first);
  const format::DiskLayout layout = this->layout(disk);
  // Both places of all pages lie side by side.
  const std::uint64_t offset = layout.space_offset(page_at(layout, first), 0);
  AlignedBuffer buffer(count * 2 * MDFS_SECTOR);
  const Status read = device::read(*members_[disk].disk, offset, buffer.bytes());
  count_read(record, disk, buffer.size());
  record.items_done += count;
  std::vector<SpacePage> doubtful;
  for (std::uint64_t i = 0; i < count; ++i) {
    const SpacePage page = page_at(layout, first + i);
    const auto entry = space_.page_entry(disk, page);
    const std::size_t at = static_cast<std::size_t>(i) * 2 * MDFS_SECTOR;
    if (entry && (!read.ok() ||
                  !check_space_page(disk, page, *entry,
                                    ConstBytes(buffer.bytes()).subspan(at + entry->place * MDFS_SECTOR, MDFS_SECTOR))
                       .ok()))
      doubtful.push_back(page);
  }
  if (doubtful.empty()) return {};
  std::vector<std::pair<SpacePage, std::string>> bad;
  bool rewritten = false;
  MDFS_TRY(at_rest([&]() -> Status {
    for (const SpacePage& page : doubtful) {
      const Status status = read_space_page(disk, page);
      if (status.ok()) continue;
      bad.emplace_back(page, status.error().message());
      if (repair && space_.rewrite_page(disk, page)) rewritten = true;
    }
    return {};
  }));
  if (rewritten) MDFS_TRY(commit_until(applied_, true));
  for (const auto& [page, why] : bad) {
    Status now;
    if (rewritten)
      MDFS_TRY(at_rest([&, page = page]() -> Status {
        now = read_space_page(disk, page);
        return {};
      }));
    note_checksum_error(disk);
    const std::string name =
        fmt::format("{}: space page {} of level {}", members_[disk].disk->name(), page.page, page.level);
    if (rewritten && now.ok()) {
      spdlog::warn("{} was bad ({}); rewritten", name, why);
      note_repaired(record, disk);
      count_repaired(disk);
    } else {
      spdlog::error("{} is bad ({}); run mdfsck to rebuild it", name, why);
      record.note_error({0, page.level, page.page, static_cast<std::uint16_t>(disk), MDFS_ERROR_SPACE});
    }
  }
  return {};
}

// ---- tree nodes

// A path that cannot be read has not been freed: the tree insists on it.
bool StoreImpl::still_holds(const NodeWanted& node) {
  const auto held = TreeReader(shared_, true).hold_node(node.lower, node.level, node.pointer);
  return !held.ok() || *held;
}

Result<std::optional<Key>> StoreImpl::verify_nodes(const Key& from, bool repair, OperationRecord& record) {
  struct Copy {
    std::size_t node;
    std::size_t copy;
    device::Io io;
    Status status;
  };
  const std::uint64_t newest = generation_;  // what is younger may still be on its way to the disks
  Tree::NodesFound found = TreeReader(shared_).nodes_from(from, kLeavesAtOnce);
  std::erase_if(found.nodes, [&](const NodeWanted& node) { return node.pointer.birth > newest; });
  AlignedBuffer buffer(std::max<std::size_t>(1, found.nodes.size()) * MDFS_MAX_COPIES * MDFS_NODE_SIZE);
  std::vector<Copy> copies;
  copies.reserve(found.nodes.size() * MDFS_MAX_COPIES);
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < found.nodes.size(); ++i)
    for (std::size_t c = 0; c < found.nodes[i].pointer.copies; ++c) {
      const format::Address address = found.nodes[i].pointer.address[c];
      if (!is_healthy(address.disk)) continue;
      Copy& copy = copies.emplace_back(Copy{i, c, {}, {}});
      copy.io.offset = address.block * label_.block_size;
      copy.io.buffers = {buffer.bytes().subspan((copies.size() - 1) * MDFS_NODE_SIZE, MDFS_NODE_SIZE)};
      requests.push_back({members_[address.disk].disk.get(), &copy.io});
      count_read(record, address.disk, MDFS_NODE_SIZE);
      ++record.items_done;
    }
  (void)device::run(requests);  // each request's own status counts
  std::vector<std::size_t> good(found.nodes.size());
  for (Copy& copy : copies) {
    copy.status = copy.io.status;
    if (copy.status.ok()) copy.status = shared_.io.check_copy(found.nodes[copy.node], copy.io.buffers[0]);
    if (copy.status.ok()) ++good[copy.node];
  }
  const auto note_error = [&](const Copy& copy) {
    const NodeWanted& node = found.nodes[copy.node];
    const format::Address address = node.pointer.address[copy.copy];
    spdlog::error("disk {} block {}: a copy of a tree node is bad ({}){}", address.disk, address.block,
                  copy.status.error().message(), good[copy.node] == 0 ? ", and no other is good" : "");
    record.note_error({node.lower.object, node.lower.offset, address.block, address.disk, MDFS_ERROR_NODE});
  };
  std::vector<const Copy*> repaired;
  for (const Copy& copy : copies) {
    const NodeWanted& node = found.nodes[copy.node];
    if (copy.status.ok() || !still_holds(node)) continue;
    if (good[copy.node] > 0 && repair &&
        shared_.io.note_bad({node.pointer, copy.copy, node.lower, node.level, copy.status.error().message(),
                             copy.status.error().code == Errc::kIo}))
      repaired.push_back(&copy);
    else
      note_error(copy);
  }
  if (!repaired.empty()) MDFS_TRY(commit_until(applied_, true));
  for (const Copy* copy : repaired) {
    if (still_holds(found.nodes[copy->node])) {
      note_error(*copy);
      continue;
    }
    const unsigned disk = found.nodes[copy->node].pointer.address[copy->copy].disk;
    note_repaired(record, disk);
    record.disks[disk].written_bytes += MDFS_NODE_SIZE;
  }
  return found.next;
}

}  // namespace mdfs::store
