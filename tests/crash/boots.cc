// Second sessions.
// SPDX-License-Identifier: Apache-2.0
#include "boots.h"

#include <sys/stat.h>

#include <utility>

#include "store/labels.h"

namespace mdfs::crash {

using volume::Volume;

namespace {

constexpr const char* kName = "second";
constexpr const char* kSynced = "synced";

// One session on the disks that are there. A volume that cannot be mounted without the absent disk, or only for
// reading, is as it was.
std::string run_session(const Boot& boot, Recording& recording, Environment& environment) {
  std::vector<device::Disk*> doors;
  for (std::size_t i = 0; i < recording.disks.size(); ++i)
    if (static_cast<int>(i) != boot.absent && store::read_labels(*recording.disks[i]).label)
      doors.push_back(recording.doors[i]);
  if (doors.empty()) return "";
  auto volume = test::open_volume(doors, judging_options(), environment);
  if (!volume.ok()) return boot.absent >= 0 ? "" : "mounting: " + volume.error().message();
  if ((*volume)->store().read_only()) return boot.absent >= 0 ? "" : "read-only with all disks there";
  const auto file = (*volume)->make_node(volume::kRootIno, kName, S_IFREG | 0644, 0, {});
  if (file.ok()) {
    const auto written = (*volume)->write(file->ino, 0, ByteVector(5000, std::byte{7}), false);
    if (written.ok() && (*volume)->fsync(file->ino, false).ok()) recording.log.mark(kSynced);
  } else if (file.error().code != Errc::kNoSpace) {
    return "a new file: " + file.error().message();
  }
  const Status closed = (*volume)->close();
  return closed.ok() || boot.absent >= 0 ? "" : "unmounting: " + closed.error().message();
}

bool is_synced(const std::vector<device::Event>& events, std::size_t position) {
  for (std::size_t i = 0; i < position; ++i)
    if (events[i].kind == device::EventKind::kMark && events[i].mark == kSynced) return true;
  return false;
}

}  // namespace

std::string judge_second_session(Boot boot, const History& history, const Progress& progress, const RunOptions& options,
                                 Judged& judged, std::uint64_t& lost) {
  const std::size_t begin = boot.in_cache.size();
  Recording recording(boot.seen, std::move(boot.in_cache));
  boot.in_cache.clear();
  SeededEnvironment environment(options.seed + 4);
  std::string first = run_session(boot, recording, environment);
  if (!first.empty()) {
    ++lost;
    return boot.text + ": " + first;
  }
  const std::vector<device::Event> events = recording.log.events();
  device::CutBounds bounds = options.boot_bounds;
  bounds.from = begin;
  device::for_each_cut(pointers(boot.durable), events, bounds, [&](test::MemoryDisks disks, const device::Cut& cut) {
    if (!judged.is_new(disks, progress, true)) return true;
    const Kept kept{std::string("/") + kName, is_synced(events, cut.position)};
    const std::string wrong = judge(disks, history, progress, {}, options.seed + 5, kept);
    if (wrong.empty()) return true;
    ++lost;
    if (first.empty())
      first = boot.text + ", cut again at event " + std::to_string(cut.position) + " (" + cut.text + "): " + wrong;
    return true;
  });
  return first;
}

}  // namespace mdfs::crash
