// The space of the volume: blocks for data and nodes, reservations, and blocks that wait to be reused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "alloc/allocator.h"
#include "base/result.h"
#include "format/pointer.h"
#include "store/block_space.h"
#include "store/discards.h"
#include "store/fullness.h"
#include "store/held_blocks.h"
#include "store/members.h"
#include "store/published_data.h"
#include "store/recently_freed.h"
#include "store/recovery.h"
#include "store/space_pages.h"

namespace mdfs::store {

// Addresses of all copies of a node that is to be written.
struct NodePlace {
  std::array<format::Address, MDFS_MAX_COPIES> address{};
  std::uint8_t copies = 0;
  std::span<const format::Address> places() const { return {address.data(), copies}; }
};

// The size of the tree in memory.
struct TreeSize {
  std::uint64_t nodes = 0;
  std::uint64_t changed = 0;  // of these: to be written by the next commit
  std::uint16_t level = 0;
};

// States of a block: free -> taken (allocate) -> published (by a transaction) -> pending free -> free. A block that
// generation g frees is free again when generation g + kFallbackRoots is on the disks.
// Nodes: every changed node gets a place in the pool before the change takes effect, so that a commit never lacks
// space. Space also keeps nodes for growth of the tree by reservations. It keeps more for publishing and freeing: both
// change nodes, whose old places are free only two commits later. These kept nodes lie in the free part of the metadata
// regions. Where that is too small, Space takes places beyond the regions (`far`) in time, since data leave no
// contiguous blocks behind.
// Any thread may call any method. One mutex guards all, and is never held during I/O. Below the tree's lock in the
// order.
class Space {
 public:
  static constexpr std::uint64_t kFallbackRoots = 1;
  static constexpr std::size_t kPublishedRunsLimit = 1024;
  // Blocks that one of so many last commits had in use are not discarded, though they may be overwritten. The number is
  // that of the generations in a ring of slots.
  static constexpr std::uint64_t kKeptCommits = MDFS_RING_SLOTS / 2;
  static constexpr std::size_t kDiscardableLimit = 16384;   // runs
  static constexpr std::uint64_t kHeldShare = 8;            // at most this part of the data blocks waits for holds
  static constexpr std::uint64_t kLoadedPagesLimit = 1024;  // of all disks: 8 KiB each

  // Reads index pages of the healthy disks; other disks have no space. `members` may have more entries than the commit
  // has disks. Entries never move, and are filled in when disks are added. The caller reports the tree with
  // note_tree(). `policy` is for requests that have none.
  Space(std::vector<MemberDisk>& members, const format::CommitSlot& slot, std::uint32_t block_size, std::uint64_t seed,
        geometry::AllocationPolicy policy);
  Space(const Space&) = delete;

  // ---- members; the caller keeps commits and transactions away
  // The disk is in `members`, its space pages are blank, and its top page is `top`.
  Status add_disk(std::uint16_t disk, const format::SpaceEntry& top);
  // The disk holds nothing or is absent. kNotEmpty: it holds blocks.
  Status remove_disk(std::uint16_t disk);
  // Stops allocation on the disk, or allows it again. kNoSpace: the other disks have too little space for its blocks;
  // `missing_blocks`, unless null, is how much they lack. Nothing changes then.
  Status set_avoided(std::uint16_t disk, bool avoided, std::uint64_t* missing_blocks);
  std::uint64_t used_blocks(std::uint16_t disk) const;
  // The disk failed, and commits continue without it: from now on it gets no blocks, no data on it are published, and
  // its map is not changed. `top` is its top page in the last commit that it took part in. May be called at any time.
  void leave_out(std::uint16_t disk, const format::SpaceEntry& top);
  // Called before a commit, under the lock of transactions: places for nodes on disks that were left out since are
  // replaced, as far as there is room.
  void renew_places();

  // Called before the first allocation: blocks that the commit of this generation, found by the mount, had freed wait
  // for the next commit. nullopt: these blocks are unknown, and nothing is allocated before that commit.
  void keep_fallback(std::uint64_t generation, const std::optional<std::vector<Run>>& freed);
  bool gives_out() const;

  // Keeps room to store data with second copies twice again without any so many disks, lost ones included (spare.h).
  void set_spare_disks(unsigned disks);
  // Members::note_rebuilt().
  void note_rebuilt(std::uint64_t disks);
  // Members have changed.
  void count_again();

