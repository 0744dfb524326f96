// The implementation of Volume, with a file for each topic: names, rename, directory, attributes, xattr, data, space
// (fallocate and similar), images, orphans, background.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/task_pool.h"
#include "format/inode.h"
#include "volume/acl.h"
#include "volume/automatic_rebuild.h"
#include "volume/disk_statistics.h"
#include "volume/inode_table.h"
#include "volume/level_use.h"
#include "volume/maintained_volume.h"
#include "volume/open_objects.h"
#include "volume/operations.h"
#include "volume/placements.h"
#include "volume/records.h"
#include "volume/volume.h"

namespace mdfs::volume {

// A change of the tree: one transaction made by change(), which takes ids and times. The result of an operation
// therefore follows from its arguments, its Change and the tree.
struct Change {
  store::Transaction& transaction;
  std::int64_t now_ns;
};

// Long work waits while one exists (MaintainedVolume::readers).
// Counts a call as a reader while the object lives. Operations pause beside readers.
class Reading {
 public:
  explicit Reading(std::atomic<unsigned>& readers) : readers_(readers) { ++readers_; }
  ~Reading() { --readers_; }
  Reading(const Reading&) = delete;

 private:
  std::atomic<unsigned>& readers_;
};

// The one implementation of Volume: names, attributes, images and levels on a store and an engine, which it owns. Any
// thread, unless a member says otherwise.
class VolumeImpl final : public MaintainedVolume {
 public:
  VolumeImpl(std::unique_ptr<store::Store> store, std::unique_ptr<engine::Engine> engine, const VolumeOptions& options,
             Environment& environment, const MakeOperations& make_operations);
  ~VolumeImpl() override;
  // Finds the orphans of the last mount and starts the background threads. Without threads, frees the orphans.
  Status start();

  Status close() override;
  store::Store& store() override { return *store_; }
  engine::Engine& engine() override { return *engine_; }
  void set_change_listener(ChangeListener listener) override;
  void set_privileges_listener(PrivilegesListener listener) override;

  Result<Attributes> lookup(Ino parent, std::string_view name) override;
  void forget(Ino ino, std::uint64_t lookups) override;
  Result<Attributes> make_node(Ino parent, std::string_view name, mode_t mode, std::uint64_t device,
                               const Caller& caller) override;
  Result<Attributes> make_directory(Ino parent, std::string_view name, mode_t mode, const Caller& caller) override;
  Result<Attributes> make_symlink(Ino parent, std::string_view name, std::string_view target,
                                  const Caller& caller) override;
  Result<Attributes> link(Ino ino, Ino new_parent, std::string_view new_name) override;
  Status unlink(Ino parent, std::string_view name) override;
  Status remove_directory(Ino parent, std::string_view name) override;
  Status rename(Ino parent, std::string_view name, Ino new_parent, std::string_view new_name, RenameMode mode) override;
  Result<std::string> read_symlink(Ino ino) override;
  Result<std::vector<DirectoryEntry>> read_directory(Ino directory, std::uint64_t cookie, std::size_t limit) override;

  Result<Attributes> attributes(Ino ino) override;
  Result<Attributes> set_attributes(Ino ino, const SetAttributes& change) override;
  Status drop_privileges(Ino ino, const std::function<Caller()>& caller) override;
  Status check_access(Ino ino, int mask, const Caller& caller) override;
  Status set_xattr(Ino ino, std::string_view name, ConstBytes value, XattrMode mode) override;
  Status set_access_acl(Ino ino, ConstBytes value, const Caller& caller) override;
  Result<ByteVector> get_xattr(Ino ino, std::string_view name) override;
  Result<std::vector<std::string>> list_xattrs(Ino ino) override;
  Status remove_xattr(Ino ino, std::string_view name) override;

