// Rebuilds the disks of a volume as a power cut would leave them, from the log of the recorders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/testing/memory_disk.h"
#include "device/testing/recorder_disk.h"

namespace mdfs::device {

// The fate of one outstanding write. Torn: only the units [first, last) of `torn_unit_bytes` reached the disk.
struct Keep {
  bool kept = false;
  std::uint32_t torn_unit_bytes = 0;  // 0: whole
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// One state that a power cut may leave behind.
struct Cut {
  std::size_t position = 0;  // events [0, position) had happened
  std::vector<Keep> keep;    // one for each of Replayer::outstanding() at that position
  std::string text;          // how it arises, for messages
};

struct CutBounds {
  std::size_t from = 0;               // no cuts at positions before this one
  std::size_t all_subsets_up_to = 8;  // outstanding writes on all disks together
  std::size_t each_one_up_to = 64;    // prefixes, writes dropped, kept and torn alone; evenly spaced beyond that
  std::size_t samples = 16;           // seeded subsets
  std::uint64_t seed = 1;
  bool torn = true;
};

// Walks through a log. A write is durable once a flush of its disk has succeeded that started after the write had
// ended. A write that has started but is not durable is outstanding: it may or may not have reached its disk. Every
// disk is therefore cut at a point of its own. A failed write stays outstanding until a later durable write covers it.
// One thread.
class Replayer {
 public:
  // `bases[i]`: contents of disk i at the beginning of the log; it is cloned.
  Replayer(const std::vector<const MemoryDisk*>& bases, std::vector<Event> log);

  const std::vector<Event>& log() const { return log_; }
  // Forward only.
  void advance_to(std::size_t position);
  std::size_t position() const { return position_; }
  // Writes and discards that a cut here may lose, in the order in which they were started.
  std::vector<const Event*> outstanding() const;

  // The disks after this cut, whose position must be this replayer's.
  std::vector<std::unique_ptr<MemoryDisk>> build(const Cut& cut) const;

 private:
  struct Write {
    const Event* event;
    bool ended = false;
    bool failed = false;
  };
  struct Flush {
    std::uint64_t request;
    std::uint32_t disk;
    std::vector<std::uint64_t> covers;  // requests
  };

  void start(const Event& event);
  void end(const Event& event);
  void make_durable(const Flush& flush);
  static void apply(MemoryDisk& disk, const Event& event, const Keep& keep);

  std::vector<std::unique_ptr<MemoryDisk>> durable_;
  std::vector<Event> log_;
  std::size_t position_ = 0;
  std::vector<Write> outstanding_;
  std::vector<Flush> flushes_;  // in progress
};

// Positions where a cut can show something new: before each flush ends, before and after each mark, and at the end.
// In between, outstanding writes only grow in number, so every earlier state is one of the later ones.
std::vector<std::size_t> cut_positions(const std::vector<Event>& log);

// The cuts to try with these outstanding writes at this position, without duplicates: all subsets, or, when there are
// too many writes, none, all, each one dropped, each one kept, every prefix of the order over all disks, each disk
// alone complete and alone empty, and seeded samples with a random prefix a disk or at random. With `torn`, each
// write torn at 512 B and 4 KiB, while the writes before it are kept and those after it dropped.
std::vector<Cut> cuts(std::size_t position, const std::vector<const Event*>& outstanding, const CutBounds& bounds);

// The daemon was killed: its disks stay powered and hold `seen`, part of it in their caches alone. A power cut before
// the next flush may still lose any of `in_cache`, which is the beginning of the next daemon's log.
struct Kill {
  std::size_t position = 0;  // events [0, position) had happened
  std::string text;
  std::vector<std::unique_ptr<MemoryDisk>> seen;     // what the next daemon reads
  std::vector<std::unique_ptr<MemoryDisk>> durable;  // without `in_cache`
  std::vector<Event> in_cache;                       // writes and discards, each started and ended
};

// Every state in which a kill can leave disks with volatile caches: at the positions of cut_positions(), with the
// subsets that cuts() chooses of the outstanding writes; a kill tears no write. `visit` returns false to stop. A
// later cut is found by for_each_cut(durable, in_cache + the next daemon's events). Gives the number of kills visited.
std::size_t for_each_kill(const std::vector<const MemoryDisk*>& bases, const std::vector<Event>& log,
                          const CutBounds& bounds, const std::function<bool(Kill kill)>& visit);

// Builds every state of the log and calls `visit` with the disks and the cut; `visit` returns false to stop.
// States that were already visited since the last mark (equal digests of all disks) are left out.
// Gives the number of states visited.
std::size_t for_each_cut(
    const std::vector<const MemoryDisk*>& bases, const std::vector<Event>& log, const CutBounds& bounds,
    const std::function<bool(std::vector<std::unique_ptr<MemoryDisk>> disks, const Cut& cut)>& visit);

}  // namespace mdfs::device
