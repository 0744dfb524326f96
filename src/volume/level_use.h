// A use of the object of a level, which is held open meanwhile: it is not freed, even if the level is taken away.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/open_object.h"
#include "volume/inode_table.h"
#include "volume/open_objects.h"

namespace mdfs::volume {

// Pins the object from begin() to the destructor. One thread at a time.
class LevelUse {
 public:
  static Result<LevelUse> begin(InodeTable& table, OpenObjects& open_objects, Ino object) {
    LevelUse level(table, open_objects, table.pin(object));
    MDFS_TRY_ASSIGN(level.use_, open_objects.use(*level.pin_));
    (*level.use_).is_level = true;
    return level;
  }
  LevelUse(LevelUse&& other) noexcept = default;
  LevelUse& operator=(LevelUse&&) = delete;
  ~LevelUse() {
    if (!pin_) return;  // moved from
    use_.end();
    table_.drop_open(pin_->ino);
    open_objects_.note_idle(*pin_);
  }
  engine::OpenObject& operator*() const { return *use_; }
  // Ends the use, and continues to hold the object.
  void only_hold() { use_.end(); }

 private:
  LevelUse(InodeTable& table, OpenObjects& open_objects, Pin pin)
      : table_(table), open_objects_(open_objects), pin_(std::move(pin)) {
    table_.add_open(*pin_);
  }
  InodeTable& table_;
  OpenObjects& open_objects_;
  Pin pin_;
  ObjectUse use_;
};

}  // namespace mdfs::volume
