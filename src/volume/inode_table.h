// The inodes in memory: the number of their holders, and state that is newer than the tree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "geometry/geometry.h"
#include "volume/level_guard.h"
#include "volume/volume.h"

namespace mdfs::volume {

// The stored levels of an image.
struct LevelSet {
  geometry::Reduction reduction = geometry::Reduction::kMean;
  std::vector<Ino> objects;  // with the samples of level 1, 2, ..
};

// One inode in memory. The inode item in the tree is the authority; an Inode has newer state only, and the open object.
// Lock order within an inode: extend, shrink, object, then the store, then times.
struct Inode {
  explicit Inode(Ino number) : ino(number) {}
  const Ino ino;

  // Held by a thread that may change the size, so that appends do not overlap.
  std::mutex extend_mutex;
  // Held shared by window calls, and alone while the file gets smaller or becomes an image.
  std::shared_mutex shrink_mutex;

  std::mutex object_mutex;  // guards the next seven; held while the object is opened and closed
  std::condition_variable object_changed;
  std::shared_ptr<engine::OpenObject> open_object;     // null: not open
  std::shared_ptr<const geometry::Geometry> geometry;  // of the open object, if an image; shape[0] may be outdated
  std::shared_ptr<const LevelSet> levels;              // of the open object; null: none
  unsigned object_users = 0;
  bool object_switching = false;    // no new use may begin
  bool object_queued = false;       // in the list of idle objects
  std::int64_t object_used_ns = 0;  // monotonic; end of the last use

  LevelGuard level_guard;
  std::atomic<bool> levels_built{false};  // found so in the background; no writer came since

  // Changes by reads and writes of data that the tree does not have yet; set when the object is opened.
  std::mutex times_mutex;  // guards the next four; no lock is taken while it is held
  std::optional<std::int64_t> atime_ns;
  std::optional<std::int64_t> mtime_ns;
  std::optional<std::int64_t> ctime_ns;
  std::optional<std::uint64_t> data_generation;

  std::atomic<bool> times_dirty{false};       // may be newer than the item
  std::atomic<bool> has_privileges{false};    // setuid, setgid or capabilities that a write removes
  std::atomic<bool> unlinked{false};          // no name leads here: freed when the last hold ends
  std::atomic<bool> has_open_object{false};   // equals open_object != nullptr
  std::atomic<bool> write_error_kept{false};  // equals write_error.has_value()
  std::mutex error_mutex;                     // guards the next
  std::optional<Error> write_error;           // of the background: for the next fsync

 private:
  friend class InodeTable;
  // Guarded by the shard's mutex.
  std::uint64_t lookups_ = 0;
  std::uint64_t opens_ = 0;
  std::uint64_t pins_ = 0;
};

class InodeTable;

// Keeps an inode in the table while an operation uses it.
class Pin {
 public:
  Pin() = default;
  Pin(Pin&& other) noexcept : table_(other.table_), inode_(std::exchange(other.inode_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept;
  ~Pin();
  explicit operator bool() const { return inode_ != nullptr; }
  Inode* operator->() const { return inode_; }
  Inode& operator*() const { return *inode_; }

 private:
  friend class InodeTable;
  Pin(InodeTable* table, Inode* inode) : table_(table), inode_(inode) {}
  InodeTable* table_ = nullptr;
  Inode* inode_ = nullptr;
};

// All inodes that are looked up, open, in use, or newer in memory than in the tree; others are dropped at once. The
// kernel may keep millions looked up. For an inode that is only looked up, the table therefore keeps only the count.
// Any thread may call any method; the shards' mutexes are leaves.
class InodeTable {
 public:
  // `unreferenced` is called, with no lock held, when the last hold of an unlinked inode ends.
  explicit InodeTable(std::function<void(Ino)> unreferenced) : unreferenced_(std::move(unreferenced)) {}

  Pin pin(Ino ino);   // makes the inode if necessary
  Pin find(Ino ino);  // empty if the inode is not in the table
  void add_lookup(Inode& inode);
  void add_open(Inode& inode);
  void drop_lookups(Ino ino, std::uint64_t lookups);
  void drop_open(Ino ino);
  bool is_open(const Inode& inode);
  bool is_held(const Inode& inode);  // looked up or open
  std::vector<Pin> all();
  std::size_t size();

 private:
  friend class Pin;
  static constexpr std::size_t kShards = 64;
  struct Shard {
    std::mutex mutex;  // guards the maps and the counts of the inodes
    std::unordered_map<Ino, std::unique_ptr<Inode>> inodes;
    // inodes that are only looked up, with counts; each inode is in one of the maps
    std::unordered_map<Ino, std::uint64_t> looked_up;
  };
  Shard& shard(Ino ino) { return shards_[ino % kShards]; }
  void unpin(Inode& inode);
  // Null if the inode is in none of the maps. The caller holds the shard's mutex.
  static Inode* get(Shard& shard, Ino ino);
  // Drops an unused inode, or all but its count if it is only looked up. True if it must be freed on disk. The caller
  // holds the shard's mutex.
  static bool evict_if_unused(Shard& shard, Inode& inode);

  std::function<void(Ino)> unreferenced_;
  std::array<Shard, kShards> shards_;
};

}  // namespace mdfs::volume
