// The checker: passes over the volume, and repair by one commit.
// SPDX-License-Identifier: Apache-2.0
#include "store/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>

#include "format/limits.h"
#include "store/check/block_map.h"
#include "store/check/cell_copies.h"
#include "store/check/copies.h"
#include "store/check/data_check.h"
#include "store/check/objects.h"
#include "store/check/paths.h"
#include "store/check/space_check.h"
#include "store/check/tree_rewrite.h"
#include "store/check/tree_scan.h"
#include "store/commit.h"
#include "store/labels.h"
#include "store/recovery.h"

namespace mdfs::store {
namespace {

// Each round repairs what the one before brought to light; damage goes no deeper than a few.
constexpr unsigned kMaxRounds = 8;

// One state of the tree, and what is wrong with it.
struct Scan {
  explicit Scan(BlockMap map) : blocks(std::move(map)) {}
  format::Root root;
  Findings findings;
  Edits edits;
  BlockMap blocks;
  TreeScan tree;
  ObjectTable table;
  std::uint64_t items = 0;
  std::uint64_t objects = 0;
  std::uint64_t highest_object = 0;
  std::vector<CopyPageRef> copy_pages;

  bool must_rewrite() const { return tree.must_rewrite || !edits.empty(); }
};

class Checker {
 public:
  Checker(Recovered recovered, const CheckOptions& options, Environment& environment)
      : volume_(std::move(recovered)),
        options_(options),
        environment_(environment),
        layouts_(make_layouts(volume_)),
        loader_(volume_, layouts_) {}

  Result<CheckReport> run();

 private:
  static std::vector<format::DiskLayout> make_layouts(const Recovered& volume);
  void check_disks(Findings& findings) const;
  // The whole map of all disks that are there takes so much memory.
  std::uint64_t map_memory() const;
  std::vector<bool> present() const;
  Status check_memory(std::uint64_t bytes) const;
  // `most_pages` of the map of blocks.
  Result<Scan> scan(const format::Root& root, DataChecker* data, std::uint64_t most_pages);
  void scan_section(Scan& scan);  // the next one
  void check_counts(Scan& scan) const;
  void report_progress(CheckPhase phase, std::uint64_t done, std::uint64_t total);
  Status repair(const Scan& first, const SpacePages& space);
  Status check_rollback(const Scan& first) const;
  Status repair_copies(const TreeScan& tree);
  bool has_copies() const { return (volume_.features.ro_compat & MDFS_RO_COMPAT_PROTECTION) != 0; }
  void report_data(const Scan& scan, const DataChecker& data, Findings& findings);
  // The bad blocks of a piece that have a good other piece.
  struct Repairable {
    bool some = false;
    bool all = false;
  };
  // They note what is to be repaired.
  Repairable plan_extent_repair(const Scan& scan, const DataChecker& data, ItemLookup& lookup, const StoredData& bad);
  Repairable plan_cell_repair(const Scan& scan, const DataChecker& data, ItemLookup& lookup, const StoredData& bad);
  Status repair_pieces();
  Status repair_tree(const Scan& first, const SpacePages& space);
  Status commit(const Scan& scan, const SpacePages& space);
  void note_new(const Findings& findings);
  void note_cascade(const Findings& findings);
  void compare_with(const Findings& left);

