// Changes that replace stored extents at once: window writes, truncation, holes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/core.h"
#include "engine/read/loader.h"
#include "engine/write/held_extents.h"
#include "engine/write/publisher.h"
#include "engine/write/stage.h"
#include "engine/write/window_source.h"
#include "engine/write/write_back.h"
#include "engine/write/writer.h"

namespace mdfs::engine {

class WindowRows;

// Locks dirty extents under a box for write-back. No thread writes them back. The caller holds the box alone, so no
// thread changes them. The destructor unlocks extents that have not been handled.
class WriteBackLocks {
 public:
  WriteBackLocks(OpenObject& object, const GridBox& box);
  WriteBackLocks(const WriteBackLocks&) = delete;
  WriteBackLocks& operator=(const WriteBackLocks&) = delete;
  ~WriteBackLocks();
  const std::vector<CacheBlockPtr>& blocks() const { return blocks_; }

 private:
  std::vector<CacheBlockPtr> blocks_;
};

// Any thread. Each call has its part of the grid alone. New contents are staged; no reader sees them. Then, behind the
// closed barrier, one transaction publishes them, and the cached extents are exchanged. Readers of the cache see an
// exchange of buffers in memory. A read that an exchange overtakes is repeated.
class Replacer {
 public:
  Replacer(Core& core, Loader& loader, WriteBack& write_back, Writer& writer)
      : core_(core), loader_(loader), write_back_(write_back), writer_(writer) {}

  // `stores_zeros`: an extent of zeros gets a record, and is no hole.
  Status write_window(OpenObject& object, const geometry::Window& window, const WindowSource& from, const Stop& stop,
                      bool stores_zeros = false);
  // Earlier writes are published before the new size or with it. A volume too full for them shortens the file first.
  // After an error the size is as before, and nothing is lost. Exceptions: an image with more extents in the
  // row of the new end than one transaction changes is shortened in steps, unless the row goes as a whole; so is an
  // image on a full volume.
  Status truncate(OpenObject& object, std::uint64_t size_bytes, const Stop& stop);
  // Enlarges a smaller object. Dirty bytes stay dirty, and the size is published with them.
  Status grow(OpenObject& object, std::uint64_t size_bytes);
  Status punch(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop);
  // Engine::drop_extents().
  Status drop_extents(OpenObject& object, const GridBox& box, const Stop& stop);
  // Called before the object first grows since it was opened. Frees all records beyond its end, so that the added bytes
  // read as zeros until they are written.
  Status clear_beyond_end(OpenObject& object);
  // Engine::consolidate().
  Result<std::uint64_t> consolidate(OpenObject& object, std::uint64_t most_bytes, bool all);

 private:
  static constexpr std::uint64_t kBandBytes = 4u << 20;       // of a window, read from its source at once
  static constexpr std::size_t kLoadedAtOnce = 256;           // extents, between two looks at waiting threads
  static constexpr std::uint64_t kMostExtents = 4u << 20;     // in one transaction
  static constexpr std::uint64_t kLeastExtents = 16384;       // are possible with any budget
  static constexpr std::uint64_t kStagedBytes = 256;          // of memory for each extent that waits to be published
  static constexpr std::size_t kItemsInTransaction = 1024;    // freed
  static constexpr std::uint64_t kExtentsBetweenStops = 256;  // counted, between two looks at the caller

  struct WindowJob;  // window_write.cc
  struct Cut;        // truncate.cc

  // A buffer with the present bytes of the extent, for changing; none: all zeros. Loads missing bytes.
  Result<BufferRef> copy_of(OpenObject& object, const CacheBlockPtr& block);

  Status write_others(OpenObject& object, const WindowJob& job);
  Result<std::uint64_t> extents_written(const OpenObject& object, const WindowJob& job, const Stop& stop);
  Result<bool> replaces_stored(OpenObject& object, const geometry::Box& box);
  Status build_band(OpenObject& object, WindowJob& job, const geometry::Box& band, const Stop& stop);
  Status build_pieces(OpenObject& object, WindowJob& job, const geometry::Box& band, ConstBytes source,
                      std::span<const geometry::Piece> pieces);
  std::uint64_t most_extents_at_once() const;  // that one transaction changes
  bool replaces_extent(const OpenObject& object, const WindowJob& job, const geometry::Box& band,
                       const geometry::Piece& piece);
  Status read_band(const WindowJob& job, const WindowRows& rows, MutableBytes into);
  void overlay(const OpenObject& object, const WindowJob& job, const geometry::Box& band, ConstBytes bytes,
               const geometry::Piece& piece, const BufferRef& buffer);
  Status stage_batch(OpenObject& object, WindowJob& job, bool keep, const Stop& stop);
  Status publish_window(OpenObject& object, WindowJob& job);
  Status drop_some(OpenObject& object, const std::vector<geometry::Coord>& extents);
  // Behind the closed barrier: exchanges the cached extents for the published ones. Calls `before` with `swapping`
  // held.
  void exchange(OpenObject& object, const std::vector<Staged>& extents, bool keep, const std::function<void()>& before);

