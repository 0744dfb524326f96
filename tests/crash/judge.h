// Judges the disks that a power cut leaves, against what had been promised.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "crash_run.h"
#include "device/testing/recorder_disk.h"
#include "oracle.h"

namespace mdfs::crash {

test::MemoryDisks clone(const test::MemoryDisks& disks);
std::vector<const device::MemoryDisk*> pointers(const test::MemoryDisks& disks);
// Those that would be found: one that has left the volume has no labels.
std::vector<device::Disk*> labelled(const test::MemoryDisks& disks);

// A volume on recorded disks. `in_cache`: what a killed daemon has left in their caches, with which the log begins.
struct Recording {
  explicit Recording(const test::MemoryDisks& base, std::vector<device::Event> in_cache = {});
  test::MemoryDisks disks;
  device::RecorderLog log;
  std::vector<std::unique_ptr<device::RecorderDisk>> recorders;
  std::vector<device::Disk*> doors;
};

// How many operations.
struct Progress {
  std::size_t returned = 0;
  std::size_t started = 0;
};

// A file that a later session makes, which the history does not know; it must be there if `promised`.
struct Kept {
  std::string path;
  bool promised = false;
};

// Many cuts leave the same bytes: of a sequence each state is judged once for what had been promised by then.
class Judged {
 public:
  explicit Judged(Totals& totals) : totals_(totals) {}

  // Counts a state; false: it has been judged.
  bool is_new(const test::MemoryDisks& disks, const Progress& progress, bool nested,
              const std::vector<Kept>& kept = {}) {
    std::uint64_t digest = 0;
    for (const auto& disk : disks) digest = digest * 0x9e3779b97f4a7c15u + disk->digest();
    ++totals_.states;
    {
      const std::lock_guard lock(totals_.mutex);
      totals_.distinct.insert(digest);
    }
    std::uint64_t promises = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) promises |= std::uint64_t{kept[i].promised} << i;
    return judged_.emplace(digest, progress.returned, progress.started, promises, nested).second;
  }

 private:
  Totals& totals_;
  std::set<std::tuple<std::uint64_t, std::size_t, std::size_t, std::uint64_t, bool>> judged_;
};

// How closely a state is looked at.
struct Look {
  bool checked = false;   // by the checker, before it is mounted
  bool thorough = false;  // and written to, and checked again
  bool lossy = false;     // also read without each disk in turn: images have second copies
};

// For a volume that is mounted to be looked at: with few threads, as starting them takes longer than the rest.
volume::VolumeOptions judging_options();

// What is found on the disks, before and after recovery: what is wrong with it, or "". `kept`: of later sessions.
std::string judge(const test::MemoryDisks& disks, const History& history, const Progress& progress, const Look& look,
                  std::uint64_t seed, const std::vector<Kept>& kept = {});

}  // namespace mdfs::crash
