// The extent engine: reads and writes of windows and byte ranges, from all disks at once, through a cache with a budget
// of memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/locks.h"
#include "engine/map/layout.h"
#include "engine/map/window_plan.h"
#include "engine/options.h"
#include "engine/relocate/mover.h"
#include "engine/relocate/protector.h"
#include "engine/relocation_queue.h"
#include "engine/write/window_source.h"
#include "geometry/geometry.h"
#include "layout/defrag_plan.h"
#include "layout/fragmentation.h"
#include "store/store.h"

namespace mdfs::engine {

// The data of one open object. The volume makes one for each object at a time; many threads use it.
class OpenObject;

// The state of a window at one moment, to be read in parts (engine/read/window_version.h). The version ends with its
// last holder, and before the engine.
class WindowVersion;

// The frame of an extent at one moment, as it is stored (engine/read/frames.h).
class StoredFrame;

struct CacheStats {
  std::uint64_t bytes = 0, dirty_bytes = 0, hits = 0, misses = 0, evictions = 0, budget_bytes = 0;
};

// Reads return the bytes of the last completed write. Each read call sees a window write whole or not at all, and so
// does recovery after a crash. Any thread may call any method. An error of write-back stays with the object, whose next
// write_back() reports it once.
class Engine final {
 public:
  static Result<std::unique_ptr<Engine>> create(store::Store& store, const EngineOptions& options,
                                                Environment& environment);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Result<std::shared_ptr<OpenObject>> open(const ObjectSpec& spec, InodeUpdate update);
  // Writes back, and forgets the object. The caller does not use the object afterwards.
  Status close(const std::shared_ptr<OpenObject>& object);
  // Forgets cached and dirty bytes of a deleted object without writing them; frees nothing on disk.
  void discard(const std::shared_ptr<OpenObject>& object);

  std::uint64_t size_bytes(const OpenObject& object) const;
  bool is_dirty(const OpenObject& object) const;

  // Reads bytes of the canonical file. Returns their number, which is smaller than asked only at the end of the file.
  Result<std::size_t> read(OpenObject& object, std::uint64_t offset, MutableBytes into, const Stop& stop = {});
  // Extends the file as needed. Error kNoSpace: nothing has changed. A write that `stop` ends may leave the new size
  // and a part of the bytes.
  Status write(OpenObject& object, std::uint64_t offset, ConstBytes from, const Stop& stop = {});

