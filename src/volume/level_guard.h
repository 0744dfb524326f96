// Keeps the writers of an image apart from the builders and readers of its levels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>

#include "engine/options.h"
#include "geometry/level.h"

namespace mdfs::volume {

// All boxes are samples of the image. A writer is registered before its change can be seen, and drops the stored
// extents of levels above it then. A watch tells a thread that has read, and perhaps computed, for how long its samples
// were those of one state of the image. A builder stores its extent only while its watch is intact, and writers wait
// for that one extent. Any thread. The order of locks does not matter: no caller waits here for a lock of another one,
// because a builder takes no lock of the image while it stores.
class LevelGuard {
 public:
  class Write;
  class Watch;
  class Store;

 private:
  struct Watched {
    geometry::SampleBox box;
    unsigned rank = 0;
    bool stale = false;
    bool storing = false;
  };
  struct Writing {
    geometry::SampleBox box;
    unsigned rank = 0;
  };
  std::mutex mutex_;  // guards the lists and what is in them
  std::condition_variable changed_;
  std::list<Writing> writers_;
  std::list<Watched> watches_;
};

// A change of the samples under way, from the constructor to the destructor.
class LevelGuard::Write {
 public:
  // Waits until no extent is being stored above the box.
  Write(LevelGuard& guard, unsigned rank, const geometry::SampleBox& box);
  Write(const Write&) = delete;
  Write& operator=(const Write&) = delete;
  ~Write();

 private:
  LevelGuard& guard_;
  std::list<Writing>::iterator entry_;
};

// Tells its thread whether a writer has changed the samples of the box since the constructor.
class LevelGuard::Watch {
 public:
  // Waits until no writer is in the box; or `stop` ends the wait, and the watch is stale.
  Watch(LevelGuard& guard, unsigned rank, const geometry::SampleBox& box, const engine::Stop& stop);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();
  // True: a writer has begun in the box.
  bool is_stale() const;

 private:
  friend class Store;
  LevelGuard& guard_;
  std::list<Watched>::iterator entry_;
};

// An extent is being stored: what was read under the watch is still the state of the image, and stays so.
class LevelGuard::Store {
 public:
  explicit Store(Watch& watch);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();
  explicit operator bool() const { return storing_; }  // false: the watch is stale, nothing may be stored

 private:
  Watch& watch_;
  bool storing_ = false;
};

}  // namespace mdfs::volume
