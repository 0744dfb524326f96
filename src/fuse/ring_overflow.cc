// The thread behind the threads of the ring queues.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_overflow.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "fuse/processors.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kWake = 0;  // token; those of entries are their addresses

bool is_end(int result) { return result == -ENOTCONN || result == -ECONNABORTED || result == -ECANCELED; }

}  // namespace

Result<std::unique_ptr<RingOverflow>> RingOverflow::create(const std::vector<unsigned>& queues, KeptPayloads& kept) {
  MDFS_TRY_ASSIGN(device::CommandRing ring, device::CommandRing::create());
  device::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.open()) return from_errno(errno, "eventfd");
  std::unique_ptr<RingOverflow> made(new RingOverflow(std::move(ring), std::move(wake), kept));
  for (const unsigned queue : queues) MDFS_TRY(made->add_entry(static_cast<std::uint16_t>(queue)));
  made->most_entries_ = queues.size() + kMaxExtraEntries;
  return made;
}

RingOverflow::RingOverflow(device::CommandRing ring, device::UniqueFd wake, KeptPayloads& kept)
    : ring_(std::move(ring)), wake_(std::move(wake)), kept_(kept) {}

RingOverflow::~RingOverflow() {
  quiesce();
  end();
}

void RingOverflow::start(const RingConnection& connection, unsigned threads, unsigned most,
                         HasWaitingThread has_waiting_thread) {
  has_waiting_thread_ = std::move(has_waiting_thread);
  work_ = std::make_unique<WorkQueue>(threads, most);
  thread_ = std::thread([this, &connection] { run(connection); });
}

void RingOverflow::quiesce() {
  {
    const std::lock_guard lock(mutex_);
    quiet_ = true;
  }
  work_.reset();
}

void RingOverflow::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  thread_.join();
}

void RingOverflow::wake() {
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) spdlog::error("eventfd: {}", std::strerror(errno));
}

RingEntry* RingOverflow::find(std::uint64_t unique) {
  const std::lock_guard lock(mutex_);
  const auto found = by_unique_.find(unique);
  return found == by_unique_.end() ? nullptr : found->second;
}

bool RingOverflow::holds(std::uint64_t unique) {
  const std::lock_guard lock(mutex_);
  return by_unique_.contains(unique) ||
         std::any_of(entries_.begin(), entries_.end(), [unique](const auto& entry) { return entry->holds(unique); });
}

void RingOverflow::deliver(RingEntry& entry, bool) {
  {
    const std::lock_guard lock(mutex_);
    answered_.push_back(&entry);
  }
  wake();
}

void RingOverflow::run(const RingConnection& connection) {
  pthread_setname_np(pthread_self(), "ring-overflow");
  if (const Status status = ring_.enable(); !status.ok()) {
    spdlog::error("{}", status.error().message());
    return connection.fail();
  }
  watch_wake();
  for (const auto& entry : entries_) hand_over(*entry, connection);
  while (wait_for_room()) {
    commit_answers(connection);
    if (!to_kick_.empty()) kick(std::exchange(to_kick_, {}), connection);
    if (more_answers()) {
      ring_.submit();
    } else {
      ring_.wait();
    }
    take_completions(connection);
  }
  ring_.submit();
}

bool RingOverflow::wait_for_room() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return queued_ < kMaxQueued; });
  return !ending_ || !answered_.empty();
}

bool RingOverflow::more_answers() {
  const std::lock_guard lock(mutex_);
  return !answered_.empty();
}

void RingOverflow::watch_wake() {
  ring_.read(wake_.get(), {reinterpret_cast<std::byte*>(&woken_), sizeof woken_}, kWake);
}

Status RingOverflow::add_entry(std::uint16_t queue) {
  MDFS_TRY_ASSIGN(auto entry, RingEntry::create(*this, queue, kept_));
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  return {};
}

void RingOverflow::hand_over(RingEntry& entry, const RingConnection& connection) {
  entry.hand_over(ring_, connection.fd, reinterpret_cast<std::uintptr_t>(&entry));
  ++free_[entry.queue()];
}