  Status open_file(Ino ino, bool truncate) override;
  void release_file(Ino ino) override;
  using Volume::read, Volume::write, Volume::copy_range, Volume::read_window;
  Result<std::size_t> read(Ino ino, std::uint64_t offset, MutableBytes into, const engine::Stop& stop) override;
  Result<std::size_t> write(Ino ino, std::uint64_t offset, ConstBytes from, bool append,
                            const engine::Stop& stop) override;
  using Volume::allocate;
  Status allocate(Ino ino, int mode, std::uint64_t offset, std::uint64_t length, const engine::Stop& stop) override;
  Result<std::uint64_t> seek(Ino ino, std::uint64_t offset, int whence) override;
  Result<std::size_t> copy_range(Ino from, std::uint64_t from_offset, Ino to, std::uint64_t to_offset,
                                 std::size_t length, const engine::Stop& stop) override;
  Status fsync(Ino ino, bool data_only) override;
  Status sync() override;

  Status make_image(Ino ino, const ImageOptions& options) override;
  Status become_image(Ino ino, const ImageOptions& options, const engine::Stop& stop) override;
  Result<ImageInfo> image_info(Ino ino) override;
  Result<geometry::Geometry> image_geometry(Ino ino) override;
  Result<LayoutPage> layout(Ino ino, const engine::LayoutCursor& from, std::size_t most,
                            const engine::Stop& stop) override;
  Result<engine::MoveOutcome> move_data(Ino ino, const engine::MoveRequest& request) override;
  using Volume::fragmentation;
  Result<bool> is_written(Ino ino, const geometry::Coord& extent) override;
  Result<std::vector<std::uint64_t>> written_in_row(Ino ino, const geometry::Coord& from, std::size_t most,
                                                    const engine::Stop& stop) override;
  Result<layout::Fragmentation> fragmentation(Ino ino, const engine::Stop& stop) override;
  using Volume::volume_fragmentation;
  Result<LostFiles> lost_files(Ino from, std::size_t most, const engine::Stop& stop) override;
  Result<VolumeFragmentation> volume_fragmentation(const engine::Stop& stop) override;
  Result<std::uint64_t> consolidate(Ino ino, std::uint64_t most_bytes, bool all) override;
  Status start_window(Ino ino, const geometry::Window& window) override;
  Status read_window(Ino ino, const geometry::Window& window, std::uint64_t offset, MutableBytes into,
                     const engine::Stop& stop) override;
  Result<bool> read_cached_window(Ino ino, const geometry::Window& window, MutableBytes into,
                                  const engine::ReadProgress& progress) override;
  Result<std::unique_ptr<PinnedWindow>> pin_window(Ino ino, const geometry::Window& window) override;
  Result<std::unique_ptr<PinnedFrame>> pin_frame(Ino ino, unsigned level, const geometry::Coord& extent,
                                                 const engine::Stop& stop) override;
  Status read_frame(Ino ino, engine::StoredFrame& frame, std::uint64_t offset, MutableBytes into,
                    const engine::Stop& stop);
  // `ino`: of the version; `image`: the same, or the image of which it is a level.
  Status read_pinned(Ino ino, Ino image, const engine::WindowVersion& version,
                     const std::function<Status(engine::Engine& engine)>& read);
  using Volume::write_window;
  Status write_window(Ino ino, const geometry::Window& window, const engine::WindowSource& from,
                      const engine::Stop& stop) override;
  Status set_levels(Ino ino, unsigned count, geometry::Reduction reduction) override;
  Result<std::pair<unsigned, geometry::Reduction>> stored_levels(Ino ino) override;
  Result<LevelsInfo> levels_info(Ino ino, const engine::Stop& stop) override;
  Result<engine::WindowPlan> plan_level(Ino ino, unsigned level, const geometry::Window& window,
                                        const engine::Stop& stop) override;
  bool build_levels(const engine::Stop& pause, const engine::Stop& stop) override;
  Result<bool> forget_level_extents(Ino object, const std::vector<std::uint64_t>& numbers) override;
  Result<bool> read_level(Ino ino, unsigned level, const geometry::Window& window, std::uint64_t offset,
                          std::uint64_t length, const LevelSink& sink, unsigned most_attempts,
                          const engine::Stop& stop) override;
  Result<std::unique_ptr<PinnedWindow>> pin_level(Ino ino, unsigned level, const geometry::Window& window,
                                                  unsigned most_attempts, const engine::Stop& stop) override;
  Result<engine::WindowPlan> plan_window(Ino ino, const geometry::Window& window, const engine::Stop& stop) override;

