// Writes of byte ranges: into the cache, with space on the disks reserved first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/core.h"
#include "engine/read/loader.h"
#include "engine/write/held_extents.h"
#include "engine/write/write_back.h"

namespace mdfs::engine {

// Any thread.
class Writer {
 public:
  Writer(Core& core, Loader& loader, WriteBack& write_back) : core_(core), loader_(loader), write_back_(write_back) {}

  // Extends the file as needed. kNoSpace: nothing has changed. A write that replaces stored bytes without growing the
  // file may use the reserve, since it frees as many blocks.
  Status write(OpenObject& object, std::uint64_t offset, ConstBytes from, const Stop& stop);
  // Zeroes bytes. The caller holds its part of the grid. The file then has at least `size`.
  Status write_zeros(OpenObject& object, std::uint64_t offset, std::uint64_t length, store::Purpose purpose,
                     std::uint64_t size = 0);
  // Zeroes the bytes of an image's cache block that lie in a range that ends before `end`. The caller holds its part of
  // the grid.
  Status zero_extent(OpenObject& object, const HeldExtent& held, std::uint64_t end, store::Purpose purpose);

 private:
  static constexpr std::uint64_t kPassBytes = 1u << 20;
  static constexpr std::uint64_t kPassParts = 16384;
  // Bytes that are planned at once: fewer where a step along an axis leads to another cache block, so that the plan
  // stays small.
  static std::uint64_t pass_bytes(const OpenObject& object);
  // Cache memory that a write requests at once, so that waiting threads do not wait for the whole write.
  static constexpr std::size_t kTurnBytes = 1u << 20;
  static constexpr std::size_t kMaxRanges = 64;  // of valid bytes in a cache block that is not complete

  Result<store::Reservation> reserve(OpenObject& object, std::uint64_t offset, std::uint64_t length,
                                     store::Purpose purpose);
  static store::SpaceAmount most_needed(const OpenObject& object, std::uint64_t offset, std::uint64_t length);
  store::SpaceAmount needed(OpenObject& object, std::uint64_t offset, std::uint64_t length);
  Result<bool> replaces_only(OpenObject& object, std::uint64_t offset, std::uint64_t length);
  // The space that a cache block with these dirty blocks still lacks, in a file that reaches to `end` at least. The
  // caller holds the cache block's mutex.
  static store::SpaceAmount missing(const OpenObject& object, const CacheBlock& block, std::uint32_t dirty_blocks,
                                    std::uint64_t end);
  Status write_parts(OpenObject& object, std::uint64_t offset, ConstBytes from, std::uint64_t end,
                     store::Reservation& reservation, const Stop& stop);
  Status write_part(OpenObject& object, const Transfer& transfer, const Transfer::Part& part, ConstBytes from,
                    std::uint64_t end, store::Reservation& reservation);
  // Returns with the cache block locked and ready for the part: complete, or with few ranges of valid bytes.
  Status make_ready(OpenObject& object, const CacheBlockPtr& block, const Transfer::Part& part, std::uint64_t end,
                    std::unique_lock<std::mutex>& lock, bool& whole);
  static bool is_wanted(const OpenObject& object, const Transfer::Part& part);
  void keep_for_versions(OpenObject& object, const CacheBlockPtr& block, const Transfer::Part& part,
                         std::unique_lock<std::mutex>& lock);
  Status find_hole(OpenObject& object, const CacheBlockPtr& block, const geometry::Coord& coord,
                   std::unique_lock<std::mutex>& lock);
  bool make_sparse(const OpenObject& object, CacheBlock& block, const ChangedBytes& filled);
  void make_writable(const OpenObject& object, CacheBlock& block, std::uint64_t bytes, bool complete);

  Core& core_;
  Loader& loader_;
  WriteBack& write_back_;
};

// Blocks of a cell under its bytes [begin, end).
std::uint32_t block_mask(const OpenObject& object, std::uint64_t begin, std::uint64_t end);

}  // namespace mdfs::engine
