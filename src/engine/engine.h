// The extent engine: reads and writes of windows and byte ranges, from all disks at once, through a cache with a
// budget.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/map/layout.h"
#include "engine/map/window_plan.h"
#include "engine/options.h"
#include "engine/relocate/mover.h"
#include "engine/relocation_queue.h"
#include "engine/write/window_source.h"
#include "geometry/geometry.h"
#include "layout/defrag_plan.h"
#include "layout/fragmentation.h"
#include "store/store.h"

namespace mdfs::engine {

// The data of one open object; one for each object at a time (the volume sees to that), used by many threads.
class OpenObject;

// A window as it is at one moment, to be read in parts (engine/read/window_version.h). Ends with its last holder, which
// is before the engine ends.
class WindowVersion;

struct CacheStats {
  std::uint64_t bytes = 0, dirty_bytes = 0, hits = 0, misses = 0, evictions = 0, budget_bytes = 0;
};

// Reads return what the last completed write wrote. Window writes are seen whole or not at all by each read call, and
// survive a crash whole or not at all. Any thread may call any method. Errors of write-back stay with the object and
// are reported once by its next write_back (fsync gate).
class Engine final {
 public:
  static Result<std::unique_ptr<Engine>> create(store::Store& store, const EngineOptions& options,
                                                Environment& environment);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Result<std::shared_ptr<OpenObject>> open(const ObjectSpec& spec, InodeUpdate update);
  // Writes back and forgets. The object is not used afterwards.
  Status close(const std::shared_ptr<OpenObject>& object);
  // Forgets cached and dirty bytes without writing them (the object has been deleted); frees nothing on disk.
  void discard(const std::shared_ptr<OpenObject>& object);

  std::uint64_t size_bytes(const OpenObject& object) const;
  bool is_dirty(const OpenObject& object) const;

  // Bytes of the canonical file; returns how many were read (fewer only at the end of the file).
  Result<std::size_t> read(OpenObject& object, std::uint64_t offset, MutableBytes into, const Stop& stop = {});
  // Extends the file as needed. kNoSpace before anything is changed. Where `stop` ends the write, the file may
  // have its new size and a part of the bytes.
  Status write(OpenObject& object, std::uint64_t offset, ConstBytes from, const Stop& stop = {});