  Status set_protection(Ino ino, const WantedProtection& wanted) override;
  unsigned usual_group_members() const override;
  Result<Protection> protection(Ino ino, const engine::Stop& stop) override;
  Status start_protecting();
  Result<bool> repair_copies(Ino object, std::uint64_t number) override;
  std::uint64_t protection_changes() const override { return protection_changes_; }

  Status free_deleted() override;
  Result<std::vector<unsigned>> add_disks(std::vector<store::JoiningDisk> disks) override;
  Status set_disk_weight(unsigned disk, std::uint16_t weight) override;
  Status keep_disk(unsigned disk) override;
  Status set_spare_disks(unsigned disks) override;

  store::SpaceInfo space() override { return store_->space(); }
  Result<std::uint64_t> available_blocks(Ino ino) override;
  Operations& operations() override { return *operations_; }
  DiskStatistics& disk_statistics() override { return disk_statistics_; }

  // ---- for long work (maintained_volume.h)
  Environment& environment() override { return environment_; }
  Placements& placements() override { return placements_; }
  Result<std::shared_ptr<engine::OpenObject>> open_object(Ino ino) override;
  const std::atomic<unsigned>& readers() const override { return readers_; }
  void members_changed() override;
  void placements_changed() override;

  std::size_t inodes_in_memory() { return table_.size(); }  // for tests

 private:
  struct NewObject {
    mode_t mode = 0;  // type and permissions
    std::uint64_t device = 0;
    std::string_view target;  // of a symbolic link
  };
  // One end of a rename.
  struct RenameEnd {
    Ino parent = 0;
    std::string_view name;
    format::Inode directory;
    NamePlace place;
  };

  // ---- changes (volume_impl.cc)
  Status check_writable() const;
  // False while a disk is missing: reads must change nothing then, so that the disk is not stale when it comes back.
  bool keeps_atime() const;
  Status change(store::Purpose purpose, const std::function<Status(Change&)>& body);
  // Runs `attempt`. After kNoSpace gets space by reclaim(), and runs it once more.
  Status with_room(const std::function<Status()>& attempt);
  bool reclaim();

  // ---- names (names_ops.cc, rename.cc)
  Result<Attributes> make(Ino parent, std::string_view name, const NewObject& object, const Caller& caller);
  Status create_inode(Change& change, Ino ino, const format::Inode& parent, Ino parent_ino, const NewObject& object,
                      const Caller& caller, format::Inode& inode);
  void put_new_acls(Change& change, Ino ino, format::Inode& inode, const Acl& inherited, const Acl& default_acl);
  Status remove_name(Ino parent, std::string_view name, bool directory);
  // Removes a name of the inode, which becomes an orphan with the last one.
  void drop_link(Change& change, Ino ino, format::Inode& inode);
  // Holds an inode, and remembers whether it is an orphan once the transaction has succeeded.
  struct Removed {
    Pin pin;
    bool gone = false;
  };
  static void drop_removed(Removed& removed);
  Status check_rename(Change& change, const RenameEnd& from, const RenameEnd& to, RenameMode mode);
  Status check_no_loop(Change& change, Ino moved, Ino new_parent);
  Status exchange(Change& change, RenameEnd& from, RenameEnd& to);
  Status replace(Change& change, RenameEnd& from, RenameEnd& to, Removed& removed);
  Status move_object(Change& change, Ino ino, const RenameEnd& from, const RenameEnd& to);
  Status write_back_named(Ino parent, std::string_view name);

