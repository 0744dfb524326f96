// All rings of a mount.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/request_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "fuse/processors.h"

namespace mdfs::fuse {
namespace {

constexpr auto kStopStep = std::chrono::milliseconds(1);

}  // namespace

Result<std::unique_ptr<RequestRings>> RequestRings::create() {
  MDFS_TRY_ASSIGN(const std::vector<unsigned> queues, possible_processors());
  // The kernel has queues 0 to their number.
  if (queues.size() != queues.back() + std::size_t{1})
    return Error{Errc::kNotSupported, "FUSE over io_uring with numbers left out between processors"};
  const std::vector<unsigned> own = own_processors();
  if (own.empty() || own.size() > kAllThreads / kMinThreads)
    return Error{Errc::kNotSupported, fmt::format("FUSE over io_uring with {} processors", own.size())};
  const auto count = std::clamp(kAllThreads / static_cast<unsigned>(own.size()), kMinThreads, kThreads);
  std::unique_ptr<RequestRings> rings(new RequestRings);
  for (const unsigned processor : own) {
    for (unsigned i = 0; i < count; ++i) {
      MDFS_TRY_ASSIGN(auto thread, RingThread::create(static_cast<std::uint16_t>(processor), own, rings->kept_));
      rings->threads_.push_back(std::move(thread));
    }
  }
  MDFS_TRY_ASSIGN(rings->overflow_, RingOverflow::create(queues, rings->kept_));
  return rings;
}

RequestRings::~RequestRings() = default;

void RequestRings::start(RingConnection connection, unsigned overflow_threads, unsigned most_overflow_threads) {
  connection_ = std::move(connection);
  started_ = true;
  overflow_->start(connection_, overflow_threads, most_overflow_threads, [this](std::uint16_t queue) {
    return std::any_of(threads_.begin(), threads_.end(),
                       [queue](const auto& thread) { return thread->entry().queue() == queue && thread->waiting(); });
  });
  for (const auto& thread : threads_) thread->start(connection_);
}

void RequestRings::quiesce(int wake_signal) {
  if (!started_) return;
  for (const auto& thread : threads_) thread->stop(wake_signal);
  for (const auto& thread : threads_) {
    while (thread->busy()) {
      std::this_thread::sleep_for(kStopStep);
      thread->stop(wake_signal);  // a signal may come just before the thread waits
    }
  }
  overflow_->quiesce();
}

void RequestRings::end() {
  overflow_->end();
  for (const auto& thread : threads_) thread->join();
}

RingEntry* RequestRings::find(std::uint64_t unique) {
  if (RingEntry* const own = RingEntry::current(); own != nullptr && own->unique() == unique) return own;
  for (const auto& thread : threads_)
    if (thread->entry().unique() == unique) return &thread->entry();
  return overflow_->find(unique);
}

bool RequestRings::holds(std::uint64_t unique) {
  if (!started_) return false;
  return overflow_->holds(unique) || std::any_of(threads_.begin(), threads_.end(), [unique](const auto& thread) {
           return thread->entry().holds(unique);
         });
}

bool RequestRings::answer(std::span<const iovec> parts) {
  fuse_out_header out{};
  if (!started_ || parts.empty() || parts[0].iov_len != sizeof out) return false;
  std::memcpy(&out, parts[0].iov_base, sizeof out);
  if (out.unique == 0) return false;  // a notification
  RingEntry* const entry = find(out.unique);
  if (entry == nullptr) return false;
  entry->answer(parts);
  return true;
}

}  // namespace mdfs::fuse