  // ---- another size of a disk (space_resize.cc); the caller keeps commits and transactions away
  // Allocates no blocks behind the end of the disk in this layout; its own layout lifts the limit. kNoSpace as in
  // set_avoided(). kCorrupt: a bitmap page at one of the two ends is damaged.
  Status set_end(std::uint16_t disk, const format::DiskLayout& layout, std::uint64_t* missing_blocks);
  // Blocks behind that end that are in use or pending free.
  std::uint64_t used_behind(std::uint16_t disk) const;
  // kNotEmpty unless set_end() has set the end of that smaller disk, and no block behind it is in use or pending free.
  Status check_empty_behind(std::uint16_t disk, const format::DiskLayout& smaller) const;
  // True if a copy of the node lies on an avoided disk, or behind the end.
  bool must_move(std::uint16_t disk, const format::Pointer& node) const;
  // True if the node has fewer copies, or copies on fewer disks, than a new one gets. It was written when there were
  // fewer disks, or while disks were full.
  bool is_crowded(const format::Pointer& node) const;
  // Sets the size of the disk. Larger: `new_bitmaps` are the new pages, blank and on the disk; the blocks of the old
  // label areas are taken until free_labels(). Smaller: kNotEmpty if blocks behind set_end() are in use.
  Status resize(std::uint16_t disk, const format::DiskLayout& layout,
                const std::vector<format::SpaceEntry>& new_bitmaps);
  void free_labels(std::uint16_t disk, const format::DiskLayout& old);

  // `reserved` of the blocks come out of a reservation. kNoSpace: no such run now; pending_free() tells whether commits
  // may help.
  Result<Run> allocate(const AllocationRequest& request, std::uint64_t reserved);
  void abandon(const Run& run);
  Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep);
  void thaw_range(const Run& range);
  bool reserve_run(const Run& place);
  void release_run(const Run& place);
  bool is_free(const Run& run);
  // BlockHold: keeps these blocks from becoming free until the hold is dropped or broken. At most an eighth of the data
  // blocks wait like this; beyond that the oldest holds are broken. Blocks of a disk that is being drained do not wait.
  std::shared_ptr<const HeldBlocks::State> hold(std::vector<Run> runs);
  void drop_hold(const HeldBlocks::State& hold);
  // Breaks the holds for which blocks wait; false if there are none.
  bool break_holds();
  void release_preallocations(std::uint64_t owner);
  // kNoSpace: there is not enough space to reserve.
  Status reserve(const SpaceAmount& amount, Purpose purpose);
  void give_back(const SpaceAmount& amount);
  std::uint64_t pending_free() const;
  SpaceInfo info() const;
  std::vector<std::uint64_t> free_of_disks() const;
  // Fills in the fields about space.
  void describe(std::size_t disk, DiskInfo& info) const;
  // kBusy: pages have to be read, and `answers` says that the disk does not.
  Result<std::vector<ZoneUse>> zone_use(unsigned disk, std::uint64_t first, std::size_t count,
                                        const std::function<bool()>& answers);

  // Makes sure that there are places for so many nodes; may use the part of `reserved` for the tree. kNoSpace: there
  // are not enough.
  Status fill_pool(std::size_t nodes, Purpose purpose, const SpaceAmount& reserved);
  std::size_t places() const;  // in the pool
  // True if all kept nodes have space in the metadata regions, and some nodes more: now, or when pending free blocks
  // are free.
  enum class When : std::uint8_t { kNow, kSoon };
  bool has_room_at_home(When when) const;
  // Called after each change of the tree. Returns unneeded places of the pool.
  void note_tree(const TreeSize& tree);
  // Loads the bitmap pages of these runs, and keeps them in memory until unpin(). Skips runs on missing disks.
  void pin(std::span<const Run> runs);
  void unpin(std::span<const Run> runs);
  // Checks the runs of a transaction, which must be pinned. kCorrupt names the first wrong run.
  Status check(std::span<const Run> published, std::span<const Run> freed) const;
  // Runs that are checked and pinned.
  void publish(std::span<const Run> runs, const PublishedData& data);
  enum class Holds : std::uint8_t { kData, kNodes };
  void free(std::span<const Run> runs, Holds holds = Holds::kData);

  // The calls of a commit, in this order. No other call comes between take_place() and seal().
  NodePlace take_place();  // published at once; the pool was filled
  // Adds changed space pages to `writes` and top pages to `tops`. Blocks that were freed since the last seal wait for
  // `generation`.
  void seal(std::uint64_t generation, std::vector<SectorWrite>& writes, std::vector<format::SpaceEntry>& tops);
  // The runs published since the last call, without nodes; nothing if there are very many.
  std::optional<std::vector<Run>> take_published();
  // Of all runs published since the last call.
  PublishedData take_published_data();
  // Do disks that were left out have data of these that the others lack?
  bool loses(const PublishedData& data) const;
  // The sealed generation is on the disks. Returns the runs that may be reused; they are free after release().
  std::vector<Run> note_committed(std::uint64_t generation);
  // The commit that was sealed with the generation `from` was begun again, and has the generation `to`.
  void renumber(std::uint64_t from, std::uint64_t to);
  void release(std::span<const Run> runs);