  // ---- attributes and extended attributes (attributes.cc, xattr.cc)
  Attributes compose(Ino ino, Inode* inode, const ObjectUse& use, const format::Inode& item);
  Result<Attributes> attributes_of(Inode& inode);
  void apply(const SetAttributes& change, std::int64_t now_ns, format::Inode& inode) const;
  template <typename Reader>
  Result<Acl> read_acl(Reader& reader, Ino ino, std::string_view name);
  Status set_acl(Change& change, Ino ino, format::Inode& inode, std::string_view name, ConstBytes value);
  Status set_xattr(Ino ino, std::string_view name, ConstBytes value, XattrMode mode, const Caller* caller);

  // ---- data (data.cc, space.cc)
  Result<std::size_t> write_at(Inode& inode, std::uint64_t offset, ConstBytes from, bool append,
                               const engine::Stop& stop);
  Status set_size(Ino ino, std::uint64_t size_bytes, const engine::Stop& stop);
  Status resize(Inode& inode, std::uint64_t size_bytes, bool only_grow, const engine::Stop& stop = {});
  Status zero_range(Inode& inode, std::uint64_t offset, std::uint64_t length, const engine::Stop& stop = {});
  Result<std::size_t> copy_piece(Inode& from, std::uint64_t from_offset, Inode& to, std::uint64_t to_offset,
                                 std::size_t length, ByteVector& buffer, const engine::Stop& stop);

  // ---- images (images.cc)
  // Checks that the inode is an image and the window inside it, and runs `work` while the image does not shrink.
  void tell_listener(Ino ino, std::uint64_t offset, std::uint64_t length);
  void tell_privileges_listener(Ino ino);
  Result<geometry::Geometry> current_geometry(Ino ino, const ObjectUse& use) const;
  Status with_window(Inode& inode, const geometry::Window& window,
                     const std::function<Status(engine::OpenObject&, const geometry::Geometry&)>& work);
  Status with_window_use(Inode& inode, const geometry::Window& window,
                         const std::function<Status(const ObjectUse&, const geometry::Geometry&)>& work);

