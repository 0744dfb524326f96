// The synchronous helpers over Disk::submit().
// SPDX-License-Identifier: Apache-2.0
#include "device/disk.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace mdfs::device {
namespace {

// Counts completions; lives on the stack of the waiting thread.
class Latch {
 public:
  explicit Latch(std::size_t count) : left_(count) {}

  // Notifies while holding the mutex: the waiter may destroy the latch as soon as it can lock it.
  void count_down() {
    std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    zero_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;  // guards left_
  std::condition_variable zero_;
  std::size_t left_;
};

void count_down(Io& io) { static_cast<Latch*>(io.context)->count_down(); }

Status run_one(Disk& disk, Io& io) {
  const Addressed request{&disk, &io};
  return run({&request, 1});
}

}  // namespace

std::uint64_t Io::bytes() const {
  if (op == Op::kDiscard) return discard_bytes;
  std::uint64_t sum = 0;
  for (const auto& buffer : buffers) sum += buffer.size();
  return sum;
}

void submit(std::span<const Addressed> requests) {
  std::vector<std::pair<Disk*, std::vector<Io*>>> batches;
  for (const auto& [disk, io] : requests) {
    auto batch = std::find_if(batches.begin(), batches.end(), [d = disk](const auto& b) { return b.first == d; });
    if (batch == batches.end()) batch = batches.insert(batches.end(), {disk, {}});
    batch->second.push_back(io);
  }
  for (const auto& [disk, batch] : batches) disk->submit(batch);
}

Status run(std::span<const Addressed> requests) {
  if (requests.empty()) return {};
  Latch latch(requests.size());
  for (const auto& request : requests) {
    request.io->done = count_down;
    request.io->context = &latch;
  }
  submit(requests);
  latch.wait();
  for (const auto& request : requests) {
    if (!request.io->status.ok()) return request.io->status.error();
  }
  return {};
}

Status read(Disk& disk, std::uint64_t offset, MutableBytes buffer) {
  Io io;
  io.op = Op::kRead;
  io.offset = offset;
  io.buffers.push_back(buffer);
  return run_one(disk, io);
}

Status write(Disk& disk, std::uint64_t offset, ConstBytes buffer) {
  Io io;
  io.op = Op::kWrite;
  io.offset = offset;
  // A disk only reads from the buffers of a write.
  io.buffers.emplace_back(const_cast<std::byte*>(buffer.data()), buffer.size());
  return run_one(disk, io);
}

Status flush(Disk& disk) {
  Io io;
  io.op = Op::kFlush;
  return run_one(disk, io);
}

}  // namespace mdfs::device
