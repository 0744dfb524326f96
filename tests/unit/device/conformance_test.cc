// What every Disk does, checked against each kind of disk.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "backends.h"
#include "base/aligned_buffer.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

constexpr std::uint64_t kSize = 1u << 20;
constexpr std::size_t kBlock = kAlignment;

AlignedBuffer filled(std::size_t bytes, unsigned seed) {
  AlignedBuffer buffer(bytes);
  std::minstd_rand generator(seed + 1);
  for (auto& byte : buffer.bytes()) byte = static_cast<std::byte>(generator() >> 8);
  return buffer;
}

bool same(ConstBytes a, ConstBytes b) { return std::ranges::equal(a, b); }

bool is_zero(ConstBytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

Io discard(std::uint64_t offset, std::uint64_t bytes) {
  Io io;
  io.op = Op::kDiscard;
  io.offset = offset;
  io.discard_bytes = bytes;
  return io;
}

std::string kind_name(const testing::TestParamInfo<BackendKind>& kind) { return kind.param.name; }

class DiskConformance : public testing::TestWithParam<BackendKind> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make(kSize, true);
  Disk& disk_ = backend_->disk();
};

TEST_P(DiskConformance, ANewDiskHasItsSizeAndReadsAsZeros) {
  EXPECT_EQ(disk_.size_bytes(), kSize);
  EXPECT_TRUE(disk_.writable());
  EXPECT_FALSE(disk_.name().empty());
  auto buffer = filled(kSize, 1);
  ASSERT_TRUE(read(disk_, 0, buffer.bytes()).ok());
  EXPECT_TRUE(is_zero(buffer.bytes()));
}

TEST_P(DiskConformance, WhatWasWrittenIsReadAndItsNeighboursAreUntouched) {
  const auto data = filled(3 * kBlock, 2);
  ASSERT_TRUE(write(disk_, 5 * kBlock, data.bytes()).ok());
  ASSERT_TRUE(flush(disk_).ok());
  auto back = filled(5 * kBlock, 3);
  ASSERT_TRUE(read(disk_, 4 * kBlock, back.bytes()).ok());
  EXPECT_TRUE(is_zero(back.bytes().first(kBlock)));
  EXPECT_TRUE(same(back.bytes().subspan(kBlock, 3 * kBlock), data.bytes()));
  EXPECT_TRUE(is_zero(back.bytes().last(kBlock)));
}

TEST_P(DiskConformance, ManyBuffersAreTransferredInOrder) {
  auto data = filled(kMaxIoVectors * kBlock / 2, 4);
  auto back = filled(data.size(), 5);
  Io out;
  Io in;
  out.op = Op::kWrite;
  in.op = Op::kRead;
  // Every other block is a buffer; the buffers of the read run backwards through memory.
  const std::size_t count = data.size() / kBlock / 2;
  for (std::size_t i = 0; i < count; ++i) {
    out.buffers.push_back(data.bytes().subspan(2 * i * kBlock, kBlock));
    in.buffers.push_back(back.bytes().subspan((count - 1 - i) * kBlock, kBlock));
  }
  const Addressed write_request{&disk_, &out};
  const Addressed read_request{&disk_, &in};
  ASSERT_TRUE(run({&write_request, 1}).ok());
  ASSERT_TRUE(run({&read_request, 1}).ok());
  for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(same(out.buffers[i], in.buffers[i])) << i;
}

TEST_P(DiskConformance, ALargeBatchCompletesEachRequestOnce) {
  constexpr std::size_t kRequests = kSize / kBlock;
  auto data = filled(kSize, 6);
  std::vector<Io> ios(kRequests);
  std::vector<Addressed> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    ios[i].op = Op::kWrite;
    ios[i].offset = i * kBlock;
    ios[i].buffers.push_back(data.bytes().subspan(i * kBlock, kBlock));
    requests.push_back({&disk_, &ios[i]});
  }
  ASSERT_TRUE(run(requests).ok());
  AlignedBuffer back(kSize);
  ASSERT_TRUE(read(disk_, 0, back.bytes()).ok());
  EXPECT_TRUE(same(back.bytes(), data.bytes()));
}

TEST_P(DiskConformance, DiscardedBytesReadAsZerosAndOthersStay) {
  const auto data = filled(kSize, 7);
  ASSERT_TRUE(write(disk_, 0, data.bytes()).ok());
  Io io = discard(16 * kBlock, 64 * kBlock);
  const Addressed request{&disk_, &io};
  ASSERT_TRUE(run({&request, 1}).ok());
  AlignedBuffer back(kSize);
  ASSERT_TRUE(read(disk_, 0, back.bytes()).ok());
  EXPECT_TRUE(same(back.bytes().first(16 * kBlock), data.bytes().first(16 * kBlock)));
  EXPECT_TRUE(is_zero(back.bytes().subspan(16 * kBlock, 64 * kBlock)));
  EXPECT_TRUE(same(back.bytes().subspan(80 * kBlock), data.bytes().subspan(80 * kBlock)));
}

