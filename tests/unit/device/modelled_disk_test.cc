// Modelled disks by a clock that the test moves: each answer comes when the modelled machine says, and not before.
// SPDX-License-Identifier: Apache-2.0
#include "device/modelled_disk.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "base/aligned_buffer.h"
#include "device/testing/faulty_disk.h"
#include "device/testing/memory_disk.h"
#include "fake_waiter.h"
#include "model/route.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kDiskBytes = 1u << 20;
constexpr std::size_t kBlock = kAlignment;
constexpr double kTolerance = 2e-9;  // the clock of waiters counts whole nanoseconds

model::Machine machine_of(const std::string& resources_and_stages) {
  const auto machine = model::parse_machine("name = \"test\"\n" + resources_and_stages, "test");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  return *machine;
}

// 10 ms + bytes / 4.096 MB/s: a block takes 11 ms.
const char* const kPlainDisk = R"(
[[resource]]
name = "disk"
count = "disks"
[[stage]]
name = "read"
resource = "disk"
cost = ["10 ms", "full / 4.096 MB/s"]
)";

// A decorator that holds a borrowed disk, so that a test can keep the disk below.
class Borrowed final : public Disk {
 public:
  explicit Borrowed(Disk& disk) : disk_(disk) {}
  const std::string& name() const override { return disk_.name(); }
  std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  bool writable() const override { return disk_.writable(); }
  void submit(std::span<Io* const> batch) override { disk_.submit(batch); }

 private:
  Disk& disk_;
};

struct Order {
  std::size_t number;
  double at_s;
  bool ok;
};

class Bench {
 public:
  Bench(const model::Machine& machine, unsigned disks, std::int64_t late_ns = 0) : waiter_(late_ns) {
    machine_ = ModelledMachine::start(machine, disks, 1, waiter_).value();
    start_ns_ = waiter_.now_ns();
    for (unsigned i = 0; i < disks; ++i) {
      memory_.push_back(std::make_unique<MemoryDisk>("memory" + std::to_string(i), kDiskBytes));
      faulty_.push_back(std::make_unique<FaultyDisk>(*memory_.back(), std::vector<Fault>{}));
      disks_.push_back(std::make_unique<ModelledDisk>(std::make_unique<Borrowed>(*faulty_.back()), machine_, i));
    }
  }

  // Numbered in the order of the calls.
  void submit(unsigned disk, Op op, std::uint64_t offset, std::size_t bytes) {
    Job& job = jobs_.emplace_back();
    job.bench = this;
    job.number = jobs_.size() - 1;
    job.io.op = op;
    job.io.offset = offset;
    if (op != Op::kFlush) {
      job.buffer = AlignedBuffer(bytes);
      job.io.buffers.push_back(job.buffer.bytes());
    }
    job.io.context = &job;
    job.io.done = [](Io& io) {
      auto& done = *static_cast<Job*>(io.context);
      const std::lock_guard lock(done.bench->mutex_);
      done.bench->done_.push_back({done.number, done.bench->now_s(), io.status.ok()});
    };
    Io* io = &job.io;
    disks_[disk]->submit({&io, 1});
  }
  void read(unsigned disk, std::uint64_t offset = 0, std::size_t bytes = kBlock) {
    submit(disk, Op::kRead, offset, bytes);
  }
  void advance_to(double s) { waiter_.advance_to(start_ns_ + static_cast<std::int64_t>(s * 1e9)); }
  double now_s() { return static_cast<double>(waiter_.now_ns() - start_ns_) * 1e-9; }
  std::vector<Order> done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  FakeWaiter waiter_;
  std::shared_ptr<ModelledMachine> machine_;
  std::int64_t start_ns_ = 0;
  std::vector<std::unique_ptr<MemoryDisk>> memory_;
  std::vector<std::unique_ptr<FaultyDisk>> faulty_;
  std::vector<std::unique_ptr<ModelledDisk>> disks_;

 private:
  struct Job {
    Bench* bench;
    std::size_t number;
    AlignedBuffer buffer{kBlock};
    Io io;
  };
  std::mutex mutex_;  // guards done_
  std::vector<Order> done_;
  std::deque<Job> jobs_;
};