  // ---- levels (levels.cc, level_build.cc, level_repair.cc)
  Status put_levels(Change& change, Ino ino, std::uint64_t size_bytes, unsigned count, geometry::Reduction reduction,
                    std::vector<Ino>& gone);
  // While it exists, the samples of an image may change: nothing above them is stored. Empty without levels.
  using LevelWrite = std::unique_ptr<LevelGuard::Write>;
  Result<LevelWrite> begin_write(Inode& inode, const ObjectUse& use, const geometry::SampleBox& box);
  // The same for bytes [offset, offset + length) of the file, which may begin behind its end.
  Result<LevelWrite> begin_write_bytes(Inode& inode, const ObjectUse& use, std::uint64_t offset, std::uint64_t length);
  // The same for a change of the size; `size_bytes`: of the file now, or after the change.
  Result<LevelWrite> begin_resize(Inode& inode, const ObjectUse& use, std::uint64_t size_bytes);
  enum class LevelState : std::uint8_t { kBuilt, kChanged, kCannotBeStored };
  struct LevelJob;      // level_job.h
  struct LevelBuffers;  // the same
  bool stores_levels() const;
  // The next calls of build_levels() work on the image.
  void queue_levels(Inode& inode, std::uint64_t from = 0);
  void note_levels_without_room(Ino ino, std::uint64_t from);
  void queue_levels_with_room();
  // From an extent of the coarsest stored level on. Returns the one that is next; nothing: all are built.
  Result<std::optional<std::uint64_t>> build_levels_of(Ino ino, std::uint64_t from, const engine::Stop& pause,
                                                       const engine::Stop& stop);
  using LevelAttempt = std::function<Result<LevelState>(LevelJob& job)>;
  struct LevelBytes {  // of a window of a level
    unsigned level;
    const geometry::Window& window;
    std::uint64_t offset;
    std::optional<std::uint64_t> length;  // none: up to the end
  };
  // Until one succeeds. False: the level is not stored, cannot be stored now, or changed in each attempt.
  Result<bool> attempt_level(Ino ino, const LevelBytes& bytes, unsigned most_attempts, const engine::Stop& stop,
                             const LevelAttempt& attempt);
  // `at_end` is called when all bytes have been read, before the last look for writers.
  Result<LevelState> read_level_once(LevelJob& job, const LevelSink& sink,
                                     const std::function<Status(LevelUse)>& at_end = {});
  Result<LevelState> pin_level_once(LevelJob& job, std::unique_ptr<PinnedWindow>& pinned);
  Result<LevelState> need_extent(LevelJob& job, unsigned level, const geometry::Coord& extent);
  Result<LevelState> need_extents(LevelJob& job, unsigned level, const geometry::SampleBox& box);
  engine::TaskPool& level_tasks();
  std::mutex& level_mutex(const LevelJob& job, unsigned level, const geometry::Coord& extent);
  Result<LevelState> build_extent(LevelJob& job, unsigned level, const geometry::Coord& extent);
  Result<LevelState> store_extent(LevelJob& job, unsigned level, const geometry::Window& window, ConstBytes samples,
                                  LevelGuard::Watch& watch);
  Result<bool> has_data(LevelJob& job, geometry::SampleBox box);
  // Extents of the coarsest stored level, from a number on. `next`: of the one that was reached.
  Result<LevelState> build_box(LevelJob& job, const engine::GridBox& box, std::uint64_t from, std::uint64_t& next);
  template <typename Work>
  auto with_levels(Inode& inode, const Work& work)
      -> std::invoke_result_t<Work, const std::shared_ptr<const LevelSet>&, geometry::Geometry>;
  Result<bool> look_up_levels(LevelJob& job);
  Result<bool> has_shape_of(LevelJob& job);
  Result<std::optional<LevelUse>> use_level(LevelJob& job, unsigned level);
  Result<LevelState> write_back_below(LevelJob& job);
  Result<LevelState> is_built_below(LevelJob& job, unsigned level, const geometry::Window& window);
  Status reduce_extent(LevelJob& job, unsigned level, const geometry::Window& window, LevelBuffers& buffers);
  Status start_below(LevelJob& job, unsigned level, const geometry::Window& window);
  Status read_below(LevelJob& job, unsigned level, const geometry::Window& window, MutableBytes into);
  // After an error of a read of the level: forgets its extents in the box that cannot be read. kChanged: read again.
  // The error, if it has another reason.
  Result<LevelState> forget_unreadable(LevelJob& job, unsigned level, const geometry::SampleBox& box,
                                       const Error& error);
  Status forget_extents(LevelJob& job, unsigned level, const std::vector<geometry::Coord>& extents);
  struct LevelName {
    Ino image = 0;
    unsigned level = 0;
  };
  // Nothing: the object is no level, or was one.
  Result<std::optional<LevelName>> name_of_level(Ino object);

  // ---- files that become images (becoming.cc)
  Status calibrate(Inode& inode, const geometry::Geometry& wanted);
  void note_rank(const geometry::Geometry& geometry);
  Result<Pin> make_unnamed_image(const ImageOptions& options, std::uint64_t size_bytes, const format::Inode& like);
  Status copy_all(Inode& from, Inode& to, std::uint64_t size_bytes, const engine::Stop& stop);
  // Gives the data of the unnamed image `made` to `inode`, unless that has changed.
  Status take_data(Inode& inode, Inode& made, std::uint64_t generation);

  // ---- fragmentation (fragmentation.cc)
  Status walk_fragmentation(std::int64_t until_ns, const engine::Stop& stop);

