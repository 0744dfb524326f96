// Records a workload and judges every state that a power cut could leave behind.
// SPDX-License-Identifier: Apache-2.0
#include "crash_run.h"

#include <algorithm>

#include "base/checked.h"
#include "boots.h"
#include "device/testing/faulty_disk.h"
#include "judge.h"
#include "store/labels.h"

namespace mdfs::crash {

using test::MemoryDisks;
using volume::Volume;

namespace {

constexpr const char* kStarted = "started";
constexpr const char* kReturned = "returned";

// Cuts the power a second time while the volume recovers from the first.
std::string judge_nested(const MemoryDisks& disks, const History& history, const Progress& progress,
                         const RunOptions& options, Judged& judged) {
  Recording recording(disks);
  {
    SeededEnvironment environment(options.seed + 2);
    std::vector<device::Disk*> doors;
    for (std::size_t i = 0; i < disks.size(); ++i)
      if (store::read_labels(*disks[i]).label) doors.push_back(recording.doors[i]);
    auto volume = test::open_volume(doors, judging_options(), environment);
    if (!volume.ok()) return "mounting: " + volume.error().message();
    const Status closed = (*volume)->close();
    if (!closed.ok()) return "unmounting: " + closed.error().message();
  }
  std::string wrong;
  device::for_each_cut(pointers(disks), recording.log.events(), options.bounds,
                       [&](MemoryDisks cut_disks, const device::Cut& cut) {
                         if (!judged.is_new(cut_disks, progress, true)) return true;
                         wrong = judge(cut_disks, history, progress, {}, options.seed + 3);
                         if (!wrong.empty()) wrong = "second cut: " + cut.text + ": " + wrong;
                         return wrong.empty();
                       });
  return wrong;
}

Progress progress_at(const std::vector<device::Event>& events, std::size_t position) {
  Progress progress;
  for (std::size_t i = 0; i < position; ++i) {
    if (events[i].kind != device::EventKind::kMark) continue;
    if (events[i].mark == kStarted) progress.started = events[i].value;
    if (events[i].mark == kReturned) progress.returned = events[i].value;
  }
  return progress;
}

// Where the first so many operations have returned.
std::size_t position_after(const std::vector<device::Event>& events, std::size_t operations) {
  if (operations == 0) return 0;
  const auto returned = std::ranges::find_if(events, [&](const device::Event& event) {
    return event.kind == device::EventKind::kMark && event.mark == kReturned && event.value == operations;
  });
  MDFS_CHECK(returned != events.end());
  return static_cast<std::size_t>(returned - events.begin()) + 1;
}

// Runs everything; the history and the log are what came of it. `fails`: a disk fails meanwhile. The first operation
// that reports this, or finds the volume read-only, is the last one: it promises nothing.
Status record(const std::vector<Operation>& operations, Volume& volume, device::RecorderLog& log, History& history,
              bool fails) {
  std::size_t number = 0;
  {
    Runner runner(volume);
    for (const Operation& operation : operations) {
      ++number;
      const volume::Ino target = runner.target(operation);
      log.mark(kStarted, number);
      // An operation that is refused changes nothing, and is judged so.
      const Status status = runner.run(operation, static_cast<unsigned>(number));
      if (!status.ok() && status.error().code == Errc::kIo && !fails) return status;
      const bool ends = fails && (volume.store().read_only() || (!status.ok() && status.error().code == Errc::kIo));
      if (!ends) log.mark(kReturned, number);
      MDFS_TRY_ASSIGN(test::Tree tree, test::read_tree(volume));
      history.add(operation, target, status.ok(), std::move(tree));
      if (ends) return {};
    }
  }
  MDFS_TRY_ASSIGN(test::Tree tree, test::read_tree(volume));
  history.add({"sync", {}}, 0, true, std::move(tree));
  log.mark(kStarted, number + 1);
  if (const Status closed = volume.close(); !closed.ok()) return fails ? Status() : closed;
  log.mark(kReturned, number + 1);
  return {};
}

// One byte of everything on the disk that is a tree node, used or not.
void spoil_nodes(device::MemoryDisk& disk) {
  constexpr std::uint64_t kStep = 4096, kAt = 200;
  const std::string_view magic = MDFS_NODE_MAGIC;
  for (std::uint64_t offset = 0; offset < disk.size_bytes(); offset += kStep) {
    ByteVector block(kStep);
    disk.peek(offset, block);
    if (!as_text(block).starts_with(magic)) continue;
    block[kAt] ^= std::byte{1};
    disk.poke(offset, block);
  }
}

// A byte of the number-th write of the newest commit, counted round, if its checksum records alone prove that commit.
// Describes it; "": there is none.
std::string spoil_newest_commit(const MemoryDisks& disks, std::uint64_t number) {
  std::optional<format::CommitSlot> newest;
  bool is_committed = false;
  for (const auto& disk : disks)
    for (const format::CommitSlot& slot : store::read_labels(*disk).slots) {
      if (newest && slot.generation < newest->generation) continue;
      if (!newest || slot.generation > newest->generation) is_committed = false;
      newest = slot;
      is_committed = is_committed || slot.state == MDFS_SLOT_COMMITTED;
    }
  if (!newest || is_committed) return "";
  // But pages of the map of free space, which have one copy.
  std::erase_if(newest->checksum_records, [&](const format::ChecksumRecord& record) {
    const auto label = store::read_labels(*disks[record.disk]).label;
    return !label || record.offset() < store::layout_of(*label).first_usable() * label->block_size;
  });
  if (newest->checksum_records.empty()) return "";
  const format::ChecksumRecord& record = newest->checksum_records[number % newest->checksum_records.size()];
  const std::uint64_t offset = record.offset() + number * 1009 % record.bytes();
  ByteVector byte(1);
  disks[record.disk]->peek(offset, byte);
  byte[0] ^= std::byte{4};
  disks[record.disk]->poke(offset, byte);
  return "byte " + std::to_string(offset) + " of disk " + std::to_string(record.disk) + " spoiled";
}

}  // namespace

MemoryDisks make_base_disks(const RunOptions& options) {
  SeededEnvironment environment(options.seed);
  MemoryDisks disks = test::format_memory_disks(options.disks, options.disk_bytes, environment);
  auto volume = test::open_volume(test::borrowed(disks), test::quiet_options(4u << 20), environment);
  MDFS_CHECK(volume.ok());
  if (options.is_protected) MDFS_CHECK((*volume)->set_protection(volume::kRootIno, {true, options.group_members}).ok());
  const Status made = make_base(**volume);
  MDFS_CHECK(made.ok());
  if (options.group_members > 1) {
    MDFS_CHECK((*volume)->sync().ok());
    Runner runner(**volume);
    MDFS_CHECK(runner.run({"group", {}}, 0).ok());
  }
  MDFS_CHECK((*volume)->close().ok());
  if (options.spoiled) spoil_nodes(*disks[0]);
  return disks;
}

std::string try_operations(const std::vector<Operation>& operations, const MemoryDisks& base, const RunOptions& options,
                           Totals& totals, bool* struck) {
  Recording recording(base);
  std::optional<device::FaultyDisk> failing;
  if (options.failure) {
    device::Disk*& door = recording.doors[options.failure->disk];
    failing.emplace(*door, std::vector<device::Fault>{});
    door = &*failing;
  }
  SeededEnvironment environment(options.seed + 1);
  auto volume = test::open_volume(recording.doors, test::quiet_options(4u << 20), environment);
  if (!volume.ok()) return "mounting the base: " + volume.error().message();
  const auto base_tree = test::read_tree(**volume);
  if (!base_tree.ok()) return "reading the base: " + base_tree.error().message();
  const MemoryDisks mounted = clone(recording.disks);
  recording.log.clear();
  History history(*base_tree);
  if (failing)
    failing->add({device::FaultKind::kError, options.failure->op, 0, UINT64_MAX, options.failure->nth,
                  device::Fault::kSticky, 0});
  const Status recorded = record(operations, **volume, recording.log, history, failing.has_value());
  if (!recorded.ok()) return "running: " + recorded.error().message();
  volume->reset();
  if (struck != nullptr) *struck = failing && !failing->injections().empty();
  std::vector<device::Event> events = recording.log.events();
  if (options.flushes_lie)
    for (device::Event& event : events)
      if (event.kind == device::EventKind::kEnd && event.op == device::Op::kFlush) event.ok = false;

  Judged judged(totals);
  LaterSessions later(history, options, judged);
  std::string first;
  std::uint64_t lost = 0;
  const auto note = [&](std::size_t position, const std::string& how, const Progress& progress, std::string wrong) {
    if (wrong.empty()) return;
    if (!first.empty()) return;
    first = how + " at event " + std::to_string(position) + ", " + std::to_string(progress.returned) +
            " operations returned, " + std::to_string(progress.started) + " started: " + wrong;
  };
  std::uint64_t states = 0;
  device::CutBounds bounds = options.bounds;
  bounds.from = position_after(events, options.known);
  device::for_each_cut(pointers(mounted), events, bounds, [&](MemoryDisks disks, const device::Cut& cut) {
    const Progress progress = progress_at(events, cut.position);
    if (!judged.is_new(disks, progress, false)) return true;
    const bool thorough = states++ % options.thorough_every == 0;
    const bool again = options.absent_every > 0 && states % options.absent_every == 0;
    const MemoryDisks left = again ? clone(disks) : MemoryDisks();  // judging writes to them
    std::string wrong;
    if (options.depth > 1) wrong = judge_nested(disks, history, progress, options, judged);
    if (wrong.empty())
      wrong = judge(disks, history, progress, {thorough && !options.spoiled, thorough, options.is_protected},
                    options.seed + 2);
    if (!wrong.empty()) ++lost;
    note(cut.position, "cut (" + cut.text + ")", progress, wrong);
    for (int absent = 0; absent < static_cast<int>(left.size()); ++absent) {
      if (options.failure && absent != static_cast<int>(options.failure->disk)) continue;
      Boot boot{clone(left), clone(left), {}, absent, "mounted without disk " + std::to_string(absent)};
      note(cut.position, "cut (" + cut.text + ")", progress, later.judge(std::move(boot), progress));
    }
    return true;
  });
  std::uint64_t kills = 0;
  bounds.torn = false;
  if (options.kill_every > 0 || options.rot_every > 0)
    device::for_each_kill(pointers(mounted), events, bounds, [&](device::Kill kill) {
      const Progress progress = progress_at(events, kill.position);
      ++kills;
      if (options.rot_every > 0 && kills % options.rot_every == 0) {
        const MemoryDisks spoiled = clone(kill.seen);
        const std::string what = spoil_newest_commit(spoiled, kills / options.rot_every);
        if (!what.empty() && judged.is_new(spoiled, progress, false)) {
          const std::string wrong = judge(spoiled, history, progress, {}, options.seed + 6);
          if (!wrong.empty()) ++lost;
          note(kill.position, "killed (" + kill.text + "), " + what, progress, wrong);
        }
      }
      if (options.kill_every == 0 || (kills - 1) % options.kill_every != 0) return true;
      // Every second time a disk is late as well.
      const int absent = kills % 2 == 0 ? static_cast<int>(kills / 2 % kill.seen.size()) : -1;
      Boot boot{std::move(kill.seen), std::move(kill.durable), std::move(kill.in_cache), absent,
                absent < 0 ? "mounted" : "mounted without disk " + std::to_string(absent)};
      note(kill.position, "killed (" + kill.text + ")", progress, later.judge(std::move(boot), progress));
      return true;
    });
  totals.lost += lost + later.lost();
  return first;
}

}  // namespace mdfs::crash