  // ---- discards (space_discard.cc). Blocks are taken while their disk discards them; an allocation that finds no
  // other space waits for that. The caller keeps changes of members away.
  // Takes the next run to discard from holes of at least `smallest` blocks before block `end`: at most `most` blocks,
  // and an eighth of the free ones. Leaves out reserved blocks, and blocks in use in one of the last kKeptCommits
  // commits. Nothing if there is none before the end, to which the position then moves.
  std::optional<Run> begin_discard(std::uint16_t disk, DiscardPosition& position, std::uint64_t end,
                                   std::uint64_t smallest, std::uint32_t most);
  void end_discard(const Run& run);
  // Called before some discards are begun, while none is in progress, so that threads that wait for blocks come first.
  // While there are any, begin_discard() returns nothing and leaves the position.
  void let_waiters_go();
  // True once the blocks in use in the last commits are known: this mount has made enough commits, and none freed very
  // many runs.
  bool may_discard() const;
  // True if commits are needed before blocks that have been freed before this call may be discarded.
  bool wants_commits_to_discard() const;
  // Runs of at least so many blocks that have become ready to be discarded since the last call.
  std::vector<Run> take_discardable(std::uint64_t smallest);
  // Starts or stops collecting runs for take_discardable().
  void collect_discardable(bool wanted);

  // The place and checksum of a page; nothing if they are unknown.
  std::optional<format::SpaceEntry> page_entry(unsigned disk, format::SpacePage page) const;
  // Makes the next commit write the page from memory; false if it is not in memory.
  bool rewrite_page(unsigned disk, format::SpacePage page);

  // True if a copy lies beyond the metadata regions.
  bool is_far(const NodePlace& place) const;
  // Runs of the copies of a node.
  std::vector<Run> runs_of(std::span<const format::Address> places) const;

 private:
  struct PendingFree {
    std::uint64_t generation = 0;
    std::vector<Run> runs;
  };

