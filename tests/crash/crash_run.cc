// Records a workload and judges every state that a power cut could leave behind.
// SPDX-License-Identifier: Apache-2.0
#include "crash_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/checked.h"
#include "oracle.h"
#include "store/check/check.h"
#include "store/labels.h"

namespace mdfs::crash {

using test::MemoryDisks;
using volume::Volume;

namespace {

constexpr const char* kStarted = "started";
constexpr const char* kReturned = "returned";

MemoryDisks clone(const MemoryDisks& disks) {
  MemoryDisks clones;
  for (const auto& disk : disks) clones.push_back(disk->clone());
  return clones;
}

// A volume on recorded disks.
struct Recording {
  explicit Recording(const MemoryDisks& base) : disks(clone(base)) {
    for (std::uint32_t i = 0; i < disks.size(); ++i) {
      recorders.push_back(std::make_unique<device::RecorderDisk>(*disks[i], log, i));
      doors.push_back(recorders.back().get());
    }
  }
  MemoryDisks disks;
  device::RecorderLog log;
  std::vector<std::unique_ptr<device::RecorderDisk>> recorders;
  std::vector<device::Disk*> doors;
};

std::vector<const device::MemoryDisk*> pointers(const MemoryDisks& disks) {
  std::vector<const device::MemoryDisk*> all;
  for (const auto& disk : disks) all.push_back(disk.get());
  return all;
}

// How many operations.
struct Progress {
  std::size_t returned = 0;
  std::size_t started = 0;
};

// Many cuts leave the same bytes: of a sequence each state is judged once for what had been promised by then.
class Judged {
 public:
  explicit Judged(Totals& totals) : totals_(totals) {}

  // Counts a state; false: it has been judged.
  bool is_new(const MemoryDisks& disks, const Progress& progress, bool nested) {
    std::uint64_t digest = 0;
    for (const auto& disk : disks) digest = digest * 0x9e3779b97f4a7c15u + disk->digest();
    ++totals_.states;
    {
      const std::lock_guard lock(totals_.mutex);
      totals_.distinct.insert(digest);
    }
    return judged_.emplace(digest, progress.returned, progress.started, nested).second;
  }

