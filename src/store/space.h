// The space of the volume: blocks for data and nodes, reservations, and blocks that wait to be reused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "alloc/allocator.h"
#include "base/result.h"
#include "format/pointer.h"
#include "store/block_space.h"
#include "store/discards.h"
#include "store/fullness.h"
#include "store/held_blocks.h"
#include "store/members.h"
#include "store/recently_freed.h"
#include "store/recovery.h"
#include "store/space_pages.h"

namespace mdfs::store {

// Addresses of all copies of a node not yet written.
struct NodePlace {
  std::array<format::Address, MDFS_MAX_COPIES> address{};
  std::uint8_t copies = 0;
  std::span<const format::Address> places() const { return {address.data(), copies}; }
};

// The tree as it is in memory.
struct TreeSize {
  std::uint64_t nodes = 0;
  std::uint64_t changed = 0;  // of them: to be written by the next commit
  std::uint16_t level = 0;
};

// States of a block: free -> taken (allocate) -> published (by a transaction) -> pending free -> free. A block freed
// in generation g is free again when g + kFallbackRoots is on the disks.
//
// Nodes: every changed node has a place in the pool before the change takes effect, so a commit never lacks room.
// Beyond that there must be room for the growth of the tree that reservations allow, and for working: publishing
// written data and freeing change some nodes of the tree, whose old places are free again only two commits later. That
// room is whatever is free in the metadata regions; as far as that is too little, places are taken beyond them (`far`)
// while there is room, since data leave no contiguous blocks behind. Any thread may call any method; one mutex guards
// all, never held during I/O. Below the tree's lock in the order.
class Space {
 public:
  static constexpr std::uint64_t kFallbackRoots = 1;
  static constexpr std::size_t kPublishedRunsLimit = 1024;
  // What one of so many last commits had in use is not discarded, though it may be written over: as many as a ring of
  // slots has generations.
  static constexpr std::uint64_t kKeptCommits = MDFS_RING_SLOTS / 2;
  static constexpr std::size_t kDiscardableLimit = 16384;   // runs
  static constexpr std::uint64_t kHeldShare = 8;            // of the data blocks, that wait for holds at most
  static constexpr std::uint64_t kLoadedPagesLimit = 1024;  // of all disks: 8 KiB each

  // Reads index pages of the healthy disks; the others have no space. `members` may have more entries than the commit
  // has disks, and none moves: those behind are filled in when disks come.
  // The tree is told by note_tree(). `policy`: of requests that have none.
  Space(std::vector<MemberDisk>& members, const format::CommitSlot& slot, std::uint32_t block_size, std::uint64_t seed,
        geometry::AllocationPolicy policy);
  Space(const Space&) = delete;

  // ---- members; the caller keeps commits and transactions away
  // The disk is in `members`, its space pages are blank and its top page is `top`.
  Status add_disk(std::uint16_t disk, const format::SpaceEntry& top);
  // Holds nothing, or is not there. kNotEmpty if it does.
  Status remove_disk(std::uint16_t disk);
  // New blocks are given out of it no more, or again. kNoSpace: the other disks have no room for what it holds;
  // `missing_blocks`, unless null, is what they lack. Then all stays as it was.
  Status set_avoided(std::uint16_t disk, bool avoided, std::uint64_t* missing_blocks);
  std::uint64_t used_blocks(std::uint16_t disk) const;

  // Before the first block is given out: what the commit of this generation, which a mount found, had freed waits for
  // the next commit. Not known: nothing is given out before that.
  void keep_fallback(std::uint64_t generation, const std::optional<std::vector<Run>>& freed);
  bool gives_out() const;