  // Loads the page, and up to `ahead` pages behind it, in one request. Loaded pages stay as they are.
  void load_page(std::uint16_t disk, std::uint64_t page, std::uint64_t ahead = 0);
  void install(std::uint16_t disk, std::uint64_t page, const Status& status, ConstBytes bytes);
  bool valid(const Run& run) const;               // lies on a disk of the volume
  alloc::SpaceMap* map_of(const Run& run) const;  // null: missing disk or damaged page
  alloc::Answer allocate_once(const AllocationRequest& request);
  // Lines for the log after this answer.
  std::vector<std::string> note_allocation(const AllocationRequest& request, const Run& run);
  void add_pending_free(const Run& run);    // counts the run as pending free; mutex_ is held
  std::uint64_t pending_free_data() const;  // in all
  void count_disks();                       // recounts after disks became usable or not
  bool takes_data(std::size_t disk) const { return disk >= MDFS_MAX_DISKS || (without_data_ >> disk & 1) == 0; }
  // The disks in the order in which they get the next copy of a node: those for tree nodes alone come first.
  std::vector<std::uint16_t> disks_for_copy(const NodePlace& place) const;
  // If no disk is left but those that are being drained, these get blocks again. Called with mutex_.
  void use_drained_if_alone();
  // Loads the pages at the end of the smaller of the disk's layout and this one, and keeps them in memory.
  Status pin_edge(std::uint16_t disk, const format::DiskLayout& layout);
  void unpin_edge(std::uint16_t disk, const format::DiskLayout& layout);
  Status empty_behind(std::uint16_t disk, const format::DiskLayout& smaller) const;  // with mutex_
  bool is_behind_end(const Run& run) const;
  // Replaces all places in the pool.
  Status refill_pool(std::unique_lock<std::mutex>& lock);
  enum class Where : std::uint8_t { kHome, kFar, kAnywhere };
  // Takes one more run for the place, if possible on a disk that has none of its copies.
  alloc::Answer extend_place(NodePlace& place, Purpose purpose, Where where);
  bool is_out(std::uint16_t disk) const { return disk < out_.size() && out_[disk]; }
  // Takes a place into the pool. Unlocks while a bitmap page is loaded.
  Status take_into_pool(std::unique_lock<std::mutex>& lock, Purpose purpose, Where where);
  // Takes far places until `kept` nodes have space, beside `nodes` that are to be written.
  Status keep_room(std::unique_lock<std::mutex>& lock, std::uint64_t nodes, std::uint64_t kept, Purpose purpose);
  void release_place(const NodePlace& place);
  void release_locked(std::span<const Run> runs);  // mutex_ is held
  // Waits for the discards in progress; false if there are none (of these blocks).
  bool wait_for_discards(std::unique_lock<std::mutex>& lock, const AllocationRequest* request = nullptr);
  bool knows_recent() const { return commits_ + 1 >= kKeptCommits && generation_ >= no_discard_before_; }
  std::uint64_t discarding_blocks(std::uint16_t disk, alloc::BlockRange range) const;
  std::uint64_t discarding_data() const;  // in all
  // The first part of a free run of one bitmap page that no recent commit had in use.
  Run discardable_part(const Run& run, std::uint64_t smallest) const;
  // Releases unneeded far places, and replaces those that could lie in the metadata regions.
  void trim();
  std::uint64_t home_nodes(
      std::uint64_t more_blocks = 0) const;  // that fit into the free blocks of the metadata regions
  // The nodes that a purpose leaves alone, where `own` is among the reservations.
  std::uint64_t kept_nodes(Purpose purpose, const SpaceAmount& own = {}) const;
  std::uint64_t missing_nodes(std::uint64_t home) const;  // kept for kNormal, but without space
  std::uint64_t place_blocks() const { return node_blocks_ * copies_; }
  // Blocks that the free ones can store twice, each on two disks. Without a second disk null: writes go without.
  std::optional<std::uint64_t> pairs(bool with_pending) const;
  std::uint64_t free_data(std::size_t disk) const;  // that can be given out now
  // Blocks that are kept for working, beside those that are reserved.
  std::uint64_t kept_data(Purpose purpose) const;
  // Free data blocks that are not reserved and that the purpose may take.
  std::uint64_t data_for(Purpose purpose) const;
  // For messages: what data_for() leaves out beside.
  std::string beside_spare(Purpose purpose) const;
  void shrink();

  const std::vector<MemberDisk>& members_;
  std::uint32_t block_size_;
  std::uint64_t node_blocks_;
  const geometry::AllocationPolicy policy_;

  mutable std::mutex mutex_;  // guards all below
  unsigned copies_ = 2;
  std::vector<std::uint16_t> node_disks_;  // usable ones
  std::uint64_t without_data_ = 0;         // the disks for tree nodes alone, a bit each
  std::vector<bool> out_;                  // see leave_out()
  bool places_on_out_ = false;             // perhaps, in the pool
  std::unique_ptr<alloc::Allocator> allocator_;
  std::vector<std::unique_ptr<SpaceIndex>> index_;  // null: missing disk
  Fullness fullness_;
  std::vector<format::SpaceEntry> tops_;
  std::uint64_t total_data_ = 0;
  std::uint64_t total_metadata_ = 0;
  std::uint64_t data_reserve_ = 0;
  unsigned spare_disks_ = 0;   // see set_spare_disks()
  std::uint64_t rebuilt_ = 0;  // lost disks whose pieces have been made anew, a bit each
  bool is_rebuilt_ = true;     // all lost disks are
  std::uint64_t spare_ = 0;    // blocks that stay free for them
  SpaceAmount reserved_;
  std::uint64_t pending_free_ = 0;
  std::vector<std::uint64_t> pending_free_data_;  // of these, outside of the metadata regions: by disk
  std::uint64_t published_node_blocks_ = 0;
  TreeSize tree_;
  bool all_healthy_ = true;
  std::deque<NodePlace> pool_;  // taken, not published; in the metadata regions
  std::deque<NodePlace> far_;   // the same with a copy beyond the regions: used last
  std::size_t rotation_ = 0;
  std::vector<Run> published_;  // since the last seal; not complete beyond kPublishedRunsLimit
  PublishedData published_data_;
  std::vector<Run> freeing_;  // freed since the last seal
  std::deque<PendingFree> pending_;
  bool knows_freed_ = true;  // see keep_fallback()
  HeldBlocks held_;
  RecentlyFreed recent_;
  std::uint64_t no_discard_before_ = 0;  // generation; before it more was freed than is remembered
  std::uint64_t commits_ = 0;            // of this mount
  std::uint64_t generation_ = 0;         // of the last commit
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
