// The store itself: one tree, its space, and the commits of both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/stoppable_reads.h"
#include "store/commit.h"
#include "store/disk_slot.h"
#include "store/reader.h"
#include "store/recovery.h"
#include "store/space.h"
#include "store/store.h"
#include "store/transaction.h"
#include "store/verifier.h"

namespace mdfs::store {

// Locks, outermost first: writer_, SharedTree::mutex, the mutexes of Space and NodeCache. commit_mutex_ is held for
// moments, with or without writer_. writer_ is recursive, because a transaction that finds no space commits earlier
// changes from inside. A thread that leads a commit has released writer_ before it writes.
class StoreImpl final : public Store, public Verifier {
 public:
  StoreImpl(Recovered recovered, const StoreOptions& options, Environment& environment);
  // Reads the root. The error names the damage.
  Status check_root();
  void set_read_only(std::string reason);
  // Called before the store writes: keeps the commit before the recovered one readable until the next commit. Recovery
  // is complete, or begin_writing() completes it.
  void prepare_writing();

  const Uuid& volume_uuid() const override { return label_.volume_uuid; }
  std::string volume_name() const override { return label_.name; }
  std::uint32_t block_size() const override { return label_.block_size; }
  geometry::AllocationPolicy policy() const override { return policy_; }
  std::uint64_t features_incompat() const override { return features_.incompat | added_incompat_; }
  std::uint64_t features_ro_compat() const override { return features_.ro_compat | added_ro_compat_; }
  void add_features_incompat(std::uint64_t bits) override { added_incompat_ |= bits; }
  void add_features_ro_compat(std::uint64_t bits) override { added_ro_compat_ |= bits; }
  std::uint64_t generation() const override { return generation_; }
  bool read_only() const override { return read_only_; }
  std::string read_only_reason() const override;
  bool has_failed() const override;
  unsigned disk_count() const override { return disk_count_; }
  DiskInfo disk_info(unsigned index) const override;
  Status examine_disks() override;
  std::uint64_t room_below(unsigned index) override { return disk_slot(index).room_bytes(); }
  device::Disk& disk(unsigned index) override { return *members_[index].disk; }

