// Long operations: one of a kind at a time, within its budget, stopped and carried on, whatever happens between.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/runner.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "fixture.h"

namespace mdfs::maintenance {
namespace {

using namespace volume;  // NOLINT: the fixture and what it prints errors with

constexpr OperationKind kKind = OperationKind::kDefrag;
constexpr std::uint64_t kMiB = 1u << 20;

// Counts to parameters[0], a MiB a step.
class Counting final : public Operation {
 public:
  Status begin(OperationRun& run) override {
    if (run.record.parameters[0] == 0) return {Errc::kInvalidArgument, "nothing to count"};
    run.record.bytes_total = run.record.parameters[0] * kMiB;
    return {};
  }
  Status resume(OperationRun&) override {
    ++resumed;
    return {};
  }
  Result<bool> step(OperationRun& run) override {
    if (run.record.cursor[0] == run.record.parameters[0]) {
      --late;
      return true;
    }
    if (fails) return Error{Errc::kIo, "told to fail"};
    if (blocks) {
      std::unique_lock lock(mutex);
      entered = true;
      changed.notify_all();
      while (!run.stopping()) changed.wait_for(lock, std::chrono::milliseconds(1));
    }
    run.spend(kMiB);
    run.record.bytes_done += kMiB;
    ++steps;
    return ++run.record.cursor[0] == run.record.parameters[0];
  }
  bool at_checkpoint() const override { return steps % checkpoint_every == 0; }
  bool has_new_work() const override { return late > 0; }

  std::atomic<int> resumed{0}, steps{0};
  std::atomic<int> late{0};  // pieces of work that are there when all has been counted
  std::atomic<bool> fails{false}, blocks{false};
  int checkpoint_every = 1;
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false;
};

class RunnerTest : public VolumeTest {
 protected:
  RunnerTest() {
    EXPECT_OK(set_log_level("off"));
    make();
  }

  // As a mount makes it; there is no other one of this kind in the volume.
  void make() {
    operations_ = std::make_unique<Runner>(store(), environment_, readers_);
    auto counting = std::make_unique<Counting>();
    counting_ = counting.get();
    operations_->add(kKind, std::move(counting));
    EXPECT_OK(operations_->load());
  }
  void remount() {
    operations_.reset();
    mount();
    make();
  }
  static OperationRequest request(std::uint64_t count, std::uint64_t budget = 0) {
    OperationRequest wanted;
    wanted.kind = kKind;
    wanted.parameters[0] = count;
    wanted.budget_bytes_s = budget;
    return wanted;
  }
  OperationRecord status() {
    const auto record = operations_->status(kKind);
    EXPECT_OK(record);
    return record.ok() ? *record : OperationRecord();
  }
  int run_all() {
    int turns = 0;
    while (operations_->turn().worked) ++turns;
    return turns;
  }

