// The way of a request through a ring entry.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_entry.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace mdfs::fuse {
namespace {

class RingEntryTest : public testing::Test, private RingEntryOwner {
 protected:
  // As the kernel leaves a write in the entry.
  void let_arrive(std::uint64_t unique, std::size_t payload_bytes) {
    fuse_in_header in{};
    in.len = static_cast<std::uint32_t>(sizeof in + sizeof(fuse_write_in) + payload_bytes);
    in.opcode = FUSE_WRITE;
    in.unique = unique;
    std::memcpy(entry_->header().in_out, &in, sizeof in);
    entry_->header().commit_id = unique;
    entry_->header().payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    std::memset(entry_->payload().data(), 1, payload_bytes);
  }
  void answer(std::uint64_t unique) {
    fuse_out_header out{.len = sizeof out, .error = 0, .unique = unique};
    const iovec part{&out, sizeof out};
    entry_->answer({&part, 1});
  }

  KeptPayloads kept_;
  std::unique_ptr<RingEntry> entry_ = RingEntry::create(*this, 0, kept_).value();
  int delivered_ = 0;
  bool delivered_in_serve_ = false;

 private:
  void deliver(RingEntry&, bool in_serve) override {
    ++delivered_;
    delivered_in_serve_ = in_serve;
  }
};

TEST_F(RingEntryTest, ARequestIsHeldFromItsArrivalInMemoryUntilItsAnswer) {
  EXPECT_FALSE(entry_->holds(8));
  let_arrive(8, 0);
  EXPECT_TRUE(entry_->holds(8));
  entry_->note_arrival();
  EXPECT_TRUE(entry_->holds(8));
  EXPECT_FALSE(entry_->holds(6));
  EXPECT_TRUE(entry_->serve([&](MutableBytes) { answer(8); }));
  EXPECT_FALSE(entry_->holds(8));
  let_arrive(10, 0);
  EXPECT_TRUE(entry_->holds(10));
}

TEST_F(RingEntryTest, AnAnswerInServeAndALaterOneAreDeliveredOnceEach) {
  let_arrive(8, 0);
  entry_->note_arrival();
  EXPECT_TRUE(entry_->serve([&](MutableBytes) {
    EXPECT_EQ(RingEntry::current(), entry_.get());
    answer(8);
    EXPECT_EQ(RingEntry::current(), nullptr);
  }));
  EXPECT_EQ(delivered_, 1);
  EXPECT_TRUE(delivered_in_serve_);
  let_arrive(10, 0);
  entry_->note_arrival();
  EXPECT_FALSE(entry_->serve([](MutableBytes) {}));
  EXPECT_EQ(entry_->unique(), 10u);
  std::thread([&] { answer(10); }).join();
  EXPECT_EQ(delivered_, 2);
  EXPECT_FALSE(delivered_in_serve_);
  EXPECT_EQ(entry_->unique(), 0u);
}

TEST_F(RingEntryTest, RequestsThatWaitForAnAnswerGiveLargePayloadsBackWhereTooManyAreKept) {
  constexpr std::size_t kLarge = 1 << 20;
  let_arrive(8, kLarge);
  entry_->note_arrival();
  EXPECT_FALSE(entry_->serve([](MutableBytes) {}));
  EXPECT_EQ(entry_->payload()[0], std::byte{1}) << "as long as there are few";
  answer(8);
  kept_.add(KeptPayloads::kMaxKeptBytes);
  let_arrive(10, kLarge);
  entry_->note_arrival();
  EXPECT_FALSE(entry_->serve([&](MutableBytes request) { EXPECT_EQ(request.back(), std::byte{1}); }));
  EXPECT_EQ(entry_->payload()[0], std::byte{0});
  EXPECT_FALSE(kept_.too_many());
  EXPECT_EQ(entry_->unique(), 10u) << "still to be answered";
}

}  // namespace
}  // namespace mdfs::fuse