void expect_order(const std::vector<Order>& done, const std::vector<std::pair<std::size_t, double>>& wanted) {
  ASSERT_EQ(done.size(), wanted.size());
  for (std::size_t i = 0; i < done.size(); ++i) {
    EXPECT_TRUE(done[i].ok);
    EXPECT_EQ(done[i].number, wanted[i].first) << i;
    EXPECT_NEAR(done[i].at_s, wanted[i].second, kTolerance) << i;
  }
}

TEST(ModelledDiskTest, ARequestTakesLatencyAndTransferAndNotAMomentLess) {
  Bench bench(machine_of(kPlainDisk), 1);
  bench.read(0, 0, 4 * kBlock);
  bench.advance_to(0.0139);
  EXPECT_TRUE(bench.done().empty());
  bench.advance_to(1);
  expect_order(bench.done(), {{0, 0.014}});
}

TEST(ModelledDiskTest, ADiskServesOneRequestAtATimeInTheOrderOfTheirComingAndDisksWorkAtOnce) {
  Bench bench(machine_of(kPlainDisk), 2);
  bench.read(0, 8 * kBlock);
  bench.read(0, 0, 2 * kBlock);
  bench.read(1);
  bench.read(0, 4 * kBlock);
  bench.advance_to(1);
  expect_order(bench.done(), {{0, 0.011}, {2, 0.011}, {1, 0.023}, {3, 0.034}});
}

TEST(ModelledDiskTest, ARequestThatComesLaterBeginsThen) {
  Bench bench(machine_of(kPlainDisk), 1);
  bench.advance_to(0.5);
  bench.read(0);
  bench.advance_to(0.505);
  bench.read(0);
  bench.advance_to(1);
  expect_order(bench.done(), {{0, 0.511}, {1, 0.522}});
}

