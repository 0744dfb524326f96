// The open objects of inodes. An object is opened when it is first needed, and kept for a while when it is no longer
// used. Size, times and stored bytes reach the inode item through it, together with the data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.h"
#include "engine/engine.h"
#include "format/dirent.h"
#include "format/inode.h"
#include "volume/inode_table.h"
#include "volume/placements.h"

namespace mdfs::volume {

class OpenObjects;

// A use of an inode's open object, which is not closed meanwhile. A thread that holds one must not lock the inode's
// extend or shrink mutex.
class ObjectUse {
 public:
  ObjectUse() = default;
  ObjectUse(ObjectUse&& other) noexcept
      : owner_(other.owner_),
        inode_(std::exchange(other.inode_, nullptr)),
        object_(std::move(other.object_)),
        geometry_(std::move(other.geometry_)),
        levels_(std::move(other.levels_)) {}
  ObjectUse& operator=(ObjectUse&& other) noexcept;
  ~ObjectUse() { end(); }
  void end();
  explicit operator bool() const { return inode_ != nullptr; }
  engine::OpenObject& operator*() const { return *object_; }
  const std::shared_ptr<const geometry::Geometry>& geometry() const { return geometry_; }
  const std::shared_ptr<const LevelSet>& levels() const { return levels_; }

 private:
  friend class OpenObjects;
  OpenObjects* owner_ = nullptr;
  Inode* inode_ = nullptr;  // the caller of use() has pinned it
  std::shared_ptr<engine::OpenObject> object_;
  std::shared_ptr<const geometry::Geometry> geometry_;
  std::shared_ptr<const LevelSet> levels_;
};

// Any thread may call any method. Callers hold a Pin of each inode that they pass, longer than any ObjectUse of it.
class OpenObjects {
 public:
  // `secret` must be set before the first call.
  OpenObjects(store::Store& store, const format::NameSecret& secret, engine::Engine& engine, InodeTable& table,
              Placements& placements, Environment& environment)
      : store_(store),
        secret_(secret),
        engine_(engine),
        table_(table),
        placements_(placements),
        environment_(environment) {}

  // kIsDirectory, or kInvalidArgument for other inodes without data.
  Result<ObjectUse> use(Inode& inode);
  ObjectUse use_if_open(Inode& inode);

  // Writes back data and, unless data_only, times. Reports an earlier error of the background once.
  Status write_back(Inode& inode, bool data_only);
  // Writes the times of all inodes that are newer than their items. Continues after errors and returns the first.
  Status write_back_times();

  // The data of the inode have changed.
  void data_changed(Inode& inode);
  // Data or entries have been read: sets a new access time by the rules of relatime. Compares with the times in memory
  // or, for other inodes than files, with those of the item.
  void was_read(Inode& inode, const format::Inode& item = {});
  // Loads the times of the item, as opening the object does. Called before was_read() of a directory.
  void load_times(Inode& inode, const format::Inode& item);
  // Updates the times in memory after a change in the tree.
  void set_times(Inode& inode, std::optional<std::int64_t> atime_ns, std::optional<std::int64_t> mtime_ns);
  // Replaces times of the item with newer ones in memory.
  static void overlay_times(Inode& inode, format::Inode& item);

  // Runs `change` with the size of the file while the open object has no users. The object is written back and closed
  // before, and the next user opens it again. With kAnotherKind no data of the object stay cached. The caller holds the
  // inode's extend and shrink mutexes.
  enum class Reopened : std::uint8_t { kTheSame, kAnotherKind };
  Status change_alone(Inode& inode, Reopened reopened, const std::function<Status(std::uint64_t size_bytes)>& change);
  // Forgets the open object of a removed inode that has no holders.
  void discard(Inode& inode);
  // The file is no longer open: its object may be closed after a while.
  void note_idle(Inode& inode);
  // Closes objects that have not been used for `age_ns`, and the oldest if there are more than kMaxIdle. An object that
  // cannot be written stays, and ends the round.
  void close_idle(std::int64_t age_ns);
  // Closes all objects at the end. Data that cannot be written are lost; returns the first such error.
  Status close_all();

  static constexpr std::size_t kMaxIdle = 1024;
  static constexpr std::int64_t kIdleAgeNs = 30'000'000'000;

 private:
  friend class ObjectUse;
  struct Idle {
    Ino ino = 0;
    std::int64_t since_ns = 0;
  };

  Status open(Inode& inode);
  Status close(Inode& inode);
  void end_use(Inode& inode);
  void queue_idle(Inode& inode);
  bool close_if_idle(const Idle& idle, std::int64_t used_before_ns, bool crowded);
  Status update_item(Inode& inode, store::Transaction& transaction, const engine::ObjectState& state);
  void mark_times_dirty(Inode& inode);
  Status write_back_times(Inode& inode);
  ObjectUse make_use(Inode& inode);

  store::Store& store_;
  const format::NameSecret& secret_;
  engine::Engine& engine_;
  InodeTable& table_;
  Placements& placements_;
  Environment& environment_;
  std::mutex idle_mutex_;  // guards idle_
  std::deque<Idle> idle_;
  std::mutex dirty_mutex_;  // guards dirty_times_
  std::vector<Ino> dirty_times_;
};

// The number that Attributes::data_generation and ImageInfo show for that of the item. Its low bits are for changes
// that are not committed yet.
inline constexpr unsigned kGenerationShift = 24;
constexpr std::uint64_t shown_generation(std::uint64_t committed) {
  return (committed << kGenerationShift) | ((std::uint64_t{1} << kGenerationShift) - 1);
}

}  // namespace mdfs::volume