  // Reads bytes [offset, offset + into.size()) of the window's canonical layout. The caller has checked the window. All
  // window calls are for images only.
  Status read_window(OpenObject& object, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                     const Stop& stop = {});
  // The whole window, if the cache has it: Reader::read_cached().
  bool read_cached_window(OpenObject& object, const geometry::Window& window, MutableBytes into,
                          const ReadProgress& progress);
  // Pins the present state of a window that the caller has checked: all reads of the version see that state, in spite
  // of later writes. Writers keep the older extents for the version, within bounds. Beyond the bounds, after a
  // truncation of the image and after a hole under the window, reads of the version fail with ESTALE.
  Result<std::shared_ptr<WindowVersion>> pin_window(OpenObject& object, const geometry::Window& window);
  Status read_version(WindowVersion& version, std::uint64_t offset, MutableBytes into, const Stop& stop = {});
  // Windows inside that of the version: one after another in `into`, with all channels, from all disks at once. The
  // caller bounds their number and their bytes.
  Status read_version_parts(WindowVersion& version, std::span<const geometry::Window> parts, MutableBytes into,
                            const Stop& stop);
  // The frame of an extent, if the extent is stored as one frame now; else null. Later writes do not change the frame.
  Result<std::shared_ptr<StoredFrame>> stored_frame(OpenObject& object, const geometry::Coord& extent,
                                                    const Stop& stop);
  std::uint32_t size_bytes(const StoredFrame& frame) const;
  // Bytes of the frame, which lie within it (abort).
  Status read_frame(StoredFrame& frame, std::uint64_t offset, MutableBytes into, const Stop& stop);
  bool is_of(const WindowVersion& version, const OpenObject& object) const;
  // Starts reading a window's extents into the cache and returns at once. The budget of loads bounds the work.
  void start_window(OpenObject& object, const geometry::Window& window);
  // Replaces the window, or the bytes of it that `from` selects, atomically. Earlier writes are published before the
  // window or with it.
  Status write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from, const Stop& stop);
  Status write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from) {
    return write_window(object, window, from, {});
  }

  // Sets the size. Shrinking zeroes the cut part of the last extents in the same commit. Earlier writes are published
  // before the new size or with it. A full volume that cannot take these writes shortens the file all the same.
  Status truncate(OpenObject& object, std::uint64_t size_bytes, const Stop& stop);
  Status truncate(OpenObject& object, std::uint64_t size_bytes) { return truncate(object, size_bytes, {}); }
  // Enlarges a smaller object. The new size is published with the dirty bytes, whenever they are written back.
  Status grow(OpenObject& object, std::uint64_t size_bytes);
  // Zeroes a range, and frees whole extents or blocks inside it. The size stays.
  Status punch(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop);
  Status punch(OpenObject& object, std::uint64_t offset, std::uint64_t length) {
    return punch(object, offset, length, {});
  }
  // The same for a whole window of extents, which are no holes afterwards, even if all their samples are zero.
  Status store_window(OpenObject& object, const geometry::Window& window, const WindowSource& from, const Stop& stop);
  // Makes the stored extents of a box of the grid holes, in steps. Window versions keep them. For images whose dirty
  // bytes have been written back.
  Status drop_extents(OpenObject& object, const GridBox& box, const Stop& stop);
  // Offset of the next data / hole at or after `offset` (SEEK_DATA, SEEK_HOLE); kNoDevice beyond the end.
  Result<std::uint64_t> next_data(OpenObject& object, std::uint64_t offset);
  Result<std::uint64_t> next_hole(OpenObject& object, std::uint64_t offset);

  // True if an extent of the grid has been written, dirty or not; reads that begin after the call see it. All others
  // are holes.
  Result<bool> is_written(OpenObject& object, const geometry::Coord& extent);
  // True if any extent in a box of the grid has been written. The cost does not depend on the size of the box.
  Result<bool> any_written(OpenObject& object, const GridBox& box, const Stop& stop);
  // The written extents of a row along the fastest axis (engine/map/written_extents.h): their indices there.
  Result<std::vector<std::uint64_t>> written_in_row(OpenObject& object, const geometry::Coord& from, std::size_t most,
                                                    const Stop& stop);

  // Extents with a record.
  Result<std::uint64_t> count_stored(OpenObject& object, const Stop& stop);

  // Puts all dirty bytes of the object on their disks and publishes them; a following Store::commit makes them durable.
  // Reports a stored write-back error once.
  Status write_back(OpenObject& object);
  // The same for every object, without objects that have been dirty for less than `at_least_age_ns`.
  Status write_back_all(std::int64_t at_least_age_ns);

  // Consolidates extents with bytes in strips: those that are complete, or `all` of them. Stops when `most_bytes` of
  // extents are written or nothing is left. Returns the bytes written; 0 means that nothing is left, or that the rest
  // has dirty bytes. An extent that cannot be read stays in strips; a call that finds nothing else to do returns that
  // error.
  Result<std::uint64_t> consolidate(OpenObject& object, std::uint64_t most_bytes, bool all);

  // At most `most` rows from a position on, as the records have them; dirty bytes do not show. Memory is bounded: a few
  // items of the tree and the rows of the answer. `stop` ends the call between two reads of the tree.
  Result<LayoutRows> layout(OpenObject& object, const LayoutRequest& request, const Stop& stop);
  Result<WindowPlan> plan(OpenObject& object, const geometry::Window& window, const Stop& stop);
  // How well the stored extents, or cells, of the object lie, by their records; dirty bytes do not count. Beyond 65536
  // extents the answer comes from samples. The call needs up to 16 MiB of memory.
  Result<layout::Fragmentation> fragmentation(OpenObject& object, const Stop& stop);
  // A plan of moves after which windows of the object lie in fewer runs, one part at a time. The first part is from 0.
  Result<layout::DefragPlan> plan_defrag(OpenObject& object, std::uint64_t from);
  // Moves stored extents or cells to other blocks (engine/relocate/mover.h) without changing their bytes. Later writes
  // of dirty bytes go where placement puts them, in spite of the move: write back first.
  Result<MoveOutcome> move(OpenObject& object, const MoveRequest& request);
  // ---- second copies of an image's extents (engine/relocate/protector.h)
  // What is written from now on gets copies, or none. When an image rests, `group_members` of its extents share a
  // parity in place of their copies; 1: none do.
  void set_protection(OpenObject& object, bool copies, unsigned group_members);
  Result<ProtectOutcome> protect(OpenObject& object, const ProtectRequest& request);
  // Of some pages; `page` is 0 first, and UINT64_MAX after the last call.
  Result<ProtectionState> protection(OpenObject& object, std::uint64_t& page, const Stop& stop);
  // Strips of an image that do not have the copies that they should have, on disks that are there.
  Result<std::uint64_t> strips_to_consolidate(const OpenObject& object, bool copies, const Stop& stop);
  Result<std::vector<geometry::Coord>> find_unprotected(OpenObject& object, const ProtectRequest& wanted,
                                                        std::uint64_t& page, std::size_t most);
  // Candidates of relocation in the background, of objects that are or were open, ascending by object. Kept in memory
  // only.
  std::vector<RelocationCandidate> relocation_candidates() const;
  // Extents away from home, with those that must wait for a commit.
  std::uint64_t extents_away_from_home() const;
  // Does some of a candidate's work. Strips: consolidates complete extents, about 8 MiB. Away from home: moves extents
  // home, or finds that the move is not worth its cost (engine/relocate/home_relocator.h). Damaged: verifies both
  // copies of the extents, and writes bad ones anew. Does not commit. Unfinished work stays a candidate.
  Result<RelocationOutcome> relocate(OpenObject& object, RelocationReason reason, const Pace& pace);
  // For an object that cannot be read or is deleted, or when placements have changed.
  void forget_relocation(const RelocationCandidate& candidate);
  void forget_relocations(std::uint64_t object);
  void forget_all_homes();
  // No read or write came for a while, and few bytes are dirty.
  bool is_quiet() const;
  CacheStats cache_stats() const;
  // Sets the limit of the cache, at most its budget (EngineOptions::cache_bytes). A smaller limit holds at once, except
  // for memory in use. Dirty bytes go when they have been written back, which a smaller limit hastens.
  void set_cache_limit(std::uint64_t bytes);
  // Shrinks the cache to this size once; the cache may grow again.
  void trim_cache(std::uint64_t bytes);
  // Gives the memory of released buffers back to the system.
  void give_back_memory();
  // Since the last read or write of any object.
  std::int64_t idle_ns() const;
  // True with EngineOptions::zeros_for_lost and a read-only store.
  bool zeroes_lost() const;

 private:
  struct Parts;  // engine.cc
  explicit Engine(std::unique_ptr<Parts> parts);
  Result<RelocationOutcome> repair_damaged(OpenObject& object, const Pace& pace);
  Result<RelocationOutcome> form_groups(OpenObject& object, const Pace& pace);
  // Gives up dirty bytes.
  void drop_dirty(OpenObject& object);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace mdfs::engine