TEST(ModelledDiskTest, NeighboursShareALinkAfterTheirDisks) {
  // Two links for four disks: 0 and 1, 2 and 3. A block takes 4 ms on a link.
  Bench bench(machine_of(std::string(R"(
[[resource]]
name = "disk"
count = "disks"
[[resource]]
name = "link"
count = 2
shared_by = "disk"
[[stage]]
name = "read"
resource = "disk"
cost = "10 ms"
[[stage]]
name = "send"
resource = "link"
cost = "part / 1.024 MB/s"
)")),
              4);
  for (unsigned disk : {0, 1, 2, 0}) bench.read(disk);
  bench.advance_to(1);
  expect_order(bench.done(), {{0, 0.014}, {2, 0.014}, {1, 0.018}, {3, 0.024}});
  const ModelledReport report = bench.machine_->report();
  ASSERT_EQ(report.components.size(), 6U);
  EXPECT_EQ(report.components[4].name, "link");
  EXPECT_EQ(report.components[4].served, 3U);
  EXPECT_EQ(report.components[4].max_queue, 1U);
  EXPECT_NEAR(report.components[4].busy_s, 0.012, 1e-8);
}

TEST(ModelledDiskTest, SeveralServersServeSeveralRequestsAtATime) {
  Bench bench(machine_of(R"(
[[resource]]
name = "flash"
count = "disks"
servers = 3
[[stage]]
name = "read"
resource = "flash"
cost = "10 ms"
)"),
              1);
  for (int i = 0; i < 7; ++i) bench.read(0);
  bench.advance_to(1);
  expect_order(bench.done(), {{0, .01}, {1, .01}, {2, .01}, {3, .02}, {4, .02}, {5, .02}, {6, .03}});
}

TEST(ModelledDiskTest, AThreadThatWakesLateMakesNoLaterRequestLater) {
  constexpr std::int64_t kLateNs = 3'000'000;
  Bench bench(machine_of(kPlainDisk), 1, kLateNs);
  for (int i = 0; i < 100; ++i) bench.read(0);
  bench.advance_to(2);
  const auto done = bench.done();
  ASSERT_EQ(done.size(), 100U);
  // Each is 3 ms late, not 3 ms more than the one before.
  for (std::size_t i = 0; i < done.size(); ++i)
    EXPECT_NEAR(done[i].at_s, 0.011 * static_cast<double>(i + 1) + 0.003, kTolerance);
}

TEST(ModelledDiskTest, TheThreadSleepsOnceForEachThingThatHappens) {
  Bench bench(machine_of(kPlainDisk), 1);
  for (int i = 0; i < 50; ++i) bench.read(0);
  bench.advance_to(5);
  // One sleep before, one for each completion, and few for the coming of requests.
  EXPECT_LE(bench.waiter_.sleeps(), 50U + 50U + 2U);
}

TEST(ModelledDiskTest, AnAnswerWaitsForTheDiskBelowAndIsCountedAsLate) {
  Bench bench(machine_of(kPlainDisk), 1);
  bench.faulty_[0]->add({.kind = FaultKind::kStuck});
  bench.read(0);
  bench.advance_to(0.5);
  EXPECT_TRUE(bench.done().empty());
  bench.faulty_[0]->release();
  expect_order(bench.done(), {{0, 0.5}});
  const ModelledReport report = bench.machine_->report();
  EXPECT_EQ(report.disks[0].late, 1U);
  EXPECT_NEAR(report.disks[0].max_late_s, 0.489, 1e-8);
  EXPECT_NE(report_text(report).find("memory0 itself was slower"), std::string::npos);
}

TEST(ModelledDiskTest, FlushesAndErrorsPassThrough) {
  Bench bench(machine_of(kPlainDisk), 1);
  bench.submit(0, Op::kFlush, 0, 0);
  expect_order(bench.done(), {{0, 0}});
  bench.faulty_[0]->add({.kind = FaultKind::kError});
  bench.read(0);
  bench.advance_to(1);
  const auto done = bench.done();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_FALSE(done[1].ok);
  EXPECT_NEAR(done[1].at_s, 0.011, kTolerance);
}

TEST(ModelledDiskTest, TheReportCountsRequestsBytesBusyTimeAndQueues) {
  Bench bench(machine_of(kPlainDisk), 2);
  bench.read(0, 0, 2 * kBlock);
  bench.submit(0, Op::kWrite, 0, kBlock);
  bench.read(0);
  bench.advance_to(0.1);
  const ModelledReport report = bench.machine_->report();
  EXPECT_EQ(report.machine, "test");
  EXPECT_NEAR(report.seconds, 0.1, 1e-8);
  ASSERT_EQ(report.disks.size(), 2U);
  const ModelledDiskUse& disk = report.disks[0];
  EXPECT_EQ(disk.name, "memory0");
  EXPECT_EQ(disk.reads, 2U);
  EXPECT_EQ(disk.writes, 1U);
  EXPECT_EQ(disk.read_bytes, 3 * kBlock);
  EXPECT_EQ(disk.written_bytes, kBlock);
  EXPECT_EQ(disk.max_requests, 3U);
  EXPECT_NEAR(disk.delay_s, 0.012 + 0.023 + 0.034, 1e-8);
  EXPECT_NEAR(disk.max_delay_s, 0.034, 1e-8);
  EXPECT_EQ(disk.late, 0U);
  EXPECT_EQ(report.disks[1].reads, 0U);
  const ComponentUse& station = report.components[0];
  EXPECT_EQ(station.served, 3U);
  EXPECT_NEAR(station.busy_s, 0.034, 1e-8);
  EXPECT_NEAR(station.utilization, 0.34, 1e-6);
  EXPECT_EQ(station.max_queue, 2U);
  // Two wait for 12 ms, one for another 11.
  EXPECT_NEAR(station.mean_queue, (2 * 0.012 + 0.011) / 0.1, 1e-6);
}

TEST(ModelledDiskTest, ARequestThatTouchesTheLastOneNeedsNoSeekAndOthersSeekByTheirDistance) {
  const char* const kHeadDisk = R"(
[[resource]]
name = "disk"
count = "disks"
head = { track = "1 ms", stroke = "17 ms", rotation = "0 s", capacity = "16 MiB" }
[[stage]]
name = "read"
resource = "disk"
cost = ["head", "1 ms"]
)";
  Bench bench(machine_of(kHeadDisk), 1);  // of 1 MiB: stretched 16 times
  bench.read(0, 0);                       // there already
  bench.read(0, kBlock);                  // behind it
  bench.read(0, kDiskBytes / 4 + 2 * kBlock);
  bench.advance_to(1);
  expect_order(bench.done(), {{0, 0.001}, {1, 0.002}, {2, 0.002 + 0.001 + 0.001 + 0.016 * 0.5}});
}