TEST_P(DiskConformance, RequestsPastTheEndFailAndNameDiskOffsetAndLength) {
  auto buffer = filled(2 * kBlock, 8);
  for (const std::uint64_t offset : {kSize - kBlock, kSize, kSize * 2, std::uint64_t{0} - 2 * kBlock}) {
    for (const auto& status : {read(disk_, offset, buffer.bytes()), write(disk_, offset, buffer.bytes())}) {
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, Errc::kIo);
      EXPECT_NE(status.error().where.find(disk_.name()), std::string::npos);
      EXPECT_NE(status.error().where.find("8192 bytes at " + std::to_string(offset)), std::string::npos)
          << status.error().where;
    }
  }
  AlignedBuffer back(kSize);
  ASSERT_TRUE(read(disk_, 0, back.bytes()).ok());
  EXPECT_TRUE(is_zero(back.bytes()));
}

TEST_P(DiskConformance, OneBadRequestInABatchDoesNotDisturbTheOthers) {
  auto data = filled(3 * kBlock, 9);
  std::vector<Io> ios(3);
  std::vector<Addressed> requests;
  for (std::size_t i = 0; i < 3; ++i) {
    ios[i].op = Op::kWrite;
    ios[i].offset = i == 1 ? kSize : i * kBlock;
    ios[i].buffers.push_back(data.bytes().subspan(i * kBlock, kBlock));
    requests.push_back({&disk_, &ios[i]});
  }
  EXPECT_FALSE(run(requests).ok());
  EXPECT_TRUE(ios[0].status.ok());
  EXPECT_FALSE(ios[1].status.ok());
  EXPECT_TRUE(ios[2].status.ok());
  AlignedBuffer back(3 * kBlock);
  ASSERT_TRUE(read(disk_, 0, back.bytes()).ok());
  EXPECT_TRUE(same(back.bytes().last(kBlock), data.bytes().last(kBlock)));
}

TEST_P(DiskConformance, AReadOnlyDiskRefusesChangesAndReads) {
  auto backend = GetParam().make(kSize, false);
  Disk& disk = backend->disk();
  EXPECT_FALSE(disk.writable());
  auto buffer = filled(kBlock, 10);
  const auto status = write(disk, 0, buffer.bytes());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kReadOnly);
  Io io = discard(0, kBlock);
  const Addressed request{&disk, &io};
  EXPECT_FALSE(run({&request, 1}).ok());
  ASSERT_TRUE(read(disk, 0, buffer.bytes()).ok());
  EXPECT_TRUE(is_zero(buffer.bytes()));
  EXPECT_TRUE(flush(disk).ok());
}

TEST_P(DiskConformance, ACompletionMaySubmitTheNextRequest) {
  struct Chain {
    Disk* disk;
    Io io;
    AlignedBuffer buffer{kBlock};
    std::atomic<int> left{100};
    std::atomic<bool> failed{false};
  };
  Chain chain{&disk_, {}};
  chain.io.op = Op::kRead;
  chain.io.buffers.push_back(chain.buffer.bytes());
  chain.io.context = &chain;
  chain.io.done = [](Io& io) {
    auto& c = *static_cast<Chain*>(io.context);
    if (!io.status.ok()) c.failed = true;
    if (c.left.fetch_sub(1) <= 1) {
      c.left.notify_all();
      return;
    }
    io.offset += kBlock;
    Io* next = &io;
    c.disk->submit({&next, 1});
  };
  Io* first = &chain.io;
  disk_.submit({&first, 1});
  for (int left = chain.left; left > 0; left = chain.left) chain.left.wait(left);
  EXPECT_FALSE(chain.failed);
  ASSERT_TRUE(flush(disk_).ok());  // `chain` outlives the last call of its completion
}