  // ---- orphans (orphans.cc): inodes without a name, freed after the last hold
  void orphan_unheld(Ino ino);
  Status queue_orphans_of_last_mount();
  Status free_orphan(Ino ino);
  // Frees data of the other kind, which the conversion of a named file into an image has left.
  Status free_leftovers(Ino ino);
  Status clear_leftovers(Ino ino);  // if there are any
  Status free_in_steps(const std::function<Result<bool>(store::Transaction&, std::size_t at_once)>& step);
  bool free_queued_orphans(std::int64_t budget_ns);
  void reaper_loop();

  // Of the volume, lost ones included.
  unsigned member_count() const;

  // ---- background (background.cc)
  void committer_loop();
  void rebuild_if_due();
  void finalizer_loop();
  void discarder_loop();
  Status write_back_all(std::int64_t at_least_age_ns);
  void stop_threads();

  const VolumeOptions options_;
  Environment& environment_;
  const std::unique_ptr<store::Store> store_;
  const bool opened_read_only_;  // nothing can be dirty; a store that turned read-only later has failed
  const std::unique_ptr<engine::Engine> engine_;
  format::NameSecret secret_{};  // of the names; set by start()
  InodeTable table_;
  Placements placements_;
  OpenObjects open_objects_;
  DiskStatistics disk_statistics_;
  AutomaticRebuild automatic_rebuild_;  // of the committer's thread
  std::atomic<unsigned> readers_{0};
  std::atomic<std::uint64_t> protection_changes_{0};
  std::unique_ptr<Operations> operations_;

  std::atomic<std::uint64_t> file_placement_{0};  // id; 0: not found or made yet
  std::atomic<bool> whole_{store_->is_whole()};   // every disk is present
  std::atomic<std::uint64_t> member_changes_{0};  // counts disks that were added or removed, and changed weights
  std::atomic<bool> closed_{false};
  std::mutex close_mutex_;    // held by close()
  std::mutex reclaim_mutex_;  // held by reclaim()

  std::mutex listener_mutex_;  // guards the next four; not held while the listener runs
  std::condition_variable listener_idle_;
  unsigned listener_calls_ = 0;
  std::shared_ptr<const ChangeListener> listener_;
  std::shared_ptr<const PrivilegesListener> privileges_listener_;

  std::mutex fragmentation_mutex_;            // guards the next three; held while images are read
  VolumeFragmentation fragmentation_;         // of the last whole round
  VolumeFragmentation fragmentation_so_far_;  // of this round
  Ino fragmentation_next_ = 0;                // start of the next part

  static constexpr std::size_t kMostQueuedLevels = 65536;  // others are built when they are read
  std::mutex level_queue_mutex_;                           // guards the next four; a leaf
  std::map<Ino, std::uint64_t> level_queue_;               // images, and where to begin
  Ino level_queue_last_ = 0;
  std::map<Ino, std::uint64_t> levels_without_room_;  // the same, of builds that met a full volume
  std::uint64_t level_room_blocks_ = 0;               // the fewest that were available since
  // One is held while an extent of a level is built: each is built once, and so many at a time, which bounds their
  // memory.
  std::array<std::mutex, 16> level_mutexes_;
  std::mutex level_names_mutex_;          // guards the next two
  std::map<Ino, LevelName> level_names_;  // of objects before the end, as they were found
  Ino level_names_end_ = 0;

  std::mutex orphans_mutex_;  // guards the next three
  std::condition_variable orphans_changed_;
  std::deque<Ino> orphans_;
  bool stopping_ = false;
  std::mutex freeing_mutex_;  // held while an orphan is freed; taken before all mutexes of inodes
  std::condition_variable committer_wakes_;
  std::thread reaper_, committer_, finalizer_, discarder_;

  static constexpr unsigned kLevelThreads = 3;  // beside the one that needs the extents
  std::once_flag level_tasks_begun_;
  std::unique_ptr<engine::TaskPool> level_tasks_;  // made when extents of levels are first built
};

}  // namespace mdfs::volume