 private:
  Totals& totals_;
  std::set<std::tuple<std::uint64_t, std::size_t, std::size_t, bool>> judged_;
};

// Those that would be found: one that has left the volume has no labels.
std::vector<device::Disk*> labelled(const MemoryDisks& disks) {
  std::vector<device::Disk*> found;
  for (const auto& disk : disks)
    if (store::read_labels(*disk).label) found.push_back(disk.get());
  return found;
}

// A cut may leave a label or a commit slot that was being written; the others are there.
// Of a commit that is not finalized yet one copy of a node may be missing.
bool is_expected(store::FindingId id, bool raw, bool finalized) {
  const bool half_written = id == store::FindingId::kLabelDamaged || id == store::FindingId::kCommitSlotMissing ||
                            (id == store::FindingId::kNodeCopyDamaged && !finalized);
  return store::info(id).severity == store::Severity::kNote || (raw && half_written);
}

}  // namespace

std::string check_disks(const MemoryDisks& disks, Environment& environment, bool raw) {
  std::vector<std::unique_ptr<device::Disk>> doors;
  for (device::Disk* disk : labelled(disks)) doors.push_back(std::make_unique<test::BorrowedDisk>(*disk));
  store::CheckOptions options;
  options.data = true;
  const auto report = store::check_volume(std::move(doors), options, environment);
  if (!report.ok()) return "the checker: " + report.error().message();
  for (const store::Finding& finding : report->findings)
    if (!is_expected(finding.id, raw, report->finalized))
      return "the checker: " + std::string(store::info(finding.id).name) + ": " + finding.where;
  return report->remaining() == 0 || raw ? "" : "the checker: findings that are not listed";
}

namespace {

// Mounted once more, the volume takes a file and keeps it.
std::string write_again(std::unique_ptr<Volume> volume, test::Tree tree, const MemoryDisks& disks,
                        Environment& environment) {
  Runner runner(*volume);
  const auto operations = parse_operations("create /after; write /after 0 5000; fsync /after; scrub");
  for (const Operation& operation : *operations) {
    const Status status = runner.run(operation, 77);
    if (!status.ok()) return operation.text() + ": " + status.error().message();
  }
  const auto with_file = test::read_tree(*volume);
  if (!with_file.ok()) return with_file.error().message();
  tree["/after"] = with_file->contains("/after") ? with_file->at("/after") : test::Seen{};
  if (*with_file != tree) return "writing a file changed others";
  const Status closed = volume->close();
  if (!closed.ok()) return "unmounting: " + closed.error().message();
  volume.reset();
  const std::string checked = check_disks(disks, environment, false);
  if (!checked.empty()) return checked;
  auto again = test::open_volume(labelled(disks), test::quiet_options(4u << 20), environment);
  if (!again.ok()) return "the second mount: " + again.error().message();
  const auto kept = test::read_tree(**again);
  if (!kept.ok()) return "after the second mount: " + kept.error().message();
  return *kept == tree ? "" : "the second mount shows something else";
}

// How closely a state is looked at.
struct Look {
  bool checked = false;   // by the checker, before anybody mounts it
  bool thorough = false;  // and written to, and checked again
};

// For a volume that is mounted to be looked at: with few threads, as starting them takes longer than the rest.
volume::VolumeOptions judging_options() {
  volume::VolumeOptions options = test::quiet_options(4u << 20);
  options.engine.decode_threads = 1;
  return options;
}

// What is found on the disks, before and after recovery.
std::string judge(const MemoryDisks& disks, const History& history, const Progress& progress, const Look& look,
                  std::uint64_t seed) {
  SeededEnvironment environment(seed);
  if (look.checked) {
    const std::string checked = check_disks(disks, environment, true);
    if (!checked.empty()) return "before mounting: " + checked;
  }
  auto volume = test::open_volume(labelled(disks), judging_options(), environment);
  if (!volume.ok()) return "mounting: " + volume.error().message();
  auto tree = test::read_tree(**volume);
  if (!tree.ok()) return tree.error().message();
  std::string wrong = history.explain(*tree, progress.returned, progress.started);
  if (wrong.empty()) wrong = test::find_inconsistency(**volume, false);
  if (wrong.empty() && look.thorough) wrong = write_again(std::move(*volume), std::move(*tree), disks, environment);
  return wrong;
}

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

// Runs everything; the history and the log are what came of it.
Status record(const std::vector<Operation>& operations, Volume& volume, device::RecorderLog& log, History& history) {
  std::size_t number = 0;
  {
    Runner runner(volume);
    for (const Operation& operation : operations) {
      ++number;
      const volume::Ino target = runner.target(operation);
      log.mark(kStarted, number);
      // An operation that is refused changes nothing, and is judged so.
      const Status status = runner.run(operation, static_cast<unsigned>(number));
      if (!status.ok() && status.error().code == Errc::kIo) return status;
      log.mark(kReturned, number);
      MDFS_TRY_ASSIGN(test::Tree tree, test::read_tree(volume));
      history.add(operation, target, status.ok(), std::move(tree));
    }
  }
  MDFS_TRY_ASSIGN(test::Tree tree, test::read_tree(volume));
  history.add({"sync", {}}, 0, true, std::move(tree));
  log.mark(kStarted, number + 1);
  MDFS_TRY(volume.close());
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

}  // namespace

MemoryDisks make_base_disks(const RunOptions& options) {
  SeededEnvironment environment(options.seed);
  MemoryDisks disks = test::format_memory_disks(options.disks, options.disk_bytes, environment);
  auto volume = test::open_volume(test::borrowed(disks), test::quiet_options(4u << 20), environment);
  MDFS_CHECK(volume.ok());
  const Status made = make_base(**volume);
  MDFS_CHECK(made.ok());
  MDFS_CHECK((*volume)->close().ok());
  if (options.spoiled) spoil_nodes(*disks[0]);
  return disks;
}

std::string try_operations(const std::vector<Operation>& operations, const MemoryDisks& base, const RunOptions& options,
                           Totals& totals) {
  Recording recording(base);
  SeededEnvironment environment(options.seed + 1);
  auto volume = test::open_volume(recording.doors, test::quiet_options(4u << 20), environment);
  if (!volume.ok()) return "mounting the base: " + volume.error().message();
  const auto base_tree = test::read_tree(**volume);
  if (!base_tree.ok()) return "reading the base: " + base_tree.error().message();
  const MemoryDisks mounted = clone(recording.disks);
  recording.log.clear();
  History history(*base_tree);
  const Status recorded = record(operations, **volume, recording.log, history);
  if (!recorded.ok()) return "running: " + recorded.error().message();
  volume->reset();
  std::vector<device::Event> events = recording.log.events();
  if (options.flushes_lie)
    for (device::Event& event : events)
      if (event.kind == device::EventKind::kEnd && event.op == device::Op::kFlush) event.ok = false;

  Judged judged(totals);
  std::string wrong;
  std::uint64_t states = 0;
  device::CutBounds bounds = options.bounds;
  bounds.from = position_after(events, options.known);
  device::for_each_cut(pointers(mounted), events, bounds, [&](MemoryDisks disks, const device::Cut& cut) {
    const Progress progress = progress_at(events, cut.position);
    if (!judged.is_new(disks, progress, false)) return true;
    const bool thorough = states++ % options.thorough_every == 0;
    if (options.depth > 1) wrong = judge_nested(disks, history, progress, options, judged);
    if (wrong.empty())
      wrong = judge(disks, history, progress, {thorough && !options.spoiled, thorough}, options.seed + 2);
    if (wrong.empty()) return true;
    wrong = "cut at event " + std::to_string(cut.position) + " (" + cut.text + "), " +
            std::to_string(progress.returned) + " operations returned, " + std::to_string(progress.started) +
            " started: " + wrong;
    return false;
  });
  return wrong;
}

}  // namespace mdfs::crash
