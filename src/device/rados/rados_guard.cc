// Locks, watches and fences.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_guard.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "base/environment.h"
#include "base/log.h"

namespace mdfs::device {
namespace {

constexpr const char* kLock = "mdfs";
constexpr const char* kReaders = "readers";  // readers share the lock because they give the same tag
constexpr auto kTick = std::chrono::seconds(10);
constexpr auto kWatchAgain = std::chrono::seconds(1);
constexpr auto kPassing = std::chrono::seconds(2);
constexpr auto kLookAgain = std::chrono::milliseconds(200);
constexpr int kTries = 3;  // others may be taking the lock at the same time

std::string new_token() {
  SystemEnvironment environment;
  return environment.new_uuid().to_string();
}

// "client.4123"
std::uint64_t number_of(const std::string& client) {
  const std::size_t dot = client.find('.');
  return dot == std::string::npos ? 0 : std::strtoull(client.c_str() + dot + 1, nullptr, 10);
}

std::string text_of(const librados::locker_t& locker) {
  const std::optional<LockHolder> holder = LockHolder::parse(locker.cookie);
  return fmt::format("{} ({} at {})", holder ? holder->text() : "another program", locker.client, locker.address);
}

}  // namespace

RadosGuard::RadosGuard(std::shared_ptr<RadosConnection> connection, librados::IoCtx io, std::string disk,
                       std::string object)
    : connection_(std::move(connection)),
      io_(std::move(io)),
      disk_(std::move(disk)),
      object_(std::move(object)),
      self_(LockHolder::self(new_token())) {}

Result<std::unique_ptr<RadosGuard>> RadosGuard::take(std::shared_ptr<RadosConnection> connection, librados::IoCtx io,
                                                     const std::string& disk, const std::string& object, OpenMode mode,
                                                     std::function<void()> tick) {
  std::unique_ptr<RadosGuard> guard(new RadosGuard(std::move(connection), std::move(io), disk, object));
  // A holder that does not watch counts as dead: the watch comes before the lock.
  MDFS_TRY(guard->watch());
  MDFS_TRY(guard->lock(mode));
  guard->keeper_ = std::thread([self = guard.get(), tick = std::move(tick)] { self->keep(tick); });
  return guard;
}

RadosGuard::~RadosGuard() {
  if (keeper_.joinable()) {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    keeper_.join();
  }
  if (locked_)
    if (const int result = io_.unlock(object_, kLock, self_.cookie()); result < 0 && result != -ENOENT)
      spdlog::warn("{}: giving the lock back: {}", disk_, rados_reason(result));
  if (watches_) io_.unwatch2(watch_);
  connection_->cluster().watch_flush();  // no call of handle_error() comes after this
}

Status RadosGuard::watch() {
  const int result = io_.watch3(object_, &watch_, this, kWatchSeconds);
  if (result == -ENOENT) return Error{Errc::kNotFound, disk_ + ": there is no such disk in the pool"};
  if (result < 0) return rados_error(result, disk_ + ": watching its header");
  watches_ = true;
  return {};
}

int RadosGuard::try_lock(OpenMode mode) {
  return mode == OpenMode::kReadWrite
             ? io_.lock_exclusive(object_, kLock, self_.cookie(), self_.text(), nullptr, 0)
             : io_.lock_shared(object_, kLock, self_.cookie(), kReaders, self_.text(), nullptr, 0);
}

Status RadosGuard::lock(OpenMode mode) {
  for (int tries = 0;; ++tries) {
    const int result = try_lock(mode);
    locked_ = result == 0;
    if (locked_) return clear_watchers(mode);
    if (result != -EBUSY && result != -EEXIST) return rados_error(result, disk_ + ": taking its lock");
    if (tries == kTries) return Error{Errc::kBusy, disk_ + " is in use: others are taking its lock, too"};
    MDFS_TRY(clear_dead(mode));
  }
}

// An object that does not exist has no holders.
Result<RadosGuard::Holders> RadosGuard::holders() {
  Holders found;
  int exclusive = 0;
  std::string tag;
  const int result = io_.list_lockers(object_, kLock, &exclusive, &tag, &found.lockers);
  if (result < 0 && result != -ENOENT) return rados_error(result, disk_ + ": asking who holds its lock");
  found.exclusive = exclusive != 0;
  return found;
}

Status RadosGuard::clear_dead(OpenMode mode) {
  MDFS_TRY_ASSIGN(const Holders held, holders());
  if (held.lockers.empty()) return {};
  std::list<obj_watch_t> watchers;
  if (const int result = io_.list_watchers(object_, &watchers); result < 0)
    return rados_error(result, disk_ + ": asking who watches it");
  for (const librados::locker_t& locker : held.lockers) {
    const std::optional<LockHolder> holder = LockHolder::parse(locker.cookie);
    const bool watched = std::any_of(watchers.begin(), watchers.end(), [&](const obj_watch_t& watcher) {
      return static_cast<std::uint64_t>(watcher.watcher_id) == number_of(locker.client);
    });
    if (watched && !(holder && is_dead(*holder, self_)))
      return Error{Errc::kBusy, fmt::format("{} is in use by {}{}", disk_, text_of(locker),
                                            mode == OpenMode::kReadOnly ? ", for writing"
                                            : held.exclusive            ? ""
                                                                        : ", for reading")};
  }
  for (const librados::locker_t& locker : held.lockers) {
    MDFS_TRY(break_lock(locker, held.exclusive));
    spdlog::warn("{}: {}, has gone{}; its lock was broken", disk_, text_of(locker),
                 held.exclusive ? " and was fenced" : "");
  }
  return {};
}

Status RadosGuard::break_lock(const librados::locker_t& locker, bool exclusive) {
  if (exclusive) {
    MDFS_TRY(fence(locker.address, text_of(locker)));
    fenced_.insert(number_of(locker.client));
  }
  const int result = io_.break_lock(object_, kLock, locker.client, locker.cookie);
  if (result < 0 && result != -ENOENT) return rados_error(result, disk_ + ": breaking the lock of " + text_of(locker));
  return {};
}

Result<std::vector<std::string>> RadosGuard::evict_writers(std::shared_ptr<RadosConnection> connection,
                                                           librados::IoCtx io, const std::string& disk,
                                                           const std::string& object) {
  RadosGuard guard(std::move(connection), std::move(io), disk, object);
  MDFS_TRY_ASSIGN(const Holders held, guard.holders());
  std::vector<std::string> evicted;
  for (const librados::locker_t& locker : held.lockers) {
    if (!held.exclusive)
      return Error{Errc::kBusy, fmt::format("{} is in use by {}, for reading", disk, text_of(locker))};
    MDFS_TRY(guard.break_lock(locker, true));
    evicted.push_back(text_of(locker));
  }
  MDFS_TRY(guard.clear_watchers(OpenMode::kReadWrite));
  return evicted;
}

Status RadosGuard::fence(const std::string& address, const std::string& who) {
  const int result = connection_->fence(address, kFenceSeconds);
  if (result == 0) return {};
  const bool refused = result == -EPERM || result == -EACCES;
  return rados_error(result, fmt::format("{}: its writer, {}, must be fenced{}", disk_, who,
                                         refused ? "; the user of the cluster needs the monitor capability \"profile "
                                                   "rbd\""
                                                 : ""));
}

Status RadosGuard::clear_watchers(OpenMode mode) {
  // The watch of a dead client lasts for kWatchSeconds. A writer fences it, a reader waits for its end.
  const auto until = std::chrono::steady_clock::now() + kPassing +
                     (mode == OpenMode::kReadOnly ? std::chrono::seconds(kWatchSeconds) : std::chrono::seconds(0));
  for (std::optional<std::set<std::uint64_t>> suspects;;) {
    std::list<obj_watch_t> watchers;
    if (const int result = io_.list_watchers(object_, &watchers); result < 0)
      return rados_error(result, disk_ + ": asking who watches it");
    std::set<std::uint64_t> known = fenced_;
    known.insert(connection_->cluster().get_instance_id());
    if (mode == OpenMode::kReadOnly) {
      MDFS_TRY_ASSIGN(const Holders held, holders());
      for (const librados::locker_t& locker : held.lockers) known.insert(number_of(locker.client));
    }
    // Who comes later sees the lock that is held now.
    watchers.remove_if([&](const obj_watch_t& one) {
      const auto client = static_cast<std::uint64_t>(one.watcher_id);
      return known.contains(client) || (suspects && !suspects->contains(client));
    });
    if (watchers.empty()) return {};
    suspects.emplace();
    for (const obj_watch_t& one : watchers) suspects->insert(static_cast<std::uint64_t>(one.watcher_id));
    // One who is taking the lock at the same time watches already, and goes when he does not get it.
    if (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLookAgain);
      continue;
    }
    const obj_watch_t& other = watchers.front();
    const std::string who = fmt::format("client.{} at {}", other.watcher_id, other.addr);
    if (mode == OpenMode::kReadOnly)
      return Error{Errc::kBusy,
                   fmt::format("{} is in use by {}, whose lock was broken; mounted for writing, the disk is "
                               "taken from it",
                               disk_, who)};
    MDFS_TRY(fence(other.addr, who));
    fenced_.insert(static_cast<std::uint64_t>(other.watcher_id));
    spdlog::warn("{}: {} used it without a lock, which somebody had broken; it was fenced", disk_, who);
  }
}