RC_GTEST_PROP(DiskProperty, EveryKindOfDiskBehavesAsAByteArray, ()) {
  struct Step {
    int op;
    std::uint64_t block;
    std::uint64_t blocks;
    unsigned seed;
  };
  constexpr std::uint64_t kBlocks = 64;
  const auto gen_step =
      rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 8), rc::gen::inRange<std::uint64_t>(0, kBlocks),
                                  rc::gen::inRange<std::uint64_t>(1, kBlocks), rc::gen::arbitrary<std::uint16_t>()),
                   [](const auto& t) {
                     const auto& [op, block, blocks, seed] = t;
                     return Step{op, block, std::min(blocks, kBlocks - block), seed};
                   });
  const auto steps = *rc::gen::container<std::vector<Step>>(gen_step);
  for (const auto& kind : backend_kinds()) {
    auto backend = kind.make(kBlocks * kBlock, true);
    Disk& disk = backend->disk();
    ByteVector model(kBlocks * kBlock);
    for (const auto& step : steps) {
      const MutableBytes part = MutableBytes(model).subspan(step.block * kBlock, step.blocks * kBlock);
      if (step.op < 4) {
        const auto data = filled(part.size(), step.seed);
        RC_ASSERT(write(disk, step.block * kBlock, data.bytes()).ok());
        std::ranges::copy(data.bytes(), part.begin());
      } else if (step.op < 6) {
        AlignedBuffer back(part.size());
        RC_ASSERT(read(disk, step.block * kBlock, back.bytes()).ok());
        RC_ASSERT(same(back.bytes(), part));
      } else if (step.op == 6) {
        RC_ASSERT(flush(disk).ok());
      } else {
        Io io = discard(step.block * kBlock, part.size());
        const Addressed request{&disk, &io};
        RC_ASSERT(run({&request, 1}).ok());
        std::ranges::fill(part, std::byte{0});
      }
    }
    AlignedBuffer back(model.size());
    RC_ASSERT(read(disk, 0, back.bytes()).ok());
    RC_ASSERT(same(back.bytes(), model));
  }
}

// Each thread owns a stripe of the disk and keeps its own byte array; batches of several requests are in flight.
TEST_P(DiskConformance, ConcurrentThreadsEachSeeTheirOwnByteArray) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kBlocks = kSize / kBlock / kThreads;
  std::atomic<int> mistakes{0};
  auto work = [&](std::size_t t) {
    std::mt19937 generator(static_cast<unsigned>(t));
    const std::uint64_t base = t * kBlocks * kBlock;
    ByteVector model(kBlocks * kBlock);
    AlignedBuffer memory(8 * kBlock);
    for (int round = 0; round < 60; ++round) {
      std::vector<Io> ios(8);
      std::vector<Addressed> requests;
      const std::size_t first = generator() % (kBlocks - 8);
      const bool writing = generator() % 2 == 0;
      for (std::size_t i = 0; i < 8; ++i) {
        const auto buffer = memory.bytes().subspan(i * kBlock, kBlock);
        if (writing) std::ranges::fill(buffer, static_cast<std::byte>(generator()));
        ios[i].op = writing ? Op::kWrite : Op::kRead;
        ios[i].offset = base + (first + i) * kBlock;
        ios[i].buffers.push_back(buffer);
        requests.push_back({&disk_, &ios[i]});
      }
      if (!run(requests).ok()) ++mistakes;
      const auto part = MutableBytes(model).subspan(first * kBlock, 8 * kBlock);
      if (writing) std::ranges::copy(memory.bytes(), part.begin());
      if (!same(memory.bytes(), part)) ++mistakes;
      if (round % 16 == 0 && !flush(disk_).ok()) ++mistakes;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  }
  EXPECT_EQ(mistakes, 0);
}

using DiskDeathTest = DiskConformance;

TEST_P(DiskDeathTest, AnUnalignedRequestIsAProgrammersError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto buffer = filled(2 * kBlock, 11);
  EXPECT_DEATH((void)read(disk_, 512, buffer.bytes()), "check failed");
  EXPECT_DEATH((void)read(disk_, 0, buffer.bytes().first(100)), "check failed");
  EXPECT_DEATH((void)write(disk_, 0, buffer.bytes().subspan(512, kBlock)), "check failed");
}

INSTANTIATE_TEST_SUITE_P(EachKind, DiskConformance, testing::ValuesIn(backend_kinds()), kind_name);
INSTANTIATE_TEST_SUITE_P(EachKind, DiskDeathTest, testing::Values(backend_kinds().front()), kind_name);

TEST(RunTest, GivesTheFirstErrorInTheOrderOfTheList) {
  auto a = backend_kinds().front().make(kSize, true);
  auto b = backend_kinds().front().make(kSize, false);
  auto buffer = filled(kBlock, 12);
  std::vector<Io> ios(3);
  for (auto& io : ios) {
    io.op = Op::kWrite;
    io.buffers.push_back(buffer.bytes());
  }
  ios[2].offset = kSize;
  const std::vector<Addressed> requests = {{&a->disk(), &ios[0]}, {&b->disk(), &ios[1]}, {&a->disk(), &ios[2]}};
  const auto status = run(requests);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Errc::kReadOnly);
  EXPECT_TRUE(ios[0].status.ok());
  EXPECT_EQ(ios[2].status.error().code, Errc::kIo);
}

TEST(RunTest, NothingToDoIsDone) { EXPECT_TRUE(run({}).ok()); }

}  // namespace
}  // namespace mdfs::device
