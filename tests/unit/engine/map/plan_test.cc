// A window is read with the requests that its plan shows, however many threads take part.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "device/testing/memory_disk.h"
#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using geometry::Window;

// Counts the reads that pass.
class CountingDisk final : public device::Disk {
 public:
  explicit CountingDisk(device::Disk& inner) : inner_(inner) {}
  const std::string& name() const override { return inner_.name(); }
  std::uint64_t size_bytes() const override { return inner_.size_bytes(); }
  bool writable() const override { return inner_.writable(); }
  void submit(std::span<device::Io* const> batch) override {
    for (const device::Io* io : batch)
      if (io->op == device::Op::kRead) ++reads;
    inner_.submit(batch);
  }
  std::atomic<std::uint64_t> reads{0};

 private:
  device::Disk& inner_;
};

struct WindowPlanTest : ::testing::TestWithParam<Codec> {};

constexpr unsigned kDisks = 3;
constexpr std::uint64_t kPieceBytes = 64u << 10;  // of a window, as a kernel asks for them

// Extents of one block: those of a group lie in one run, and each may be locked by another thread.
TEST_P(WindowPlanTest, ThreadsThatStartAndReadAWindowMakeTheRequestsOfItsPlan) {
  constexpr unsigned kRounds = 60, kThreads = 4;
  Setting setting;
  setting.geometry = image_of(2, {1024, 1024}, {64, 64}, GetParam());
  setting.disks = kDisks;
  setting.cache_bytes = 32u << 20;
  std::vector<std::unique_ptr<CountingDisk>> fronts;
  Bench bench(setting);
  for (unsigned i = 0; i < kDisks; ++i) {
    fronts.push_back(std::make_unique<CountingDisk>(bench.store().memory_disk(i)));
    bench.store().put_in_front(i, *fronts.back());
  }
  Window whole;
  whole.length = {1024, 1024, 0};
  std::mt19937_64 random(29);
  ASSERT_TRUE(bench.write_window(whole, noise(random, 1u << 20)).ok());
  for (unsigned round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(bench.reopen().ok());
    Window window;
    window.start = {random() % 256, random() % 256, 0};
    window.length = {600 + random() % 160, 600 + random() % 160, 0};
    const std::uint64_t bytes = geometry::window_bytes(*setting.geometry, window);
    const Result<WindowPlan> plan = bench.engine().plan(bench.object(), window, {});
    ASSERT_TRUE(plan.ok());
    for (const auto& front : fronts) front->reads = 0;
    std::atomic<std::uint64_t> next{0}, failed{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        bench.engine().start_window(bench.object(), window);  // each has opened it
        ByteVector piece(kPieceBytes);
        for (std::uint64_t at = next++ * kPieceBytes; at < bytes; at = next++ * kPieceBytes) {
          const std::size_t length = std::min<std::uint64_t>(kPieceBytes, bytes - at);
          if (!bench.engine().read_window(bench.object(), window, at, MutableBytes(piece).first(length)).ok()) ++failed;
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0u);
    std::uint64_t planned = 0, made = 0;
    for (unsigned i = 0; i < kDisks; ++i) {
      planned += plan.value().disks[i].requests;
      made += fronts[i]->reads;
    }
    EXPECT_EQ(made, planned) << "round " << round << ", window of " << bytes << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, WindowPlanTest, ::testing::Values(Codec::kRaw, Codec::kZstd),
                         [](const auto& one) { return one.param == Codec::kRaw ? "Raw" : "Zstd"; });

}  // namespace
}  // namespace mdfs::engine::testing