  // ---- another size of a disk (space_resize.cc); the caller keeps commits and transactions away
  // No new blocks behind the end that the disk would have with this layout; with its own one: everywhere again.
  // kNoSpace as set_avoided(). kCorrupt: a bitmap page at one of the two ends is damaged.
  Status set_end(std::uint16_t disk, const format::DiskLayout& layout, std::uint64_t* missing_blocks);
  // In use, or waiting to be free, behind that end.
  std::uint64_t used_behind(std::uint16_t disk) const;
  // Does a copy of the node lie on a disk that is avoided, or behind the end?
  bool must_move(std::uint16_t disk, const format::Pointer& node) const;
  // Has the node fewer copies, or copies on fewer disks, than a new one gets? Then it was written when there were fewer
  // disks, or while they were full.
  bool is_crowded(const format::Pointer& node) const;
  // The disk has this size. Larger: `new_bitmaps` are the pages that have come, blank and on the disk, and the blocks
  // of the old label areas are taken until free_labels(). Smaller: kNotEmpty if something is in use behind set_end().
  Status resize(std::uint16_t disk, const format::DiskLayout& layout,
                const std::vector<format::SpaceEntry>& new_bitmaps);
  void free_labels(std::uint16_t disk, const format::DiskLayout& old);

  // `reserved` of the blocks come out of a reservation. kNoSpace: no such run now; pending_free() says whether commits
  // may help.
  Result<Run> allocate(const AllocationRequest& request, std::uint64_t reserved);
  void abandon(const Run& run);
  Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep);
  void thaw_range(const Run& range);
  bool reserve_run(const Run& place);
  void release_run(const Run& place);
  bool is_free(const Run& run);
  // BlockHold: these blocks are not free again, whatever is committed, until the hold is dropped or broken. At most an
  // eighth of the data blocks wait like this: beyond that the oldest holds are broken. Blocks of a disk that is
  // leaving wait for nobody.
  std::shared_ptr<const HeldBlocks::State> hold(std::vector<Run> runs);
  void drop_hold(const HeldBlocks::State& hold);
  // Breaks those that blocks wait for; false if there are none.
  bool break_holds();
  void release_preallocations(std::uint64_t owner);
  // kNoSpace: there is not enough space to reserve.
  Status reserve(const SpaceAmount& amount, Purpose purpose);
  void give_back(const SpaceAmount& amount);
  std::uint64_t pending_free() const;
  SpaceInfo info() const;
  // Fills in what it knows of a disk.
  void describe(std::size_t disk, DiskInfo& info) const;
  std::vector<ZoneUse> zone_use(unsigned disk, std::uint64_t first, std::size_t count);

  // Makes sure that so many nodes can be given places; the part of `reserved` for the tree may be used. kNoSpace if
  // they cannot.
  Status fill_pool(std::size_t nodes, Purpose purpose, const SpaceAmount& reserved);
  std::size_t places() const;  // in the pool
  // All that is kept has room in the metadata regions, and some nodes more: now, or when commits have freed what waits.
  enum class When : std::uint8_t { kNow, kSoon };
  bool has_room_at_home(When when) const;
  // After each change of the tree; what the pool holds without need is given back.
  void note_tree(const TreeSize& tree);
  // Loads the bitmap pages of these runs and keeps them in memory until unpin(). A run on a missing disk is passed
  // over.
  void pin(std::span<const Run> runs);
  void unpin(std::span<const Run> runs);
  // Are the runs what the transaction takes them for? Pinned. kCorrupt names the first that is not.
  Status check(std::span<const Run> published, std::span<const Run> freed) const;
  // Checked and pinned.
  void publish(std::span<const Run> runs);
  enum class Holds : std::uint8_t { kData, kNodes };
  void free(std::span<const Run> runs, Holds holds = Holds::kData);

  // The calls of a commit, in this order. seal: between the two nothing else is called.
  NodePlace take_place();  // published at once; the pool was filled
  // Changed space pages go to `writes` and tops to `slot`; what was freed since the last seal waits for
  // `generation`.
  void seal(std::uint64_t generation, std::vector<SectorWrite>& writes, std::vector<format::SpaceEntry>& tops);
  // What was published since the last call, nodes left out; nothing if it is much.
  std::optional<std::vector<Run>> take_published();
  // The sealed generation is on the disks. Gives the runs that may be reused now; they are free when released.
  std::vector<Run> note_committed(std::uint64_t generation);
  void release(std::span<const Run> runs);