bool RadosGuard::holds_lock() {
  if (lost_) return false;
  int exclusive = 0;
  std::string tag;
  std::list<librados::locker_t> lockers;
  const int result = io_.list_lockers(object_, kLock, &exclusive, &tag, &lockers);
  if (result < 0) return true;  // the header is gone, or cannot be read: its readers get the error
  const bool held = std::any_of(lockers.begin(), lockers.end(),
                                [&](const librados::locker_t& one) { return one.cookie == self_.cookie(); });
  if (!held && !lost_.exchange(true))
    spdlog::error("{}: its lock was broken by somebody else; nothing more is written to it", disk_);
  return held;
}

void RadosGuard::keep(const std::function<void()>& tick) {
  pthread_setname_np(pthread_self(), "mdfs-rados");
  bool again = false;
  for (;;) {
    tick();
    (void)holds_lock();
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, again ? kWatchAgain : std::chrono::duration_cast<std::chrono::milliseconds>(kTick),
                        [&] { return stopping_ || broken_; });
      if (stopping_) return;
      again = again || broken_;
      broken_ = false;
    }
    if (!again) continue;
    if (watches_) io_.unwatch2(watch_);
    watches_ = false;
    const Status watching = watch();
    again = !watching.ok() && watching.error().code != Errc::kNotFound;  // removed: condition() says it
    if (again) spdlog::warn("{}", watching.error().message());
  }
}

void RadosGuard::handle_notify(std::uint64_t notify, std::uint64_t cookie, std::uint64_t /*notifier*/,
                               librados::bufferlist& /*bytes*/) {
  librados::bufferlist empty;
  io_.notify_ack(object_, notify, cookie, empty);
}

void RadosGuard::handle_error(std::uint64_t /*cookie*/, int /*error*/) {
  {
    std::lock_guard lock(mutex_);
    broken_ = true;
  }
  changed_.notify_all();
}

}  // namespace mdfs::device
