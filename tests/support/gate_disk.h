// A disk that holds the flush of one commit until many threads wait for the next commit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <thread>

#include "borrowed_disk.h"
#include "store/commits.h"

namespace mdfs::test {

// Passes everything on to a disk that outlives it. Any thread may call any method.
class GateDisk final : public PassingDisk {
 public:
  using PassingDisk::PassingDisk;
  void submit(std::span<device::Io* const> batch) override {
    const auto flushes = [](const device::Io* io) { return io->op == device::Op::kFlush; };
    if (std::any_of(batch.begin(), batch.end(), flushes)) wait();
    PassingDisk::submit(batch);
  }

  // The next flush ends when so many threads wait for the commit in progress to end.
  void close_for(const store::Commits& commits, unsigned count) {
    commits_ = &commits;
    awaited_ = count;
  }
  bool opened_in_time() const { return opened_in_time_; }

 private:
  void wait() {
    const unsigned awaited = awaited_.exchange(0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (awaited > 0 && commits_.load()->waiting_for_commit() < awaited && opened_in_time_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      opened_in_time_ = std::chrono::steady_clock::now() < end;
    }
  }

  std::atomic<const store::Commits*> commits_{nullptr};
  std::atomic<unsigned> awaited_{0};
  std::atomic<bool> opened_in_time_{true};
};

}  // namespace mdfs::test