  using Store::reserve;
  using Store::transact;
  Result<std::optional<ByteVector>> get(const Key& key) override;
  Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) override;
  Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change,
                  const Reservation* reservation) override;
  Status commit() override;
  unsigned waiting_for_commit() const override;
  Status finalize() override;
  bool wait_for_unfinalized(std::chrono::nanoseconds idle) override;
  void stop_waiting() override;
  bool dirty() const override;
  bool has_committed() const override { return has_committed_; }
  bool holds_still() const override { return awaits_disks_ && !has_committed_; }
  // Called before any write to a disk of the store, and before blocks are allocated for one. Completes recovery if that
  // waits because of an absent disk. An error makes the store read-only.
  Status begin_writing();

  Result<Run> allocate(const AllocationRequest& request, Reservation* reservation) override;
  void abandon(const Run& run) override { space_.abandon(run); }
  Result<Run> freeze_range(unsigned disk, std::uint32_t blocks, const std::vector<Run>& keep) override {
    return space_.freeze_range(disk, blocks, keep);
  }
  void thaw_range(const Run& range) override { space_.thaw_range(range); }
  bool reserve_run(const Run& place) override { return space_.reserve_run(place); }
  void release_run(const Run& place) override { space_.release_run(place); }
  std::shared_ptr<BlockHold> hold(std::vector<Run> runs) override;
  bool is_free(const Run& run) override { return !read_only_ && space_.is_free(run); }
  Status commit_freed() override;
  void release_preallocations(std::uint64_t owner) override { space_.release_preallocations(owner); }
  Result<Reservation> reserve(const SpaceAmount& amount, Purpose purpose) override;
  SpaceInfo space() const override;
  std::vector<std::uint64_t> free_of_disks() const override { return space_.free_of_disks(); }
  Result<std::vector<ZoneUse>> zone_use(unsigned disk, std::uint64_t first, std::size_t count) override;

  // store_discard.cc
  Status commit_discardable() override;
  Status trim_some(std::vector<DiskTrim>& disks, std::uint64_t smallest_blocks) override;
  void set_discard(bool wanted) override;
  bool discard_freed() override;

  void keep_schedules(bool wanted) override;
  void note_trial(unsigned disk, double ns_per_byte) override;
  void hurry(const alloc::Run& run, const device::Urgency& urgency) override;
  device::DiskCounters* counters(unsigned index) override { return members_[index].disk->counters(); }

  // store_verify.cc
  Verifier* verifier() override { return this; }
  Status verify_labels(unsigned disk, bool repair, format::OperationRecord& record) override;
  std::uint64_t space_pages(unsigned disk) const override;
  Status verify_space(unsigned disk, std::uint64_t first, std::uint64_t count, bool repair,
                      format::OperationRecord& record) override;
  Result<std::optional<Key>> verify_nodes(const Key& from, bool repair, format::OperationRecord& record) override;
  std::optional<Key> next_leaf(const Key& key) override { return TreeReader(shared_).nodes_from(key, 1).next; }

  Result<std::vector<unsigned>> add_disks(std::vector<JoiningDisk> disks) override;
  Status set_weight(unsigned index, std::uint16_t weight) override;
  void set_spare_disks(unsigned disks) override { space_.set_spare_disks(disks); }
  void note_rebuilt(std::uint64_t disks) override { space_.note_rebuilt(disks); }
  Status set_draining(unsigned index, bool draining, std::uint64_t* missing_blocks) override;
  std::uint64_t used_blocks(unsigned index) const override;
  Result<bool> move_nodes_off(unsigned index, NodePosition& at) override;
  Result<bool> spread_nodes() override;
  bool wants_spread() const override;
  Status remove_disk(unsigned index) override;

  // store_resize.cc
  Result<SizeRange> size_range(unsigned index) override;
  Status set_disk_end(unsigned index, std::uint64_t blocks, std::uint64_t* missing_blocks) override;
  std::uint64_t used_behind_end(unsigned index) const override;
  Status resize_disk(unsigned index, std::uint64_t blocks) override;

 protected:
  void give_back(const SpaceAmount& amount) override { space_.give_back(amount); }

 private:
  // writer_ is held in these:
  Status prepare(TransactionImpl& transaction, Purpose purpose, const SpaceAmount& reserved);
  Status find_room(TransactionImpl& transaction, Purpose purpose, const SpaceAmount& reserved);
  void note_tree();  // reports its size to the space
  void apply(TransactionImpl& transaction);
  Status check_room_below();
  Status prepare_commit();
  void rewrite_bad_copies();
  void bring_nodes_home();
  bool repairs_itself() const;  // true if a commit has something to write without any change
  // Makes the commit rewrite the node, if it is still there and space suffices.
  enum class Rewrite : std::uint8_t { kDone, kNotThere, kNoRoom };
  Rewrite rewrite(const Key& key, std::uint16_t level, const format::Pointer& pointer);
  // Rewrites about kNodesAtOnce nodes whose pointers pass the test, commits, and advances `at`. True when there are
  // none left. kNoSpace: there is no space for a single one.
  Result<bool> rewrite_nodes(const Tree::PointerTest& test, NodePosition& at);
  void free_nodes();
  // The kind of a commit. A change of members has no checksum records (FORMAT.md 4.2).
  enum class Change : std::uint8_t { kContents, kMembers };
  SealedCommit seal(Change change);
  // Records of the data that the commit publishes, if they are known and the commit changes contents only. Called once
  // for each commit.
  std::optional<std::vector<format::ChecksumRecord>> list_checksum_records(const SealedCommit& sealed, Change change);
  Status write_committed_slots();  // called by the leader of a commit, or while there is none
  // Of the next commit. Its slots do not take the place of the last commit's slots.
  std::uint64_t next_generation() const;
  std::uint64_t take_generation();

  // ---- disks that fail (store_failing.cc); called by the leader of a commit, or while there is none
  struct Failing;
  std::vector<Participant> participants_in(std::uint64_t disks) const;
  // Writes the commit. If disks fail, it is withdrawn and begun again with another generation, perhaps without them;
  // `sealed.slot` is then another one. After success `unmarked` are the disks that the commit was finalized without,
  // and that its table does not mark as out.
  Status write_sealed(SealedCommit& sealed, std::uint64_t& unmarked);
  Status finalize_last(const format::CommitSlot& slot);
  // Finalizes a valid commit on the disks that work.
  Status finalize_where_possible(const format::CommitSlot& slot, Failing& failing);
  // Removes the slots of the commit from the disks that work, until that succeeds on all of these. kIo: too few.
  Status withdraw(const format::CommitSlot& slot, const format::CommitSlot& parent, std::uint64_t present,
                  Failing& failing);
  bool may_lose(const SealedCommit& sealed, const Failing& failing);
  // Writes a commit with the contents of the last one, in which these disks are marked as out. The caller notes it.
  Result<SealedCommit> write_marks(std::uint64_t failed);
  // The same, for a last commit that is durable without these disks.
  Status mark_out(std::uint64_t failed);
  // Stops writing to the disks that the durable commit `slot` has newly marked.
  void note_out(const format::CommitSlot& slot, const format::CommitSlot& parent);
  // Called with writer_, while no commit is in progress: enters disks that are out into the table of members.
  void take_over_out();
  // kNotEmpty once for a disk that failed in this mount: a caller that drains it examines all objects once more, as for
  // an absent disk.
  Status check_walked(unsigned index);

  // Returns when transaction `sequence` is on the disks; `forced`: after at least one more commit.
  Status commit_until(std::uint64_t sequence, bool forced);
  Status commit_pending_free();  // commit_freed(), also while a disk is missing: for a caller that lacks space
  Status lead_commit(std::unique_lock<std::recursive_mutex>& writer, Change change);
  void note_committed(const SealedCommit& sealed);
  void fail(const Error& error, std::uint64_t generation);
  Status read_only_error() const;
  // Runs `work` while no transaction and no commit is in progress, and the last commit is finalized: the disks then
  // equal the state in memory.
  Status at_rest(const std::function<Status()>& work);
  std::vector<unsigned> bad_labels(unsigned disk, DiskLabels& found) const;
  Status check_space_page(unsigned disk, format::SpacePage page, const format::SpaceEntry& entry,
                          ConstBytes bytes) const;
  Status read_space_page(unsigned disk, format::SpacePage page);
  bool still_holds(const NodeWanted& node);
  void count_repaired(unsigned disk);

  // ---- discards (store_discard.cc); members_mutex_ is held in these
  struct Discard {
    Run run;
    Status status;
  };
  // Discards all at once, and frees the blocks afterwards.
  void discard(std::vector<Discard>& discards);
  void discard_freed(const Run& freed);
  std::uint64_t smallest_discard() const;  // blocks
  std::uint32_t largest_discard() const;

  // ---- members (store_members.cc); members_mutex_ is held in these
  struct Formatted {
    format::Label label;
    format::SpaceEntry top;
    unsigned index = 0;
  };
  std::vector<format::Member> table() const;
  Status check_member(unsigned index) const;
  format::DiskLayout layout(unsigned index) const;  // of a present member
  Status check_membership() const;                  // kReadOnly: the membership number is at its limit
  Result<std::vector<Formatted>> format_new(const std::vector<JoiningDisk>& disks, std::vector<format::Member>& table);
  // Leads one commit with `change`, which is called with writer_ held. A failure of `change` changes nothing.
  Status commit_members(const std::function<Status()>& change);
  // Writes all labels of healthy disks with this table. The next mount repairs labels that fail.
  void write_tables(const std::vector<format::Member>& table, std::uint32_t membership);
  std::vector<LabelWrite> labels_with(const std::vector<format::Member>& table, std::uint32_t membership) const;

  // ---- another size (store_resize.cc); members_mutex_ is held in these
  Status check_size(unsigned index, std::uint64_t blocks);
  Result<std::vector<format::SpaceEntry>> write_new_bitmaps(unsigned index, const format::DiskLayout& layout);
  Status take_label_room(unsigned index, const format::DiskLayout& wanted);
  Status move_labels_of(unsigned index, const format::DiskLayout& old);

  DiskSlot& disk_slot(unsigned index) { return static_cast<DiskSlot&>(*members_[index].disk); }
  Participant participant(unsigned index);  // of a healthy member
  // Within a second, be it with an error.
  bool answers(unsigned index);
  // Copies of tree nodes on disks for them alone are read first.
  void prefer_node_disks();
  bool is_healthy(unsigned index) const;  // false without such a disk; takes table_mutex_

  Environment& environment_;
  const StoreOptions options_;
  const format::Label label_;
  const geometry::AllocationPolicy policy_;
  const bool awaits_disks_;    // see Recovered::holds_still()
  const CommitDamage damage_;  // for begin_writing()
  std::mutex recovery_mutex_;  // of begin_writing(); only commit_mutex_ is taken inside
  // One entry for each possible index. Entries never move, and each disk is a DiskSlot. State and table entry are
  // changed under writer_ and table_mutex_, and read under one of them.
  std::vector<MemberDisk> members_;
  std::atomic<unsigned> disk_count_;  // the table has so many entries, unused ones included
  mutable std::mutex table_mutex_;
  std::mutex members_mutex_;         // one change of members at a time; outermost
  const format::Features features_;  // as they were found
  std::atomic<std::uint64_t> added_ro_compat_{0};
  std::atomic<std::uint64_t> added_incompat_{0};
  std::uint32_t membership_;               // guarded by writer_
  std::vector<Participant> participants_;  // changed by the leader of a commit, under writer_
  SharedTree shared_;
  device::StoppableReads trial_reads_;
  Space space_;

  // spread_nodes(): taken before writer_
  std::mutex spread_mutex_;  // guards spread_at_
  NodePosition spread_at_;
  std::atomic<bool> spread_wanted_{true};
  std::atomic<bool> spread_again_{false};  // disks were added since it began

  mutable std::recursive_mutex writer_;         // transactions run one after another; guards the four below
  std::vector<format::Pointer> replaced_;       // nodes that left the tree since the last seal
  std::atomic<std::uint64_t> next_generation_;  // taken by leaders, also without writer_
  bool in_transaction_ = false;
  // Nodes of this mount that lie beyond the full metadata regions, up to a bound.
  struct FarNode {
    Key key;
    std::uint16_t level = 0;
    format::Pointer pointer;
  };
  static constexpr std::size_t kMaxFarNodes = 4096;
  std::vector<FarNode> far_nodes_;
  std::atomic<bool> has_far_nodes_{false};

  std::atomic<std::uint64_t> next_object_;
  std::atomic<std::uint64_t> objects_;
  std::atomic<std::uint64_t> generation_;
  std::atomic<std::uint64_t> applied_{0};  // transactions that took effect
  std::atomic<bool> read_only_{false};
  std::atomic<bool> recovery_waits_{false};         // for begin_writing()
  std::atomic<bool> has_committed_{false};          // since open()
  std::atomic<bool> discards_freed_{false};         // see set_discard()
  std::atomic<std::uint64_t> refuses_discards_{0};  // disks that refused discards since set_discard(), a bit each

  mutable std::mutex commit_mutex_;  // guards all below
  std::condition_variable committed_;
  bool in_flight_ = false;
  unsigned waiting_ = 0;  // in commit()
  bool failed_ = false;
  bool stop_waiting_ = false;
  bool has_discardable_ = false;
  std::uint64_t durable_ = 0;        // transactions on the disks
  std::uint64_t begun_commits_ = 0;  // of this mount
  std::uint64_t ended_commits_ = 0;  // all those begun so far, but for the one in flight
  format::CommitSlot last_commit_;
  std::optional<format::CommitSlot> unfinalized_;  // the last commit, if only its checksum records validate it
  std::uint64_t unwalked_out_ = 0;                 // disks that failed, a bit each: see remove_disk()
  std::uint64_t newly_out_ = 0;                    // disks, a bit each: for take_over_out()
  std::string read_only_reason_;
};

}  // namespace mdfs::store