  Recovered volume_;
  const CheckOptions& options_;
  Environment& environment_;
  const std::vector<format::DiskLayout> layouts_;
  NodeLoader loader_;
  std::mutex mutex_;  // guards data_done_ and calls of options_.progress
  std::uint64_t data_done_ = 0;
  std::optional<DataChecker> data_;
  std::vector<format::StoredExtent> pieces_to_repair_;  // `runs` are bad, `copy` is good
  bool commit_needed_ = false;                          // a new commit is needed, be it for the bitmaps and counts only
  CheckReport report_;
};

std::vector<format::DiskLayout> Checker::make_layouts(const Recovered& volume) {
  std::vector<format::DiskLayout> layouts;
  // On a hole no block is usable.
  const std::uint64_t nothing = 2 * MDFS_LABEL_AREA / volume.label.block_size;
  for (const MemberDisk& member : volume.members)
    layouts.emplace_back(volume.label.block_size, member.member.is_hole() ? nothing : member.member.blocks,
                         member.label ? member.label->metadata_blocks : 0,
                         member.label ? member.label->room_blocks : 0);
  return layouts;
}

void Checker::report_progress(CheckPhase phase, std::uint64_t done, std::uint64_t total) {
  if (!options_.progress) return;
  const std::lock_guard lock(mutex_);
  options_.progress(phase, done, total);
}

void Checker::check_disks(Findings& findings) const {
  // A commit that only its checksum records validate has not been finalized: its slot is in two labels, and the next
  // mount completes it.
  const Rings rings = volume_.winner.state == MDFS_SLOT_COMMITTED ? Rings::kAll : Rings::kOneAtEachEnd;
  const unsigned ring_slot = format::ring_slot(volume_.winner.generation, volume_.winner.state);
  for (std::size_t i = 0; i < volume_.members.size(); ++i) {
    const MemberDisk& member = volume_.members[i];
    if (member.state == DiskState::kNone) continue;
    if (!member.healthy()) {
      const FindingId id = member.member.is_out()               ? FindingId::kDiskOut
                           : member.state == DiskState::kStale  ? FindingId::kDiskStale
                           : member.state == DiskState::kFailed ? FindingId::kDiskFailed
                                                                : FindingId::kDiskMissing;
      findings.add(id, fmt::format("disk {} ({}): {}", i, member.disk->name(), member.error));
      continue;
    }
    for (unsigned label = 0; label < MDFS_LABELS_PER_DISK; ++label) {
      if (!member.labels.good[label])
        findings.add(FindingId::kLabelDamaged, fmt::format("{}, label {}", member.disk->name(), label));
      if (in_rings(rings, label) && member.labels.ring[label][ring_slot] != volume_.winner.commit_id)
        findings.add(FindingId::kCommitSlotMissing, fmt::format("{}, label {}", member.disk->name(), label));
    }
  }
}

std::vector<bool> Checker::present() const {
  std::vector<bool> present;
  for (const MemberDisk& member : volume_.members) present.push_back(member.healthy());
  return present;
}

std::uint64_t Checker::map_memory() const {
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < layouts_.size(); ++i)
    if (volume_.members[i].healthy()) pages += layouts_[i].space_pages(0);
  return pages * MDFS_SECTOR;
}

Status Checker::check_memory(std::uint64_t bytes) const {
  if (bytes <= options_.bytes_for_tree()) return {};
  return {Errc::kNoMemory,
          fmt::format("the tree of this volume, its objects and what is wrong with them need more than "
                      "{} MiB, five eighths of the memory that the check may use",
                      options_.bytes_for_tree() >> 20)};
}

Result<Scan> Checker::scan(const format::Root& root, DataChecker* data, std::uint64_t most_pages) {
  // Memory of a table's element with its node in the heap.
  constexpr std::uint64_t kObject = sizeof(ObjectSummary) + 48, kEdit = 320, kNumber = 64;
  Scan scan(BlockMap(layouts_, present(), most_pages));
  scan.root = root;
  DataVisitor on_data;
  if (data != nullptr) on_data = [&](StoredData piece) { data->add(std::move(piece)); };
  ItemChecker items(volume_.label.block_size, scan.blocks, scan.findings, scan.edits, std::move(on_data),
                    {environment_.random(), environment_.random()}, has_copies());
  std::uint64_t leaves = 0;
  const auto limit = [&](std::uint64_t tree_bytes) {
    const ObjectTable& table = items.table();
    return check_memory(
        tree_bytes + table.objects.size() * kObject + table.entries.capacity() * sizeof(EntrySummary) +
        scan.edits.items.size() * kEdit +
        (scan.edits.inodes.size() + scan.edits.erased_objects.size() + table.orphans.size() + table.placements.size()) *
            kNumber +
        table.copy_pages.capacity() * sizeof(CopyPageRef) + table.files_with_copies.capacity() * sizeof(std::uint64_t) +
        (table.moved.size() + table.root_names.size()) * kEdit);
  };
  const auto on_leaf = [&](const format::Node& leaf) {
    for (const format::LeafItem& item : leaf.items) items.item(item.key, item.value);
    report_progress(CheckPhase::kTree, ++leaves, std::max(leaves, root.nodes));
  };
  MDFS_TRY_ASSIGN(scan.tree, scan_tree(loader_, root, scan.blocks, scan.findings, on_leaf, limit));
  items.finish();
  scan.items = items.items();
  scan.objects = items.table().objects.size();
  scan.highest_object = items.table().highest_object;
  scan.table = std::move(items.table());
  for (const NodeRef& leaf : scan.tree.leaves)
    if (leaf.lost) scan.table.lost.emplace_back(leaf.lower, leaf.upper);
  check_names(scan.table, layouts_.size(), scan.findings, scan.edits);
  scan.copy_pages = std::move(scan.table.copy_pages);
  DataVisitor on_copy;
  if (data != nullptr) on_copy = [&](StoredData piece) { data->add(std::move(piece)); };
  ItemLookup lookup(scan.tree, loader_);
  const CopyChecks checks{lookup, scan.blocks, volume_.label.block_size, scan.findings, scan.edits, on_copy};
  check_copies(scan.copy_pages, checks);
  check_cell_copies(scan.table.files_with_copies, checks);
  return scan;
}

void Checker::scan_section(Scan& scan) {
  ItemChecker items(volume_.label.block_size, scan.blocks, scan.findings, scan.edits, {}, scan.table.secret,
                    has_copies());
  scan_again(loader_, scan.tree, scan.blocks, scan.findings, [&](const format::Node& leaf) {
    for (const format::LeafItem& item : leaf.items) items.item(item.key, item.value);
  });
  items.finish();
}

void Checker::check_counts(Scan& scan) const {
  if (!scan.tree.must_rewrite && scan.objects != volume_.winner.objects)
    scan.findings.add(FindingId::kObjectCount,
                      fmt::format("{} recorded, {} found", volume_.winner.objects, scan.objects));
  if (scan.highest_object >= volume_.winner.next_object)
    scan.findings.add(FindingId::kNextObject,
                      fmt::format("object {}, next {}", scan.highest_object, volume_.winner.next_object));
}

Result<CheckReport> Checker::run() {
  report_.volume_uuid = volume_.label.volume_uuid;
  report_.volume_name = volume_.label.name;
  report_.generation = volume_.winner.generation;
  report_.finalized = volume_.winner.state == MDFS_SLOT_COMMITTED;
  Findings disks;
  check_disks(disks);
  std::optional<DataChecker>& data = data_;
  Findings of_data;
  if (options_.data)
    data.emplace(volume_, volume_.label.block_size, options_.bytes_for_data(), of_data, [&](std::uint64_t bytes) {
      std::uint64_t done = 0;
      {
        const std::lock_guard lock(mutex_);
        done = data_done_ += bytes;
      }
      report_progress(CheckPhase::kData, done, 0);
    });
  // Checked before anything is read, because a disk may claim any size: the memory for the state of each bitmap page.
  MDFS_TRY(check_memory(map_memory() / MDFS_SECTOR * SpacePages::kPageMemory));
  MDFS_TRY_ASSIGN(Scan first, scan(*volume_.winner.root(MDFS_ROOT_MAIN), data ? &*data : nullptr,
                                   options_.bytes_for_map() / MDFS_SECTOR));
  if (data) {
    data->finish();
    report_data(first, *data, of_data);
  }
  Findings of_space, leaks;
  SpacePages space = read_space(volume_, layouts_, of_space);
  SpaceComparison comparison(volume_, space, of_space, leaks);
  do {
    if (report_.passes++ > 0) scan_section(first);
    comparison.compare(first.blocks);
    report_.used_blocks += first.blocks.count();
  } while (first.blocks.next_section());
  comparison.finish();
  check_counts(first);
  report_progress(CheckPhase::kSpace, layouts_.size(), layouts_.size());
  report_.nodes = first.tree.nodes;
  report_.items = first.items;
  report_.objects = first.objects;
  report_.data_bytes = data_done_;
  // Blocks that seem leaked may belong to lost data.
  if (first.tree.must_rewrite) leaks = {};
  commit_needed_ =
      of_space.any() || leaks.any() || first.findings.total() > first.findings.count(FindingId::kNodeCopyDamaged);
  for (const Findings* findings : {&disks, &first.findings, &of_space, &leaks, &of_data}) note_new(*findings);
  report_.lasting_findings =
      first.findings.total() - first.findings.count(FindingId::kNodeCopyDamaged) + of_data.total();
  find_paths(first.table, first.tree, loader_, report_.findings);
  first.table = {};
  if (options_.repair == RepairMode::kNothing) return report_;
  if (const Status status = repair(first, space); !status.ok()) report_.repair_error = status.error().message();
  return report_;
}

// Data of which a piece is bad and the other one good are lost nowhere.
void Checker::report_data(const Scan& scan, const DataChecker& data, Findings& findings) {
  ItemLookup lookup(scan.tree, loader_);
  for (const BadData& bad : data.bad()) {
    const Repairable repairable = bad.data.is_extent ? plan_extent_repair(scan, data, lookup, bad.data)
                                                     : plan_cell_repair(scan, data, lookup, bad.data);
    if (repairable.some) findings.add(FindingId::kPieceDamaged, bad.where, {bad.data.object});
    if (!repairable.all) findings.add(bad.id, bad.where, {bad.data.object});
  }
}

Checker::Repairable Checker::plan_extent_repair(const Scan& scan, const DataChecker& data, ItemLookup& lookup,
                                                const StoredData& bad) {
  std::optional<format::StoredExtent> both;
  if (bad.is_protected()) both = bad;  // also a part in a strip, and a parity
  const auto page = std::partition_point(scan.copy_pages.begin(), scan.copy_pages.end(), [&](const CopyPageRef& one) {
    return one.key < format::Key{bad.object, MDFS_KIND_PARITY, bad.where / format::kMaxPlaces};
  });
  if (!both && page != scan.copy_pages.end() && page->key.object == bad.object)
    both = both_pieces(lookup, page->shape, volume_.label.block_size, bad);
  if (!both || !scan.blocks.hold(both->copy)) return {};
  for (const format::GroupPiece& piece : both->others.pieces())
    if (!scan.blocks.hold({piece.run})) return {};
  if (!data.read_elsewhere(*both).ok()) return {};
  pieces_to_repair_.push_back(*both);
  return {true, true};
}

// Block by block: each piece of a run may be bad somewhere, as long as no block is bad in both.
Checker::Repairable Checker::plan_cell_repair(const Scan& scan, const DataChecker& data, ItemLookup& lookup,
                                              const StoredData& bad) {
  if (!has_copies()) return {};
  unsigned repairable = 0, lost = 0;
  for (const format::StoredExtent& block : blocks_with_pieces(lookup, volume_.label.block_size, bad)) {
    if (data.read_piece(block).ok()) continue;
    if (block.has_copy() && scan.blocks.hold(block.copy) && data.read_piece(block.by_copy()).ok()) {
      ++repairable;
      pieces_to_repair_.push_back(block);
    } else {
      ++lost;
    }
  }
  return {repairable > 0, repairable > 0 && lost == 0};
}

void Checker::note_new(const Findings& findings) {
  report_.total_findings += findings.total();
  for (const Finding& finding : findings.list())
    if (report_.findings.size() < Findings::kLimit) report_.findings.push_back(finding);
}

// After a commit: what can be repaired at all and is not in `left` is repaired. The commit itself puts its counts
// right.
void Checker::compare_with(const Findings& left) {
  std::set<Finding> still(left.list().begin(), left.list().end());
  std::erase_if(still, [](const Finding& finding) {
    return finding.id == FindingId::kObjectCount || finding.id == FindingId::kNextObject ||
           finding.id == FindingId::kNodeCount;
  });
  for (Finding& finding : report_.findings) {
    if (finding.repaired || info(finding.id).repair == Repair::kNever) continue;
    if (finding.id == FindingId::kPieceDamaged) continue;  // no commit repairs it
    finding.repaired = !still.contains(finding);
  }
}

Status Checker::repair(const Scan& first, const SpacePages& space) {
  const bool anything = std::any_of(report_.findings.begin(), report_.findings.end(),
                                    [](const Finding& finding) { return info(finding.id).repair != Repair::kNever; });
  if (!anything && !options_.rollback) return {};
  if (options_.rollback) MDFS_TRY(check_rollback(first));
  if (volume_.features_read_only()) return {Errc::kReadOnly, "the volume has features that this version cannot write"};
  if (!volume_.awaited.empty()) return {Errc::kNoQuorum, volume_.awaited_text()};
  if (!volume_.majority()) return {Errc::kNoQuorum, "a repair needs more than half of the disks that are not out"};
  if (volume_.may_be_older)  // a repair would take this commit from the disks that are here (FORMAT.md 4.3, step 4)
    return {Errc::kMissingDisk, "a disk that is missing may hold a later commit: attach it, and run mdfsck again"};
  for (const MemberDisk& member : volume_.members)
    if (member.healthy() && !member.disk->writable()) return {Errc::kReadOnly, member.disk->name()};
  if (volume_.highest_generation >= format::kMaxGeneration)
    return {Errc::kReadOnly, "commit.generation: there is no number for another commit"};
  report_.changed = true;
  MDFS_TRY(make_present(volume_));
  MDFS_TRY(repair_copies(first.tree));
  // A bad piece on a block that is used twice may be the good data of the other owner.
  const bool in_place = first.findings.count(FindingId::kBlockUsedTwice) == 0;
  if (in_place) MDFS_TRY(repair_pieces());
  for (Finding& finding : report_.findings)
    finding.repaired = finding.id == FindingId::kLabelDamaged || finding.id == FindingId::kCommitSlotMissing ||
                       finding.id == FindingId::kNodeCopyDamaged ||
                       (finding.id == FindingId::kPieceDamaged && in_place);
  const bool whole = volume_.healthy() == volume_.disks();
  if (!whole && (first.must_rewrite() || commit_needed_))
    return {Errc::kMissingDisk, "this damage can be repaired when all disks are present: attach the missing ones"};
  if (options_.repair == RepairMode::kPreen && first.findings.any(Repair::kForced))
    return {Errc::kNotPermitted, "the damage needs more than -p repairs: run mdfsck -y"};
  return first.must_rewrite() || commit_needed_ || options_.rollback ? repair_tree(first, space) : Status();
}

// Before anything is written: what comes after the commit is given up, so that nothing beside it may be lost unasked.
Status Checker::check_rollback(const Scan& first) const {
  if (volume_.unusable) return *volume_.unusable;
  if (volume_.healthy() != volume_.disks()) return {Errc::kMissingDisk, "a rollback needs all disks of the volume"};
  if (options_.repair != RepairMode::kAll && (first.must_rewrite() || report_.lasting_findings > 0))
    return {Errc::kNotPermitted, "this commit is damaged as well: -y rolls back to its readable part"};
  return {};
}

// A bad copy is overwritten in place: nothing is lost if that is cut short. Durable when this returns: a commit that
// follows may be the only other thing that is flushed, and there may be none.
Status Checker::repair_copies(const TreeScan& tree) {
  if (tree.to_repair.empty()) return {};
  for (const CopyToRepair& bad : tree.to_repair) {
    MDFS_TRY_ASSIGN(AlignedBuffer bytes, loader_.read_good(bad.pointer));
    const format::Address& address = bad.pointer.address[bad.copy];
    MDFS_TRY(
        device::write(*volume_.members[address.disk].disk, address.block * volume_.label.block_size, bytes.bytes()));
  }
  return flush_current(volume_.members);
}

// In place as well: the good piece stays readable while the bad one is overwritten.
Status Checker::repair_pieces() {
  if (pieces_to_repair_.empty()) return {};
  for (const format::StoredExtent& extent : pieces_to_repair_) {
    MDFS_TRY_ASSIGN(const ByteVector good, data_->read_elsewhere(extent));
    AlignedBuffer bytes(good.size());
    std::copy(good.begin(), good.end(), bytes.bytes().begin());
    std::size_t done = 0;
    for (const format::Run& run : extent.runs) {
      const std::uint64_t length = std::uint64_t{run.blocks} * volume_.label.block_size;
      if (!volume_.members[run.disk].healthy()) return Error{Errc::kMissingDisk, fmt::format("disk {}", run.disk)};
      MDFS_TRY(device::write(*volume_.members[run.disk].disk, run.block * volume_.label.block_size,
                             bytes.bytes().subspan(done, length)));
      done += length;
    }
  }
  return flush_current(volume_.members);
}

Status Checker::repair_tree(const Scan& first, const SpacePages& space) {
  // The map of the first state, that of the last one, and that of all that must not be written.
  if (const std::uint64_t needed = 3 * map_memory(); !first.blocks.whole() || needed > options_.bytes_for_map())
    return {Errc::kNoMemory,
            fmt::format("to repair the tree and the maps of blocks takes --memory {}M", (needed >> 18) + 1)};
  BlockMap taken = first.blocks;
  MDFS_TRY(merge_space(volume_, space, taken));
  const std::uint64_t generation = volume_.highest_generation + 1;
  std::optional<Scan> latest;
  const Scan* now = &first;
  for (unsigned round = 0; now->must_rewrite(); ++round) {
    if (round == kMaxRounds) return {Errc::kCorrupt, "repairs keep finding new damage; the volume is unchanged"};
    report_progress(CheckPhase::kRepair, round, kMaxRounds);
    TreeRewriter rewriter(volume_, loader_, taken, generation);
    MDFS_TRY_ASSIGN(const format::Root root, rewriter.rewrite(now->tree, now->edits));
    MDFS_TRY_ASSIGN(latest, scan(root, nullptr, UINT64_MAX));
    latest->table = {};
    if (latest->must_rewrite()) note_cascade(latest->findings);
    now = &*latest;
  }
  MDFS_TRY(commit(*now, space));
  compare_with(now->findings);
  return {};
}

// Adds the new findings of a round.
void Checker::note_cascade(const Findings& findings) {
  const std::set<Finding> known(report_.findings.begin(), report_.findings.end());
  for (const Finding& finding : findings.list())
    if (!known.contains(finding) && report_.findings.size() < Findings::kLimit) {
      report_.findings.push_back(finding);
      ++report_.total_findings;
    }
}

Status Checker::commit(const Scan& scan, const SpacePages& space) {
  NewSpace made = make_space(volume_, space, scan.blocks);
  SealedCommit sealed;
  sealed.slot = volume_.winner;
  sealed.slot.generation = volume_.highest_generation + 1;
  sealed.slot.commit_id = environment_.new_uuid();
  sealed.slot.parent_id = volume_.winner.commit_id;
  sealed.slot.time_ns = environment_.now_ns();
  sealed.slot.objects = scan.objects;
  sealed.slot.next_object = std::max(sealed.slot.next_object, scan.highest_object + 1);
  sealed.slot.space = std::move(made.tops);
  sealed.slot.participants = 0;
  for (format::Root& root : sealed.slot.roots)
    if (root.kind == MDFS_ROOT_MAIN) {
      const format::RootReserve reserve = root.reserve;
      root = scan.root;
      root.nodes = scan.tree.nodes;
      root.reserve = reserve;
    }
  sealed.sectors = std::move(made.writes);
  std::vector<Participant> participants;
  for (std::size_t i = 0; i < volume_.members.size(); ++i) {
    if (!volume_.members[i].healthy()) continue;
    sealed.slot.participants |= std::uint64_t{1} << i;
    participants.push_back({static_cast<std::uint16_t>(i), volume_.members[i].disk.get(), layouts_[i]});
  }
  sealed.slot.features = volume_.features;
  sealed.slot.states = format::member_states(sealed.slot, &volume_.winner);
  return write_commit(sealed, participants, volume_.label.block_size);
}

}  // namespace

std::string_view name(CheckPhase phase) {
  switch (phase) {
    case CheckPhase::kTree:
      return "tree";
    case CheckPhase::kSpace:
      return "space";
    case CheckPhase::kData:
      return "data";
    case CheckPhase::kRepair:
      return "repair";
  }
  MDFS_CHECK(false);
}

std::uint64_t CheckReport::remaining() const {
  return static_cast<std::uint64_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return !finding.repaired && info(finding.id).severity != Severity::kNote;
  }));
}

int CheckReport::exit_code() const {
  constexpr int kRepaired = 1;
  constexpr int kRemains = 4;
  if (remaining() > 0 || !repair_error.empty()) return kRemains;
  const bool repaired = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.repaired && info(finding.id).severity != Severity::kNote;
  });
  return repaired ? kRepaired : 0;
}

Result<CheckReport> check_volume(std::vector<std::unique_ptr<device::Disk>> disks, const CheckOptions& options,
                                 Environment& environment) {
  MDFS_TRY_ASSIGN(Recovered recovered, recover(std::move(disks), options.rollback));
  return Checker(std::move(recovered), options, environment).run();
}

}  // namespace mdfs::store