  // ---- discards (space_discard.cc). Blocks are taken while their disk is told that nobody needs them: whoever finds
  // no other room meanwhile waits for that. The caller keeps changes of members away. The next run of holes of at least
  // `smallest` blocks before block `end` that the disk may be told of: at most `most` blocks, and an eighth of what is
  // free. Nothing if there is none before the end, where the position is then. Left out are blocks in use in one of the
  // last kKeptCommits commits, and those that are kept for somebody.
  std::optional<Run> begin_discard(std::uint16_t disk, DiscardPosition& position, std::uint64_t end,
                                   std::uint64_t smallest, std::uint32_t most);
  void end_discard(const Run& run);
  // To be called before some discards are begun, and while none is under way: first come those who wait for blocks.
  // As long as there are any, begin_discard() gives nothing and leaves the position where it is.
  void let_waiters_go();
  // It is known what the last commits had in use: this mount has made enough of them, and none freed very many runs.
  bool may_discard() const;
  // Commits are needed until blocks that have been freed before this call may be discarded.
  bool wants_commits_to_discard() const;
  // Runs of at least so many blocks that have become free to be discarded since the last call.
  std::vector<Run> take_discardable(std::uint64_t smallest);
  // From now on, or no more, runs are kept for take_discardable().
  void collect_discardable(bool wanted);

  // Where a page lies and what it must be; nothing if that is not known.
  std::optional<format::SpaceEntry> page_entry(unsigned disk, format::SpacePage page) const;
  // The next commit writes the page anew, from memory; false if memory does not hold it.
  bool rewrite_page(unsigned disk, format::SpacePage page);

  // Does a copy lie beyond the metadata regions?
  bool is_far(const NodePlace& place) const;
  // Runs of the copies of a node.
  std::vector<Run> runs_of(std::span<const format::Address> places) const;

 private:
  struct PendingFree {
    std::uint64_t generation = 0;
    std::vector<Run> runs;
  };