void RingOverflow::take_completions(const RingConnection& connection) {
  std::uint64_t token = 0;
  int result = 0;
  while (ring_.next(token, result)) {
    if (token == kWake) {
      watch_wake();
      continue;
    }
    RingEntry& entry = *reinterpret_cast<RingEntry*>(static_cast<std::uintptr_t>(token));
    --free_[entry.queue()];
    if (result == 0) {
      registered_ = true;
      take_request(entry, connection);
    } else if (result == -EAGAIN || result == -EINTR) {
      hand_over(entry, connection);
    } else if (!is_end(result)) {
      spdlog::error("FUSE over io_uring, processor {}: {}", entry.queue(), std::strerror(-result));
      if (!std::exchange(registered_, true)) connection.fail();
    }
  }
}

void RingOverflow::take_request(RingEntry& entry, const RingConnection& connection) {
  entry.note_arrival();
  if (entry.answer_kick()) return hand_over(entry, connection);
  {
    const std::lock_guard lock(mutex_);
    if (quiet_) return;  // the caller waits until the connection is gone
    by_unique_.emplace(entry.unique(), &entry);
    ++queued_;
    work_->post([this, &entry, &connection] {
      note_start();
      entry.serve(connection.serve);
    });
  }
  if (free_[entry.queue()] > 0 || entries_.size() >= most_entries_) return;
  if (const Status status = add_entry(entry.queue()); !status.ok()) return spdlog::warn("{}", status.error().message());
  hand_over(*entries_.back(), connection);
  to_kick_.push_back({entry.queue(), entry.node()});
}

void RingOverflow::note_start() {
  const std::lock_guard lock(mutex_);
  if (queued_-- == kMaxQueued) room_.notify_one();
}

void RingOverflow::commit_answers(const RingConnection& connection) {
  std::vector<RingEntry*> answered;
  {
    const std::lock_guard lock(mutex_);
    // Each may bring the next request.
    const auto end = answered_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(answered_.size(), kMaxStep));
    answered.assign(answered_.begin(), end);
    answered_.erase(answered_.begin(), end);
    for (const RingEntry* const entry : answered) by_unique_.erase(entry->request());
  }
  std::vector<Kick> to_raise;
  for (const RingEntry* const entry : answered)
    if (has_waiting_thread_(entry->queue())) to_raise.push_back({entry->queue(), entry->node()});
  if (!to_raise.empty()) kick(to_raise, connection);
  std::vector<RingEntry*> large;
  for (RingEntry* const entry : answered) {
    if (entry->keeps_too_much()) large.push_back(entry);
    hand_over(*entry, connection);
  }
  if (large.empty()) return;
  ring_.submit();
  take_completions(connection);
  for (RingEntry* const entry : large)
    if (entry->with_kernel()) entry->drop_payload();
}

// The kernel puts the request into the queue of the processor that this thread runs on.
void RingOverflow::kick(const std::vector<Kick>& kicks, const RingConnection& connection) {
  ring_.submit();
  const std::vector<unsigned> processors = own_processors();
  for (const auto& [queue, node] : kicks) {
    if (!run_on({queue})) continue;
    fuse_notify_retrieve_out retrieve{
        .notify_unique = next_kick_, .nodeid = node, .offset = 0, .size = 0, .padding = 0};
    fuse_out_header header{.len = sizeof header + sizeof retrieve, .error = FUSE_NOTIFY_RETRIEVE, .unique = 0};
    next_kick_ += 2;
    iovec parts[] = {{&header, sizeof header}, {&retrieve, sizeof retrieve}};
    if (::writev(connection.fd, parts, 2) < 0)
      spdlog::debug("no request for the ring of processor {}: {}", queue, std::strerror(errno));
  }
  if (!run_on(processors)) spdlog::debug("the overflow thread stays on one processor");
}

}  // namespace mdfs::fuse