  Status prepare_size(OpenObject& object, std::uint64_t size_bytes);
  Status write_before(OpenObject& object, std::uint64_t size_bytes);
  Result<bool> has_beyond(OpenObject& object, std::uint64_t size_bytes);
  Status extend(OpenObject& object, std::uint64_t size_bytes);
  Status shrink(OpenObject& object, std::uint64_t size_bytes, const Stop& stop);
  Result<bool> is_small_cut(OpenObject& object, std::uint64_t size_bytes, std::uint64_t most, const Stop& stop);
  Result<std::uint64_t> next_size(OpenObject& object, std::uint64_t size_bytes, std::uint64_t most, bool may_free_rows,
                                  const Stop& stop);
  Status shrink_at_once(OpenObject& object, std::uint64_t size_bytes, const Stop& stop);
  // `shortens`: extents in strips are not written again. kBusy: some of them must be.
  Status shrink_cells(OpenObject& object, std::uint64_t size_bytes, bool shortens, const Stop& stop);
  Status shrink_inline(OpenObject& object, std::uint64_t size_bytes);
  // Stages the extents that keep some bytes and lose others, with zeros for the lost bytes.
  Status cut_cell(OpenObject& object, std::uint64_t size_bytes, Cut& cut);
  Status cut_row(OpenObject& object, std::uint64_t size_bytes, Cut& cut, const Stop& stop);
  Result<bool> shorten(OpenObject& object, const Staged& extent, const std::vector<geometry::Piece>& lost, Cut& cut);
  Status publish_cut(OpenObject& object, std::uint64_t size_bytes, Cut& cut);
  // Frees from the end until at most `items` pages or cells are left beyond the new size.
  Status free_far(OpenObject& object, std::uint64_t first_row, std::size_t items, const Stop& stop);
  Status free_from(OpenObject& object, std::uint64_t row);
  Status free_rows(OpenObject& object, Publisher& publisher, std::uint64_t first_row, std::uint64_t last_row);
  Result<std::uint64_t> last_item(OpenObject& object, std::uint64_t first);
  // Cached extents of [first, last) become clean zeros, or unknown.
  void reset_blocks(OpenObject& object, std::uint64_t first, std::uint64_t last, bool zeros);

  // consolidate.cc
  struct Consolidated {
    std::uint64_t bytes = 0;  // of extents written
    unsigned damaged = 0;     // extents that cannot be read, and the error of the last one
    Status damage;
  };
  static constexpr unsigned kMostDamaged = 64;  // extents of a call that are skipped
  Status consolidate_page(OpenObject& object, std::uint64_t page, bool all, Consolidated& consolidated);
  Status consolidate_extents(OpenObject& object, const std::vector<geometry::Coord>& extents,
                             Consolidated& consolidated);
  Status consolidate_readable(OpenObject& object, const std::vector<geometry::Coord>& extents,
                              Consolidated& consolidated);
  Result<store::Reservation> room_to_consolidate(OpenObject& object, const std::vector<geometry::Coord>& extents);
  Status write_at_once(OpenObject& object, const geometry::Window& window, const WindowSource& from, const Stop& stop,
                       bool stores_zeros);
  Status consolidate_batch(OpenObject& object, const std::vector<geometry::Coord>& extents);

  Status free_in_steps(OpenObject& object, std::uint64_t first, std::uint64_t last, const Stop& stop,
                       const std::function<Status(Publisher&, std::uint64_t item)>& free_item);
  Status punch_cells(OpenObject& object, std::uint64_t first_block, std::uint64_t last_block, const Stop& stop);
  Status punch_rows(OpenObject& object, std::uint64_t first_row, std::uint64_t last_row, const Stop& stop);
  Status zero_held(OpenObject& object, std::uint64_t offset, std::uint64_t length, const Stop& stop);
  Status zero_in_block(OpenObject& object, std::uint64_t offset, std::uint64_t length);
  Result<bool> holds_block(OpenObject& object, std::uint64_t offset);
  void forget_clean(OpenObject& object, std::uint64_t first, std::uint64_t last);
  void zero_blocks(OpenObject& object, std::uint64_t first_block, std::uint64_t last_block);

  Core& core_;
  Loader& loader_;
  WriteBack& write_back_;
  Writer& writer_;
};

}  // namespace mdfs::engine