  // The page, and up to `ahead` pages behind it, in one request. What is loaded already stays as it is.
  void load_page(std::uint16_t disk, std::uint64_t page, std::uint64_t ahead = 0);
  void install(std::uint16_t disk, std::uint64_t page, const Status& status, ConstBytes bytes);
  bool valid(const Run& run) const;               // may be asked about
  alloc::SpaceMap* map_of(const Run& run) const;  // null: missing disk or damaged page
  alloc::Answer allocate_once(const AllocationRequest& request);
  // What the log should be told after this answer; empty: nothing.
  std::vector<std::string> note_allocation(const AllocationRequest& request, const Run& run);
  void add_pending_free(const Run& run);    // does what follows from that it waits; mutex_ is held
  std::uint64_t pending_free_data() const;  // in all
  void count_disks();                       // what follows from which disks are usable
  // Loads the pages at the end of the smaller of the disk's layout and this one, and keeps them in memory.
  Status pin_edge(std::uint16_t disk, const format::DiskLayout& layout);
  void unpin_edge(std::uint16_t disk, const format::DiskLayout& layout);
  bool is_behind_end(const Run& run) const;
  // All places in the pool anew.
  Status refill_pool(std::unique_lock<std::mutex>& lock);
  enum class Where : std::uint8_t { kHome, kFar, kAnywhere };
  // Takes one more run for the place, on a disk that has none of its copies if possible.
  alloc::Answer extend_place(NodePlace& place, Purpose purpose, Where where);
  // Takes a place into the pool. The lock is given up while a bitmap page is loaded.
  Status take_into_pool(std::unique_lock<std::mutex>& lock, Purpose purpose, Where where);
  // Takes far places until `kept` nodes have room beside `nodes` that are to be written.
  Status keep_room(std::unique_lock<std::mutex>& lock, std::uint64_t nodes, std::uint64_t kept, Purpose purpose);
  void release_place(const NodePlace& place);
  void release_locked(std::span<const Run> runs);  // mutex_ is held
  // Waits for the discards under way; false if there are none (of these blocks).
  bool wait_for_discards(std::unique_lock<std::mutex>& lock, const AllocationRequest* request = nullptr);
  bool knows_recent() const { return commits_ + 1 >= kKeptCommits && generation_ >= no_discard_before_; }
  std::uint64_t discarding_blocks(std::uint16_t disk, alloc::BlockRange range) const;
  std::uint64_t discarding_data() const;  // in all
  // The first part of a free run of one bitmap page that none of the last commits had in use.
  Run discardable_part(const Run& run, std::uint64_t smallest) const;
  // Far places that are not needed go, and those that could lie in the metadata regions move there.
  void trim();
  std::uint64_t home_nodes(
      std::uint64_t more_blocks = 0) const;  // that free blocks of the metadata regions have room for
  // That a purpose leaves alone, where `own` is among the reservations.
  std::uint64_t kept_nodes(Purpose purpose, const SpaceAmount& own = {}) const;
  std::uint64_t missing_nodes(std::uint64_t home) const;  // of those kept for kNormal: without room
  std::uint64_t place_blocks() const { return node_blocks_ * copies_; }
  // Free data blocks that are not reserved and that the purpose may take.
  std::uint64_t spare_data(Purpose purpose) const;
  void shrink();

  const std::vector<MemberDisk>& members_;
  std::uint32_t block_size_;
  std::uint64_t node_blocks_;
  const geometry::AllocationPolicy policy_;

  mutable std::mutex mutex_;  // guards all below
  unsigned copies_ = 2;
  std::vector<std::uint16_t> node_disks_;  // usable
  std::unique_ptr<alloc::Allocator> allocator_;
  std::vector<std::unique_ptr<SpaceIndex>> index_;  // null: missing disk
  Fullness fullness_;
  std::vector<format::SpaceEntry> tops_;
  std::uint64_t total_data_ = 0;
  std::uint64_t total_metadata_ = 0;
  std::uint64_t data_reserve_ = 0;
  SpaceAmount reserved_;
  std::uint64_t pending_free_ = 0;
  std::vector<std::uint64_t> pending_free_data_;  // of them, not where metadata have their regions: by disk
  std::uint64_t published_node_blocks_ = 0;
  TreeSize tree_;
  bool all_healthy_ = true;
  std::deque<NodePlace> pool_;  // taken, not published; in the metadata regions
  std::deque<NodePlace> far_;   // the same with a copy beyond them: given out when the others are used up
  std::size_t rotation_ = 0;
  std::vector<Run> published_;  // since the last seal; more than kPublishedRunsLimit are not counted
  std::vector<Run> freeing_;    // freed since the last seal
  std::deque<PendingFree> pending_;
  bool knows_freed_ = true;  // keep_fallback()
  HeldBlocks held_;
  RecentlyFreed recent_;
  std::uint64_t no_discard_before_ = 0;  // generation: more has been freed than is remembered
  std::uint64_t commits_ = 0;            // commits of this mount
  std::uint64_t generation_ = 0;         // of the last one
  std::vector<Run> discarding_;          // taken until end_discard()
  std::uint64_t discard_waiters_ = 0;
  std::condition_variable discard_ended_;
  bool collects_discardable_ = false;
  std::vector<Run> discardable_;  // at most kDiscardableLimit
  struct PageOf {
    std::uint16_t disk = 0;
    std::uint64_t page = 0;
  };
  std::vector<PageOf> sealed_pages_;  // being written: pinned
};

}  // namespace mdfs::store
