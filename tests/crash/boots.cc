// Later sessions.
// SPDX-License-Identifier: Apache-2.0
#include "boots.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "store/labels.h"

namespace mdfs::crash {

using volume::Volume;

namespace {

constexpr std::size_t kMostKills = 3;  // of one second session
constexpr std::string_view kSynced = "synced";

// The file that a session makes.
std::string file_of(const Boot& boot) { return boot.kept.empty() ? "second" : "third"; }

// One session on the disks that are there. A volume that cannot be mounted without the absent disk, or only for
// reading, is as it was.
std::string run_session(const Boot& boot, const RunOptions& options, Recording& recording, Environment& environment) {
  std::vector<device::Disk*> doors;
  for (std::size_t i = 0; i < recording.disks.size(); ++i)
    if (static_cast<int>(i) != boot.absent && store::read_labels(*recording.disks[i]).label)
      doors.push_back(recording.doors[i]);
  if (doors.empty()) return "";
  store::StoreOptions store_options;
  store_options.degraded = options.believes_absent && boot.absent >= 0;
  auto volume = test::open_volume(doors, judging_options(), environment, store_options);
  if (!volume.ok()) return boot.absent >= 0 ? "" : "mounting: " + volume.error().message();
  if ((*volume)->store().read_only()) return boot.absent >= 0 ? "" : "read-only with all disks there";
  const auto file = (*volume)->make_node(volume::kRootIno, file_of(boot), S_IFREG | 0644, 0, {});
  if (file.ok()) {
    const auto written = (*volume)->write(file->ino, 0, ByteVector(5000, std::byte{7}), false);
    if (written.ok() && (*volume)->fsync(file->ino, false).ok()) recording.log.mark(std::string(kSynced));
  } else if (file.error().code != Errc::kNoSpace) {
    return "a new file: " + file.error().message();
  }
  const Status closed = (*volume)->close();
  return closed.ok() || boot.absent >= 0 ? "" : "unmounting: " + closed.error().message();
}

// The planted fault: the first flush of each disk, which a mount makes before it writes, has kept nothing.
void let_first_flushes_lie(std::vector<device::Event>& events, std::size_t begin) {
  std::set<std::uint32_t> seen;
  for (std::size_t i = begin; i < events.size(); ++i)
    if (events[i].kind == device::EventKind::kEnd && events[i].op == device::Op::kFlush &&
        seen.insert(events[i].disk).second)
      events[i].ok = false;
}

// The files of the sessions until a point in this one.
std::vector<Kept> kept_at(const Boot& boot, const std::vector<device::Event>& events, std::size_t position) {
  std::vector<Kept> kept = boot.kept;
  const auto end = events.begin() + static_cast<std::ptrdiff_t>(position);
  const bool synced = std::any_of(events.begin(), end, [](const device::Event& event) {
    return event.kind == device::EventKind::kMark && event.mark == kSynced;
  });
  kept.push_back({"/" + file_of(boot), synced});
  return kept;
}

}  // namespace

std::string LaterSessions::judge(Boot boot, const Progress& progress) {
  const std::size_t begin = boot.in_cache.size();
  Recording recording(boot.seen, std::exchange(boot.in_cache, {}));
  SeededEnvironment environment(options_.seed + 4 + 100 * boot.kept.size());  // UUIDs of its own
  const std::string failed = run_session(boot, options_, recording, environment);
  if (!failed.empty()) {
    ++lost_;
    return boot.text + ": " + failed;
  }
  std::vector<device::Event> events = recording.log.events();
  if (options_.mount_flush_lies) let_first_flushes_lie(events, begin);
  std::string first = judge_cuts(boot, events, progress, begin);
  if (!boot.kept.empty() || options_.kill_again_every == 0) return first;
  if (sessions_++ % options_.kill_again_every != 0) return first;
  const std::string second = judge_kills(boot, events, progress, begin);
  return first.empty() ? second : first;
}

std::string LaterSessions::judge_cuts(const Boot& boot, const std::vector<device::Event>& events,
                                      const Progress& progress, std::size_t begin) {
  std::string first;
  device::CutBounds bounds = options_.boot_bounds;
  bounds.from = begin;
  device::for_each_cut(pointers(boot.durable), events, bounds, [&](test::MemoryDisks disks, const device::Cut& cut) {
    const std::vector<Kept> kept = kept_at(boot, events, cut.position);
    if (!judged_.is_new(disks, progress, true, kept)) return true;
    const std::string wrong = crash::judge(disks, history_, progress, {}, options_.seed + 5, kept);
    if (wrong.empty()) return true;
    ++lost_;
    if (first.empty())
      first = boot.text + ", cut again at event " + std::to_string(cut.position) + " (" + cut.text + "): " + wrong;
    return true;
  });
  return first;
}

// The kills begin at another point of the session each time.
std::string LaterSessions::judge_kills(const Boot& boot, const std::vector<device::Event>& events,
                                       const Progress& progress, std::size_t begin) {
  std::string first;
  std::size_t kills = 0;
  device::CutBounds bounds = options_.boot_bounds;
  bounds.from = begin + sessions_ * 7 % (events.size() - begin + 1);
  device::for_each_kill(pointers(boot.durable), events, bounds, [&](device::Kill kill) {
    Boot third{std::move(kill.seen),
               std::move(kill.durable),
               std::move(kill.in_cache),
               -1,
               boot.text + ", killed again at event " + std::to_string(kill.position) + " (" + kill.text + ")",
               kept_at(boot, events, kill.position)};
    const std::string wrong = judge(std::move(third), progress);
    if (first.empty()) first = wrong;
    return ++kills < kMostKills;
  });
  return first;
}

}  // namespace mdfs::crash
