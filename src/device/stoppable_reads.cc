// Batches of reads that outlive the call that started them.
// SPDX-License-Identifier: Apache-2.0
#include "device/stoppable_reads.h"

#include <algorithm>
#include <utility>

#include "base/stop.h"

namespace mdfs::device {

struct StoppableReads::Batch {
  StoppableReads* owner = nullptr;
  std::shared_ptr<AlignedBuffer> memory;
  std::vector<Io> ios;
  std::vector<bool> has_ended;
  std::size_t pending = 0;
  std::condition_variable ended;
  std::shared_ptr<Batch> self;  // while its thread has left
};

StoppableReads::~StoppableReads() {
  std::unique_lock lock(mutex_);
  all_ended_.wait(lock, [this] { return left_ == 0; });
}

void StoppableReads::ended(Io& io) {
  auto* const batch = static_cast<Batch*>(io.context);
  StoppableReads& owner = *batch->owner;
  std::shared_ptr<Batch> last;
  const std::lock_guard lock(owner.mutex_);
  batch->has_ended[static_cast<std::size_t>(&io - batch->ios.data())] = true;
  if (--batch->pending > 0) return;
  batch->ended.notify_all();
  last = std::move(batch->self);
  if (last != nullptr && --owner.left_ == 0) owner.all_ended_.notify_all();
}

// Until all have ended, or the thread must leave.
void StoppableReads::wait(std::unique_lock<std::mutex>& lock, Batch& batch,
                          std::optional<std::chrono::nanoseconds> patience) const {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto is_over = [&] { return batch.pending == 0; };
  if (!patience) {
    while (!wait_or_stop(batch.ended, lock, kStopPoll, is_stopped, is_over) && left_ >= kMostLeft) {
    }
    return;
  }
  const auto until = steady_clock::now() + *patience;
  const auto leaves = [&] { return is_stopped() || steady_clock::now() >= until; };
  const auto between = std::clamp(std::chrono::ceil<milliseconds>(*patience), milliseconds(1), kStopPoll);
  while (!wait_or_stop(batch.ended, lock, between, leaves, is_over) && left_ >= kMostLeft) {
  }
}

StoppableReads::Done StoppableReads::read(std::span<const Wanted> wanted,
                                          std::optional<std::chrono::nanoseconds> patience) {
  const auto batch = std::make_shared<Batch>();
  std::size_t bytes = 0;
  for (const Wanted& one : wanted) bytes += one.bytes;
  batch->owner = this;
  batch->memory = std::make_shared<AlignedBuffer>(bytes);
  batch->ios.resize(wanted.size());
  batch->has_ended.resize(wanted.size());
  batch->pending = wanted.size();
  std::vector<Addressed> requests;
  std::size_t at = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Io& io = batch->ios[i];
    io.offset = wanted[i].offset;
    io.buffers = {batch->memory->bytes().subspan(at, wanted[i].bytes)};
    io.done = ended;
    io.context = batch.get();
    at += wanted[i].bytes;
    requests.push_back({wanted[i].disk, &io});
  }
  submit(requests);

  Done done{batch->memory, {}};
  std::unique_lock lock(mutex_);
  wait(lock, *batch, patience);
  const Error left = is_stopped() ? interrupted() : Error{Errc::kBusy, "no answer"};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Io& io = batch->ios[i];
    if (batch->has_ended[i])
      done.reads.push_back({std::move(io.status), io.buffers[0]});
    else
      done.reads.push_back({left, {}});
  }
  if (batch->pending > 0) {
    batch->self = batch;
    ++left_;
  }
  return done;
}

}  // namespace mdfs::device
