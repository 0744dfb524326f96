// A disk of a store whose requests are scheduled by their urgency.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "device/urgency.h"
#include "store/disk_slot.h"

namespace mdfs::store {
namespace {

using device::Io;
using device::Op;
using device::Urgency;
using device::UrgencyScope;

// Keeps its requests until a test ends them, one at a time, in their order.
class HeldDisk final : public device::Disk {
 public:
  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return 64u << 20; }
  bool writable() const override { return true; }
  void submit(std::span<Io* const> batch) override {
    const std::lock_guard lock(mutex_);
    for (Io* io : batch) held_.push_back(io);
  }

  std::size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  // The offset of the request that has ended.
  std::uint64_t end_one() {
    Io* io = nullptr;
    {
      const std::lock_guard lock(mutex_);
      io = held_.front();
      held_.pop_front();
    }
    const std::uint64_t offset = io->offset;
    io->status = {};
    io->done(*io);
    return offset;
  }

 private:
  const std::string name_ = "held";
  std::mutex mutex_;  // guards held_
  std::deque<Io*> held_;
};

class ScheduledSlotTest : public testing::Test {
 protected:
  ScheduledSlotTest() : slot_("slot") {
    auto disk = std::make_unique<HeldDisk>();
    disk_ = disk.get();
    slot_.attach(std::move(disk));
  }

  Io& submit(std::uint64_t block, const Urgency& urgency, Op op = Op::kRead) {
    Io& io = ios_.emplace_back();
    io.op = op;
    io.offset = block * 4096;
    if (op != Op::kFlush) io.buffers = {buffer_.bytes()};
    io.context = &ended_;
    io.done = [](Io& done) { ++*static_cast<std::atomic<unsigned>*>(done.context); };
    const UrgencyScope scope(urgency);
    Io* const one = &io;
    slot_.submit({&one, 1});
    return io;
  }
  std::vector<std::uint64_t> end_all() {
    std::vector<std::uint64_t> blocks;
    while (disk_->held() > 0) blocks.push_back(disk_->end_one() / 4096);
    return blocks;
  }