  std::atomic<unsigned> readers_{0};
  std::unique_ptr<Runner> operations_;
  Counting* counting_ = nullptr;
};

TEST_F(RunnerTest, OneRunsToItsEndAndItsFiguresStay) {
  EXPECT_ERROR(Errc::kNoData, operations_->status(kKind));
  EXPECT_ERROR(Errc::kInvalidArgument, operations_->start(request(0)));
  EXPECT_ERROR(Errc::kNoData, operations_->status(kKind));
  EXPECT_OK(operations_->start(request(3)));
  EXPECT_TRUE(status().running());
  EXPECT_EQ(run_all(), 3);
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
  EXPECT_EQ(status().bytes_done, 3 * kMiB);
  EXPECT_EQ(operations_->turn().wait_ns, Turn::kIdle);
  remount();
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
  EXPECT_EQ(status().bytes_done, 3 * kMiB);
  EXPECT_EQ(counting_->resumed, 0);
}

TEST_F(RunnerTest, WorkThatWasRefusedARunOfItsOwnIsNotForgottenAtTheEnd) {
  counting_->late = 1;
  EXPECT_OK(operations_->start(request(1)));
  EXPECT_TRUE(operations_->turn().worked);
  EXPECT_TRUE(status().running());  // and nobody has seen it done
  EXPECT_ERROR(Errc::kBusy, operations_->start(request(1)));
  EXPECT_EQ(run_all(), 1);
  EXPECT_EQ(counting_->late, 0);
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
}

TEST_F(RunnerTest, OnlyOneOfAKindRuns) {
  EXPECT_OK(operations_->start(request(3)));
  EXPECT_ERROR(Errc::kBusy, operations_->start(request(3)));
  EXPECT_ERROR(Errc::kBusy, operations_->resume(kKind, std::nullopt));
  OperationRequest other = request(1);
  other.kind = OperationKind::kDrain;
  EXPECT_ERROR(Errc::kNotSupported, operations_->start(other));
  other.kind = static_cast<OperationKind>(77);
  EXPECT_ERROR(Errc::kInvalidArgument, operations_->start(other));
  run_all();
  EXPECT_OK(operations_->start(request(1)));
}

TEST_F(RunnerTest, WhatIsCancelledGoesOnWhenItIsTold) {
  EXPECT_ERROR(Errc::kNoData, operations_->cancel(kKind));
  EXPECT_ERROR(Errc::kNoData, operations_->resume(kKind, std::nullopt));
  EXPECT_OK(operations_->start(request(5)));
  EXPECT_TRUE(operations_->turn().worked);
  EXPECT_OK(operations_->cancel(kKind));
  EXPECT_ERROR(Errc::kNoData, operations_->cancel(kKind));
  EXPECT_EQ(run_all(), 0);
  remount();
  EXPECT_EQ(status().state, MDFS_OPERATION_CANCELLED);
  EXPECT_EQ(status().cursor[0], 1u);
  EXPECT_EQ(run_all(), 0);
  EXPECT_OK(operations_->resume(kKind, std::nullopt));
  EXPECT_EQ(run_all(), 4);
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
  EXPECT_ERROR(Errc::kNoData, operations_->resume(kKind, std::nullopt));
}

TEST_F(RunnerTest, WhatWasRunningGoesOnAtTheNextMount) {
  EXPECT_OK(operations_->start(request(5)));
  EXPECT_TRUE(operations_->turn().worked);
  EXPECT_TRUE(operations_->turn().worked);
  remount();
  EXPECT_EQ(counting_->resumed, 1);
  EXPECT_TRUE(status().running());
  EXPECT_EQ(run_all(), 3);
}

TEST_F(RunnerTest, AStartThatReturnedSurvivesACrash) {
  EXPECT_OK(operations_->start(request(5)));
  test::MemoryDisks left;
  for (const auto& disk : disks_) left.push_back(disk->clone());
  auto again = test::open_volume(test::borrowed(left), test::quiet_options(), environment_);
  ASSERT_OK(again);
  Runner found((*again)->store(), environment_, readers_);
  found.add(kKind, std::make_unique<Counting>());
  EXPECT_OK(found.load());
  ASSERT_OK(found.status(kKind));
  EXPECT_TRUE(found.status(kKind)->running());
  int turns = 0;
  while (found.turn().worked) ++turns;
  EXPECT_EQ(turns, 5);
}

TEST_F(RunnerTest, ABudgetIsKept) {
  EXPECT_ERROR(Errc::kInvalidArgument, operations_->start(request(10, 100)));
  EXPECT_OK(operations_->start(request(40, 2 * kMiB)));  // a step each half of a second
  const std::int64_t start_ns = environment_.monotonic_ns();
  for (int steps = 0; steps < 40;) {
    const Turn turn = operations_->turn();
    if (turn.worked) {
      ++steps;
    } else {
      ASSERT_NE(turn.wait_ns, Turn::kIdle);
      environment_.advance_ns(turn.wait_ns);
    }
  }
  const double seconds = static_cast<double>(environment_.monotonic_ns() - start_ns) / 1e9;
  EXPECT_GT(seconds, 39 * 0.5 - 0.11);
  EXPECT_LT(seconds, 39 * 0.5 + 0.1);
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
}

TEST_F(RunnerTest, ABudgetCanBeChangedWhileItRuns) {
  EXPECT_OK(operations_->start(request(40, Runner::kLeastBudget)));
  EXPECT_TRUE(operations_->turn().worked);
  EXPECT_GT(operations_->turn().wait_ns, 200'000'000'000);
  EXPECT_OK(operations_->resume(kKind, 0));
  EXPECT_EQ(run_all(), 39);
}

TEST_F(RunnerTest, ReadersAreWaitedForButNotForEver) {
  EXPECT_OK(operations_->start(request(3)));
  readers_ = 1;
  for (int step = 0; step < 3; ++step) {
    const std::int64_t before_ns = environment_.monotonic_ns();
    Turn turn;
    while (!(turn = operations_->turn()).worked) environment_.advance_ns(turn.wait_ns);
    EXPECT_GE(environment_.monotonic_ns() - before_ns, Runner::kMostYieldNs);
    EXPECT_LE(environment_.monotonic_ns() - before_ns, 2 * Runner::kMostYieldNs);
  }
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
}

TEST_F(RunnerTest, WhatCameAfterACheckpointIsDoneAndCountedAgain) {
  counting_->checkpoint_every = 4;
  EXPECT_OK(operations_->start(request(10)));
  for (int step = 0; step < 7; ++step) EXPECT_TRUE(operations_->turn().worked);
  EXPECT_OK(operations_->cancel(kKind));
  EXPECT_EQ(status().bytes_done, 7 * kMiB);
  EXPECT_OK(operations_->resume(kKind, std::nullopt));
  EXPECT_EQ(status().bytes_done, 4 * kMiB);
  counting_->steps = 0;
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(operations_->turn().worked);
  EXPECT_EQ(status().bytes_done, 9 * kMiB);
  remount();
  EXPECT_EQ(status().bytes_done, 8 * kMiB);
  EXPECT_EQ(run_all(), 2);
  EXPECT_EQ(status().bytes_done, 10 * kMiB);
}

TEST_F(RunnerTest, AFailureIsNamedAndMayBeTriedAgain) {
  EXPECT_OK(operations_->start(request(3)));
  EXPECT_TRUE(operations_->turn().worked);
  counting_->fails = true;
  run_all();
  EXPECT_EQ(status().state, MDFS_OPERATION_FAILED);
  EXPECT_NE(status().reason.find("told to fail"), std::string::npos);
  remount();
  EXPECT_EQ(status().state, MDFS_OPERATION_FAILED);
  EXPECT_OK(operations_->resume(kKind, std::nullopt));
  EXPECT_EQ(run_all(), 2);
  EXPECT_EQ(status().reason, "");
}

TEST_F(RunnerTest, CancelDoesNotWaitForALongStep) {
  counting_->blocks = true;
  operations_->start_thread();
  EXPECT_OK(operations_->start(request(1000)));
  {
    std::unique_lock lock(counting_->mutex);
    counting_->changed.wait(lock, [&] { return counting_->entered; });
  }
  EXPECT_OK(operations_->cancel(kKind));
  EXPECT_EQ(status().state, MDFS_OPERATION_CANCELLED);
  counting_->blocks = false;
  const int steps = counting_->steps;
  EXPECT_OK(operations_->resume(kKind, std::nullopt));
  while (status().running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(status().state, MDFS_OPERATION_DONE);
  EXPECT_EQ(counting_->steps, 1000);
  EXPECT_GT(steps, 0);
}

TEST_F(RunnerTest, ClosingStopsTheThreadInTheMiddle) {
  counting_->blocks = true;
  operations_->start_thread();
  EXPECT_OK(operations_->start(request(1000)));
  {
    std::unique_lock lock(counting_->mutex);
    counting_->changed.wait(lock, [&] { return counting_->entered; });
  }
  remount();
  EXPECT_TRUE(status().running());
  EXPECT_GT(status().cursor[0], 0u);
}

TEST_F(RunnerTest, AnItemThatMakesNoSenseIsLeftAlone) {
  EXPECT_OK(store().transact(store::Purpose::kNormal, [](store::Transaction& transaction) -> Status {
    transaction.put(operation_key(kKind), ByteVector(400));
    return {};
  }));
  remount();
  EXPECT_ERROR(Errc::kNoData, operations_->status(kKind));
  EXPECT_OK(operations_->start(request(2)));
  EXPECT_EQ(run_all(), 2);
}

}  // namespace
}  // namespace mdfs::maintenance
