// The space of the volume: blocks for data and nodes, what is promised, and what waits to be reused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "alloc/allocator.h"
#include "base/result.h"
#include "format/pointer.h"
#include "store/recovery.h"
#include "store/space_pages.h"
#include "store/store.h"

namespace mdfs::store {

// Addresses of all copies of a node not yet written.
struct NodePlace {
  std::array<format::Address, MDFS_MAX_COPIES> address{};
  std::uint8_t copies = 0;
  std::span<const format::Address> places() const { return {address.data(), copies}; }
};

// Blocks go: free -> taken (allocate) -> linked (by a transaction) -> unlinked, gated -> free. A block unlinked in
// generation g is free again when g + kFallbackRoots is on the disks.
// Any thread may call any method; one mutex guards all, never held during I/O. Below the tree's lock in the order.
class Space {
 public:
  static constexpr std::uint64_t kFallbackRoots = 1;
  static constexpr std::uint64_t kLoadedPagesLimit = 1024;  // of all disks: 8 KiB each

  // Reads index pages of the healthy disks; the others have no space.
  Space(std::vector<MemberDisk>& members, const format::CommitSlot& slot, std::uint32_t block_size, std::uint64_t seed);
  Space(const Space&) = delete;

  // `promised` of the blocks come out of a promise. kNoSpace: no such run now; gated() says whether commits may help.
  Result<Run> allocate(const AllocationRequest& request, std::uint64_t promised);
  void abandon(const Run& run);
  // Promises blocks, or says that there are not enough (kNoSpace). The reserve is for kFreeing only.
  Status promise(std::uint64_t blocks, Purpose purpose);
  void give_back(std::uint64_t blocks);
  std::uint64_t gated() const;
  SpaceInfo info() const;
  std::uint64_t disk_free(std::size_t disk) const;

  // Makes sure that so many nodes can be given places. kNoSpace without effect.
  Status fill_pool(std::size_t nodes, Purpose purpose);
  // Gives back what the pool holds far beyond so many nodes.
  void trim_pool(std::size_t nodes);
  // Loads the bitmap pages of these runs and keeps them in memory until unpin(). A run on a missing disk is passed
  // over.
  void pin(std::span<const Run> runs);
  void unpin(std::span<const Run> runs);
  // Are the runs what the transaction takes them for? Pinned. kCorrupt names the first that is not.
  Status check(std::span<const Run> links, std::span<const Run> unlinks) const;
  // Checked and pinned.
  void link(std::span<const Run> runs);
  void unlink(std::span<const Run> runs);

  // The calls of a commit, in this order. seal: between the two nothing else is called.
  NodePlace take_place();  // linked at once; the pool was filled
  // Changed space pages go to `writes` and tops to `slot`; what was unlinked since the last seal waits for
  // `generation`.
  void seal(std::uint64_t generation, std::vector<SectorWrite>& writes, std::vector<format::SpaceEntry>& tops);
  // The sealed generation is on the disks. Gives the runs that may be reused now; they are free when released.
  std::vector<Run> published(std::uint64_t generation);
  void release(std::span<const Run> runs);

  // Runs of the copies of a node.
  std::vector<Run> runs_of(std::span<const format::Address> places) const;

 private:
  struct Gate {
    std::uint64_t generation = 0;
    std::vector<Run> runs;
  };

  // The page, and up to `ahead` pages behind it, in one request. What is loaded already stays as it is.
  void load_page(std::uint16_t disk, std::uint64_t page, std::uint64_t ahead = 0);
  void install(std::uint16_t disk, std::uint64_t page, const Status& status, ConstBytes bytes);
  bool valid(const Run& run) const;               // may be asked about
  alloc::SpaceMap* map_of(const Run& run) const;  // null: missing disk or damaged page
  alloc::Answer allocate_once(const AllocationRequest& request);
  // Takes one more run for the place, on a disk that has none of its copies if possible.
  alloc::Answer extend_place(NodePlace& place, Purpose purpose);
  void release_place(const NodePlace& place);
  std::uint64_t spare_data(std::uint64_t reserve) const;  // free data blocks that nobody was promised
  void shrink();

  const std::vector<MemberDisk>& members_;
  std::uint32_t block_size_;
  std::uint64_t node_blocks_;
  unsigned copies_;

  mutable std::mutex mutex_;  // guards all below
  std::unique_ptr<alloc::Allocator> allocator_;
  std::vector<std::unique_ptr<SpaceIndex>> index_;  // null: missing disk
  std::vector<format::SpaceEntry> tops_;
  std::uint64_t total_data_ = 0;
  std::uint64_t data_reserve_ = 0;
  std::uint64_t metadata_reserve_ = 0;
  std::uint64_t promised_ = 0;
  std::uint64_t gated_ = 0;
  std::uint64_t gated_data_ = 0;
  std::deque<NodePlace> pool_;  // taken, not linked
  std::size_t rotation_ = 0;
  std::vector<Run> freeing_;  // unlinked since the last seal
  std::deque<Gate> gates_;
  struct PageOf {
    std::uint16_t disk = 0;
    std::uint64_t page = 0;
  };
  std::vector<PageOf> sealed_pages_;  // being written: pinned
};

}  // namespace mdfs::store