  DiskSlot slot_;
  HeldDisk* disk_ = nullptr;
  AlignedBuffer buffer_{256u << 10};
  std::deque<Io> ios_;
  std::atomic<unsigned> ended_{0};
};

const Urgency kOrdinary;
Urgency reserved(std::int64_t deadline_ns) { return {Urgency::Kind::kReserved, deadline_ns, nullptr}; }

TEST_F(ScheduledSlotTest, WithoutAScheduleAllRequestsGoToTheDiskAtOnce) {
  for (std::uint64_t block = 0; block < 20; ++block) submit(block, kOrdinary);
  EXPECT_EQ(disk_->held(), 20u);
  end_all();
  EXPECT_EQ(ended_, 20u);
}

TEST_F(ScheduledSlotTest, WithAScheduleReservedRequestsComeBeforeAllThatWait) {
  slot_.keep_schedule(true, 3);
  for (std::uint64_t block = 0; block < 6; ++block) submit(block, kOrdinary);
  submit(6, device::in_background());
  submit(11, reserved(2000));
  submit(10, reserved(1000));
  EXPECT_EQ(disk_->held(), device::RequestSchedule::kLeastUnderWay);
  EXPECT_EQ(end_all(), (std::vector<std::uint64_t>{0, 1, 10, 11, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ended_, 9u);
}

TEST_F(ScheduledSlotTest, AFlushDoesNotWaitForRequestsThatWait) {
  slot_.keep_schedule(true, 0);
  for (std::uint64_t block = 0; block < 6; ++block) submit(block, kOrdinary, Op::kWrite);
  submit(0, kOrdinary, Op::kFlush);
  EXPECT_EQ(disk_->held(), device::RequestSchedule::kLeastUnderWay + 1);
  end_all();
  EXPECT_EQ(ended_, 7u);
}

TEST_F(ScheduledSlotTest, TheEndOfTheScheduleStartsAllThatWaits) {
  slot_.keep_schedule(true, 0);
  for (std::uint64_t block = 0; block < 10; ++block) submit(block, kOrdinary);
  slot_.keep_schedule(false, 0);
  EXPECT_EQ(disk_->held(), 10u);
  submit(10, kOrdinary);
  EXPECT_EQ(disk_->held(), 11u);
  EXPECT_EQ(end_all().size(), 11u);
  slot_.keep_schedule(true, 0);  // and again
  for (std::uint64_t block = 0; block < 10; ++block) submit(block, kOrdinary);
  EXPECT_EQ(disk_->held(), device::RequestSchedule::kLeastUnderWay);
  EXPECT_EQ(end_all().size(), 10u);
}

TEST_F(ScheduledSlotTest, TheTimeOfRequestsIsCountedForThoseThatAskForIt) {
  slot_.keep_schedule(true, 5);
  const auto busy = std::make_shared<device::BusyTime>();
  submit(0, {Urgency::Kind::kReserved, 1, busy});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  end_all();
  EXPECT_GE(busy->ns(5), 5'000'000);
  const std::int64_t before = busy->ns(5);
  submit(1, kOrdinary);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  end_all();
  EXPECT_EQ(busy->ns(5), before);
  EXPECT_EQ(busy->ns(4), 0);
}

TEST_F(ScheduledSlotTest, ManyThreadsGetAllTheirAnswers) {
  slot_.keep_schedule(true, 0);
  constexpr unsigned kThreads = 4, kEach = 500;
  std::vector<std::thread> threads;
  std::atomic<unsigned> answered{0};
  std::atomic<bool> over{false};
  std::thread server([&] {
    while (!over || disk_->held() > 0)
      if (disk_->held() > 0) disk_->end_one();
  });
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      AlignedBuffer buffer(4096);
      for (unsigned i = 0; i < kEach; ++i) {
        const UrgencyScope scope(i % 3 == 0 ? reserved(i) : i % 3 == 1 ? kOrdinary : device::in_background());
        if (device::read(slot_, (t * kEach + i) * 4096, buffer.bytes()).ok()) ++answered;
        if (t == 0 && i % 50 == 0) slot_.keep_schedule(i % 100 == 0, 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  server.join();
  EXPECT_EQ(answered, kThreads * kEach);
}

// Ends all its requests within the call of submit() that brings the last one, and stays in that call for a while.
class EagerDisk final : public device::Disk {
 public:
  struct Seen {
    std::atomic<bool> destroyed{false}, destroyed_in_submit{false};
  };
  EagerDisk(std::size_t awaited, std::shared_ptr<Seen> seen) : awaited_(awaited), seen_(std::move(seen)) {}
  ~EagerDisk() override { seen_->destroyed = true; }

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override { return 64u << 20; }
  bool writable() const override { return true; }
  void submit(std::span<Io* const> batch) override {
    std::vector<Io*> ending;
    {
      const std::lock_guard lock(mutex_);
      held_.insert(held_.end(), batch.begin(), batch.end());
      if (held_.size() == awaited_) ending.swap(held_);
    }
    if (ending.empty()) return;
    const std::shared_ptr<Seen> seen = seen_;
    for (Io* io : ending) {
      io->status = {};
      io->done(*io);
    }
    // From here on `this` may be gone.
    for (int i = 0; i < 100 && !seen->destroyed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    seen->destroyed_in_submit = seen->destroyed.load();
  }

 private:
  const std::string name_ = "eager";
  const std::size_t awaited_;
  const std::shared_ptr<Seen> seen_;
  std::mutex mutex_;  // guards held_
  std::vector<Io*> held_;
};

TEST_F(ScheduledSlotTest, ADiskIsClosedOnlyAfterTheCallThatStartsItsLastRequests) {
  constexpr unsigned kRequests = 2 * device::RequestSchedule::kLeastUnderWay;
  const auto seen = std::make_shared<EagerDisk::Seen>();
  DiskSlot slot("slot", std::make_unique<EagerDisk>(kRequests, seen));
  slot.keep_schedule(true, 0);
  for (std::uint64_t block = 0; block < kRequests; ++block) {
    Io& io = ios_.emplace_back();
    io.op = Op::kRead;
    io.offset = block * 4096;
    io.buffers = {buffer_.bytes()};
    io.context = &ended_;
    io.done = [](Io& done) { ++*static_cast<std::atomic<unsigned>*>(done.context); };
    Io* const one = &io;
    slot.submit({&one, 1});
  }
  EXPECT_EQ(ended_, 0u);
  std::thread starter([&] { slot.keep_schedule(false, 0); });
  while (ended_ < kRequests) std::this_thread::yield();
  slot.detach();
  starter.join();
  EXPECT_TRUE(seen->destroyed);
  EXPECT_FALSE(seen->destroyed_in_submit);
}

}  // namespace
}  // namespace mdfs::store