// The same requests in the engine of the simulator, without a clock, thread or disk.
class Reference final : public model::Listener {
 public:
  void job_done(model::Engine& engine, std::uint64_t token) override { done.push_back({token, engine.now_s(), true}); }
  void alarm(model::Engine&, std::uint64_t) override {}
  std::vector<Order> done;
};

TEST(ModelledDiskTest, TheEndOfADiskWithZonesIsSlowerThanItsBeginning) {
  // A block takes 1 ms at the beginning, 2 ms at the end; the modelled disk is four times as large.
  Bench bench(machine_of(R"(
[[resource]]
name = "disk"
count = "disks"
head = { track = "0 s", stroke = "0 s", rotation = "0 s", capacity = "4 MiB" }
[[stage]]
name = "read"
resource = "disk"
cost = "full / 4.096 MB/s .. 2.048 MB/s"
)"),
              3);
  bench.read(0, 0);
  bench.read(1, kDiskBytes / 2);
  bench.read(2, kDiskBytes - kBlock);
  bench.advance_to(1);
  const double last = 1 - static_cast<double>(kBlock) / kDiskBytes;
  expect_order(bench.done(), {{0, 0.001}, {1, 0.001 / 0.75}, {2, 0.001 / (1 - last / 2)}});
}

TEST(ModelledDiskTest, EveryShippedMachineAnswersWhenTheSimulatorSays) {
  for (const model::Preset& preset : model::presets()) {
    const model::Machine machine = model::find_machine(std::string(preset.name)).value();
    const model::Route route(machine, 4, false);
    if (!route.has(model::Route::Phase::kExtent)) continue;
    const bool moves = std::any_of(machine.resources.begin(), machine.resources.end(),
                                   [](const model::Resource& resource) { return resource.head.has_value(); });
    Bench bench(machine, 4);
    model::Engine engine(route.max_steps(), 1);
    route.add_stations(engine);
    Reference reference;
    std::vector<model::Step> steps;
    for (std::size_t i = 0; i < 40; ++i) {
      const auto disk = static_cast<unsigned>((i * 7 + i / 5) % 4);
      const std::size_t bytes = kBlock * (1 + i % 9);
      const std::uint64_t offset = kBlock * (i % 3) * 16;
      bench.read(disk, offset, bytes);
      const double scale = moves ? std::floor(4e12 / static_cast<double>(kDiskBytes)) : 1;
      const auto size = static_cast<double>(bytes);
      route.steps(model::Route::Phase::kExtent,
                  {disk, 0, size, size, static_cast<double>(offset) * scale, size * scale}, engine.random(), steps);
      engine.start(steps, i);
    }
    engine.run(reference);
    bench.advance_to(1000);
    const auto done = bench.done();
    ASSERT_EQ(done.size(), reference.done.size()) << preset.name;
    for (std::size_t i = 0; i < done.size(); ++i)
      EXPECT_NEAR(done[i].at_s, reference.done[i].at_s, kTolerance) << preset.name << " " << i;
  }
}

TEST(ModelledDiskTest, AMachineOfWholeWindowsIsRefused) {
  FakeWaiter waiter;
  const auto machine = ModelledMachine::start(model::find_machine("fixed-server").value(), 1, 1, waiter);
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code, Errc::kInvalidArgument);
  EXPECT_NE(machine.error().where.find("fixed-server"), std::string::npos);
}

TEST(SystemWaiterTest, AWaitEndsAtItsDeadlineOrWhenWoken) {
  SystemWaiter waiter;
  const std::int64_t begun = waiter.now_ns();
  waiter.wait_until(begun + 2'000'000);
  EXPECT_GE(waiter.now_ns(), begun + 2'000'000);
  waiter.wake();  // before the wait: not lost
  waiter.wait_until(Waiter::kNever);
  std::thread other([&waiter] { waiter.wake(); });
  waiter.wait_until(Waiter::kNever);
  other.join();
}

}  // namespace
}  // namespace mdfs::device
