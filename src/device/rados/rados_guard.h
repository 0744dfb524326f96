// The lock of a disk in RADOS, and the sign of life of its holder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <rados/librados.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "device/open_mode.h"
#include "device/rados/lock_holder.h"
#include "device/rados/rados_cluster.h"

namespace mdfs::device {

// A writer holds the lock alone, readers share it. The lock has no end of its own. Its holder watches the header object
// as long as it lives: the cluster ends the watch of a client that was silent for kWatchSeconds. A holder without a
// watch is dead, and so is a process of this machine that has ended. A dead writer is first fenced (blocklisted), so
// that no OSD takes anything from it any more; then its lock is broken. The clocks of machines do not matter. Who
// watches without a lock had one that an administrator broke: a new writer fences him as well.
class RadosGuard final : public librados::WatchCtx2 {
 public:
  static constexpr std::uint32_t kWatchSeconds = 6;
  // How long the cluster refuses a fenced client. It must outlast the longest stop of its process.
  static constexpr std::uint32_t kFenceSeconds = 365u * 24 * 3600;

  // kReadWrite or kReadOnly. kBusy names the holder. `tick` is called every kTickSeconds from a thread of the guard.
  static Result<std::unique_ptr<RadosGuard>> take(std::shared_ptr<RadosConnection> connection, librados::IoCtx io,
                                                  const std::string& disk, const std::string& object, OpenMode mode,
                                                  std::function<void()> tick);
  ~RadosGuard() override;
  // Fences who holds the lock for writing, dead or alive, breaks the lock, and fences who watches without one. Returns
  // the holders. kBusy: the lock is held for reading.
  static Result<std::vector<std::string>> evict_writers(std::shared_ptr<RadosConnection> connection, librados::IoCtx io,
                                                        const std::string& disk, const std::string& object);
  // False for ever once the lock was found in other hands, or in none. Asks the cluster; true where it does not answer.
  bool holds_lock();
  // As the last answer was.
  bool has_lost_lock() const { return lost_; }
  RadosGuard(const RadosGuard&) = delete;
  RadosGuard& operator=(const RadosGuard&) = delete;

  void handle_notify(std::uint64_t notify, std::uint64_t cookie, std::uint64_t notifier,
                     librados::bufferlist& bytes) override;
  void handle_error(std::uint64_t cookie, int error) override;

 private:
  RadosGuard(std::shared_ptr<RadosConnection> connection, librados::IoCtx io, std::string disk, std::string object);
  Status watch();
  Status lock(OpenMode mode);
  int try_lock(OpenMode mode);
  // Who holds the lock. `exclusive`: for writing.
  struct Holders {
    bool exclusive = false;
    std::list<librados::locker_t> lockers;
  };
  Result<Holders> holders();
  // Breaks the locks of dead holders, or returns kBusy.
  Status clear_dead(OpenMode mode);
  // Fences it, if its lock is exclusive.
  Status break_lock(const librados::locker_t& locker, bool exclusive);
  // The lock is held. Those who watch without one are fenced by a writer, and refused by a reader.
  Status clear_watchers(OpenMode mode);
  Status fence(const std::string& address, const std::string& who);
  void keep(const std::function<void()>& tick);

  const std::shared_ptr<RadosConnection> connection_;
  librados::IoCtx io_;
  const std::string disk_, object_;
  const LockHolder self_;
  std::uint64_t watch_ = 0;  // of the thread that makes watches: take(), then keeper_
  bool watches_ = false;
  bool locked_ = false;
  std::set<std::uint64_t> fenced_;  // clients
  std::atomic<bool> lost_{false};

  std::mutex mutex_;  // guards the two below
  std::condition_variable changed_;
  bool stopping_ = false, broken_ = false;
  std::thread keeper_;
};

}  // namespace mdfs::device