  // Bytes [offset, offset + into.size()) of the window's canonical layout; the window has been checked.
  // Images only, as all window calls.
  Status read_window(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                     const Stop& stop = {});
  // The window as it is now, which has been checked: all reads of it give the same version, whatever is written
  // meanwhile. What changes keeps the older extents for it within bounds; beyond them, and when the image is cut off or
  // a hole is punched under it, reads end with the error of ESTALE.
  Result<std::shared_ptr<WindowVersion>> pin_window(OpenObject& object, const geometry::Window& window);
  Status read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into, const Stop& stop = {});
  bool is_of(const WindowVersion& version, const OpenObject& object) const;
  // Starts reading a window's extents into the cache and returns at once; bounded by the budget.
  void start_window(OpenObject& object, const geometry::Window& window);
  // Replaces the window, or those of its bytes that `from` says, atomically. What had been written before is published
  // before it or with it.
  Status write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from, const Stop& stop);
  Status write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from) {
    return write_window(object, window, from, {});
  }

  // New size; shrinking zeroes the cut part of what remains, in the same commit. Comes with what had been written
  // before, or after it; only where there is no room to write it back is a file shortened all the same.
  Status truncate(OpenObject& object, std::uint64_t size_bytes, const Stop& stop);
  Status truncate(OpenObject& object, std::uint64_t size_bytes) { return truncate(object, size_bytes, {}); }
  // Makes it larger if it is smaller: the new size comes with what is dirty, whenever that is written back.
  Status grow(OpenObject& object, std::uint64_t size_bytes);
  // Zeroes; frees whole extents or blocks inside. Does not change the size.
  Status punch(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop);
  Status punch(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
    return punch(object, offset, length, {});
  }
  // Offset of the next data / hole at or after `offset` (SEEK_DATA, SEEK_HOLE); kNoDevice beyond the end.
  Result<std::uint64_t> next_data(OpenObject& object, std::uint64_t offset);
  Result<std::uint64_t> next_hole(OpenObject& object, std::uint64_t offset);

  // True if an extent of the grid has been written, dirty or not. All others are holes.
  Result<bool> is_written(OpenObject& object, const geometry::Coord& extent);
  // The written extents of a row along the fastest axis (engine/map/written_extents.h): their indices there.
  Result<std::vector<std::uint64_t>> written_in_row(OpenObject& object, const geometry::Coord& from, std::size_t most,
                                                    const Stop& stop);

  // All dirty bytes of the object are on their disks and published in the tree; a following Store::commit makes them
  // safe. Reports a stored write-back error once.
  Status write_back(OpenObject& object);
  // The same for every object; those not dirty for `at_least_age_ns` are left out.
  Status write_back_all(std::int64_t at_least_age_ns);

  // Writes extents whole that have bytes in strips: those of which no more bytes are to come, or `all`, until
  // `most_bytes` of extents have been written or nothing is left to do. Returns the bytes; 0: nothing was left, or what
  // is left has dirty bytes. What cannot be read stays as it is, and is the error of a call that finds nothing else to
  // do.
  Result<std::uint64_t> consolidate(OpenObject& object, std::uint64_t most_bytes, bool all);

  // At most `most` rows from a position on, as the records are: what is dirty is left out. Holds a few items of the
  // tree and the rows of the answer, however large the image is. `stop` ends it between two of its reads of the tree.
  Result<LayoutRows> layout(OpenObject& object, const LayoutRequest& request, const Stop& stop);
  Result<WindowPlan> plan(OpenObject& object, const geometry::Window& window, const Stop& stop);
  // How well its stored extents, or cells, lie: of more than 65536 of them as seen in samples. By the records as they
  // are: what is dirty does not count. Needs at most some 16 MiB for the time of the call.
  Result<layout::Fragmentation> fragmentation(OpenObject& object, const Stop& stop);
  // What to move so that its windows lie in fewer runs, part by part; the first one is from 0.
  Result<layout::DefragPlan> plan_defrag(OpenObject& object, std::uint64_t from);
  // Moves extents or cells to other blocks (engine/relocate/mover.h); the data stay what they are. What is dirty is
  // written to where it belongs later on, whatever has been moved: write back first.
  Result<MoveOutcome> move(OpenObject& object, const MoveRequest& request);
  // What may be relocated without being asked, of objects that are open or have been, ascending by object. In memory
  // alone.
  std::vector<RelocationCandidate> relocation_candidates() const;
  // Extents away from home, those included that must wait for a commit.
  std::uint64_t extents_away_from_home() const;
  // Some of it. Strips: complete extents are written whole, about 8 MiB. Extents away from home: moves them back, or
  // finds that it is not worth it (engine/relocate/home_relocator.h). Commits nothing. What is left stays a candidate.
  Result<RelocationOutcome> relocate(OpenObject& object, RelocationReason reason, const Pace& pace);
  // The object is gone, or cannot be read; or placements are not what they were.
  void forget_relocation(const RelocationCandidate& candidate);
  void forget_all_homes();
  // Nobody has read or written for a while, and little is dirty.
  bool is_quiet() const;
  CacheStats cache_stats() const;
  // What the cache may hold from now on, at most its budget (EngineOptions::cache_bytes). A smaller limit holds at
  // once, but for what is in use; dirty bytes leave when they have been written back, which a smaller limit hurries.
  void set_cache_limit(std::uint64_t bytes);
  // Makes the cache hold no more now; it may grow again.
  void trim_cache(std::uint64_t bytes);
  // Gives the memory of released buffers back to the system.
  void give_back_memory();
  // Since the last read or write of anybody.
  std::int64_t idle_ns() const;
  // EngineOptions::zeros_for_lost, of a store that is read-only.
  bool zeroes_lost() const;

 private:
  struct Parts;  // engine.cc
  explicit Engine(std::unique_ptr<Parts> parts);
  // What has not been written is given up.
  void drop_dirty(OpenObject& object);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace mdfs::engine
