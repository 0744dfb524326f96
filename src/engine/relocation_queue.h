// The queue of objects for relocation in the background, and the time of the last read or write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "engine/home_blocks.h"

namespace mdfs::engine {

enum class RelocationReason : std::uint8_t {
  kInStrips,      // bytes of its extents lie in strips: they are consolidated
  kAwayFromHome,  // extents were rewritten elsewhere, and their home blocks may be free
  kUngrouped,     // extents that were written have copies, and are to share parities
  kDamaged,       // one of two copies of an extent was read in vain: it is verified, and written anew
};

struct UngroupedPage {
  std::uint64_t page = 0;
  bool and_later = false;  // all behind it as well
};

struct RelocationCandidate {
  std::uint64_t object = 0;
  RelocationReason reason = RelocationReason::kInStrips;
};

// Calls of the engine by this thread, while it exists, are not activity of users: the engine stays quiet. They do not
// nest.
class BackgroundScope {
 public:
  BackgroundScope() { in_background() = true; }
  BackgroundScope(const BackgroundScope&) = delete;
  BackgroundScope& operator=(const BackgroundScope&) = delete;
  ~BackgroundScope() { in_background() = false; }
  static bool& in_background() {
    thread_local bool inside = false;
    return inside;
  }
};

// All candidates: objects with strips, with extents away from home, to be grouped, and with damaged copies. In memory
// only: an object with strips joins when it is opened. Any thread; the mutex is a leaf.
class RelocationQueue {
 public:
  explicit RelocationQueue(store::BlockSpace& space) : homes_(space) {}

  void note_activity(Environment& environment) {
    if (BackgroundScope::in_background()) return;
    last_activity_ns_.store(environment.monotonic_ns(), std::memory_order_relaxed);
  }
  std::int64_t idle_ns(Environment& environment) const {
    return environment.monotonic_ns() - last_activity_ns_.load(std::memory_order_relaxed);
  }
  bool is_quiet(Environment& environment) const { return idle_ns(environment) >= kQuietNs; }

  // The object has strips that may be complete.
  void note_strips(std::uint64_t object) {
    const std::lock_guard lock(mutex_);
    with_strips_.insert(object);
  }
  // An extent was read from its second copy, because the first one is bad, or the other way round; or it was stored
  // without one. Beyond a bound the others are found by the next reader, by a scrub or by a rebuild.
  void note_damaged(std::uint64_t object, std::uint64_t extent) {
    const std::lock_guard lock(mutex_);
    if (damaged_.size() < kMostDamaged) damaged_.emplace(object, extent);
  }
  // Extents under this page of the object are to be grouped.
  void note_ungrouped(std::uint64_t object, std::uint64_t page) {
    const std::lock_guard lock(mutex_);
    ungrouped_.emplace(object, page);
  }
  // There may be such extents under this page and all behind it.
  void note_ungrouped_from(std::uint64_t object, std::uint64_t page) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = ungrouped_from_.emplace(object, page);
    if (!is_new) found->second = std::min(found->second, page);
  }
  // An object whose extents are to be grouped was opened. Once in each mount all its pages are looked through; what is
  // written afterwards is noted by itself.
  void note_opened(std::uint64_t object);
  void note_looked_through(std::uint64_t object);
  // One of these, which is forgotten.
  std::optional<UngroupedPage> take_ungrouped(std::uint64_t object);
  // The damaged extents of an object, which are forgotten.
  std::vector<std::uint64_t> take_damaged(std::uint64_t object);
  // Extents away from home.
  HomeBlocks& homes() { return homes_; }
  const HomeBlocks& homes() const { return homes_; }

  // Ascending by object. Extents away from home count once their home blocks are over (HomeBlocks::objects).
  std::vector<RelocationCandidate> candidates(std::uint64_t committed) const;
  void forget(const RelocationCandidate& candidate);
  // With every reason.
  void forget(std::uint64_t object);

 private:
  static constexpr std::int64_t kQuietNs = 200'000'000;  // since the last read or write

  std::atomic<std::int64_t> last_activity_ns_{0};
  HomeBlocks homes_;
  static constexpr std::size_t kMostDamaged = 4096, kMostLookedThrough = 65536;
  mutable std::mutex mutex_;  // guards all below
  std::set<std::uint64_t> with_strips_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> ungrouped_;  // object, page
  std::map<std::uint64_t, std::uint64_t> ungrouped_from_;        // the page from which on all are, by object
  std::set<std::uint64_t> looked_through_;                       // objects; too many of them begin anew
  std::set<std::pair<std::uint64_t, std::uint64_t>> damaged_;    // object, index of the extent
};

}  // namespace mdfs::engine
