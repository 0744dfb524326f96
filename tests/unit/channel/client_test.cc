// Rights, and requests of honest and of hostile clients, on a volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "channel/wait.h"
#include "fuse/channel_client.h"
#include "support/fake_volume.h"

namespace mdfs::fuse {
namespace {

constexpr std::uint64_t kArea = 1u << 20;
constexpr std::uint64_t kBuffer = 8192;
constexpr std::uint64_t kSide = 32;
constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kStep = std::chrono::milliseconds(1);

geometry::Geometry square() {
  geometry::Geometry geometry;
  geometry.rank = 2;
  geometry.type = geometry::ElementType::kU8;
  geometry.shape = {kSide, kSide};
  geometry.extent = {16, 16};
  geometry.axes = "yx";
  return geometry;
}

class ChannelClientTest : public testing::Test {
 protected:
  void SetUp() override {
    ino_ = volume_.add_image("scan", square());
    auto memory = ChannelMemory::make(kArea);
    ASSERT_TRUE(memory.ok()) << memory.error().message();
    client_ = std::make_shared<ChannelClient>(ChannelContext{volume_, queue_, level_queue_, *staging_, nullptr},
                                              std::move(memory).value(), 1);
    ASSERT_TRUE(client_->start().ok());
    auto grant = ChannelGrant::make(volume_, ino_, 7);
    ASSERT_TRUE(grant.ok());
    grant_ = std::move(grant).value();
    const auto number = client_->add_image(grant_);
    ASSERT_TRUE(number.ok());
    image_ = *number;
    auto buffer = SharedMemory::make("mdfs-buffer", kBuffer);
    ASSERT_TRUE(buffer.ok());
    const auto added = client_->buffers().add(std::make_shared<SharedMemory>(std::move(buffer).value()));
    ASSERT_TRUE(added.ok());
    buffer_ = *added;
  }
  void TearDown() override {
    while (!client_->has_ended() || client_.use_count() > 1) {
      client_->end();
      std::this_thread::sleep_for(kStep);
    }
  }

  channel::Request whole(std::uint32_t image) const {
    channel::Request request{};
    request.window.struct_bytes = sizeof request.window;
    request.window.rank = 2;
    request.window.length[0] = request.window.length[1] = kSide;
    request.window.channel = -1;
    request.image = image;
    request.bytes = kSide * kSide;
    return request;
  }
  void ring(std::uint64_t slots) {
    channel::Header& header = client_->memory().header();
    header.submitted.fetch_or(slots);
    header.doorbell.fetch_add(1);
    channel::futex_wake(header.doorbell);
  }
  // The error of the answer; -1: none came.
  int ask(const channel::Request& request, unsigned slot = 0) {
    channel::Slot& own = client_->memory().slot(slot);
    own.request = request;
    own.state = channel::kSubmitted;
    ring(std::uint64_t{1} << slot);
    for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
      if (own.state.load() == channel::kDone) return own.error;
      std::this_thread::yield();
    }
    return -1;
  }
  bool shows_the_image(const channel::Request& request) {
    const auto buffer = client_->buffers().find(request.buffer);
    const auto samples = samples_in(buffer == nullptr ? client_->memory().area() : buffer->bytes(), request);
    const ByteVector& bytes = volume_.bytes(ino_);
    return samples.ok() && std::equal(bytes.begin(), bytes.end(), samples->begin(), samples->end());
  }

  test::FakeVolume volume_;
  const std::unique_ptr<views::StagingPool> staging_ = std::move(*views::StagingPool::open("/tmp", {}));
  WorkQueue queue_{1};
  FairQueue level_queue_{1, 1};
  volume::Ino ino_ = 0;
  std::shared_ptr<ChannelGrant> grant_;
  std::shared_ptr<ChannelClient> client_;
  std::uint32_t image_ = 0, buffer_ = 0;
};

TEST_F(ChannelClientTest, AWindowComesIntoTheDataArea) {
  channel::Request request = whole(image_);
  request.offset = 4096;
  EXPECT_EQ(ask(request, 63), 0);
  EXPECT_TRUE(shows_the_image(request));
}

TEST_F(ChannelClientTest, AWindowOfALevelIsComputedForItsClient) {
  ByteVector& bytes = volume_.bytes(ino_);
  std::fill(bytes.begin(), bytes.end(), std::byte{9});
  channel::Request request = whole(image_);
  request.window.level = 1;
  request.window.length[0] = request.window.length[1] = kSide / 2;
  request.bytes = kSide * kSide / 4;
  EXPECT_EQ(ask(request), 0);
  const auto samples = samples_in(client_->memory().area(), request);
  ASSERT_TRUE(samples.ok());
  EXPECT_TRUE(std::all_of(samples->begin(), samples->end(), [](std::byte sample) { return sample == std::byte{9}; }));
  request.window.level = 2;
  EXPECT_EQ(ask(request), ERANGE);
  grant_->withdraw();
  request.window.level = 1;
  EXPECT_EQ(ask(request), ENOENT);
}

TEST_F(ChannelClientTest, AWindowComesIntoABuffer) {
  channel::Request request = whole(image_);
  request.buffer = buffer_;
  request.offset = kBuffer - kSide * kSide;
  EXPECT_EQ(ask(request, 9), 0);
  EXPECT_TRUE(shows_the_image(request));
  EXPECT_EQ(client_->memory().slot(9).ready.load(), 0u);
  client_->buffers().remove(buffer_);
  EXPECT_EQ(ask(request, 9), EINVAL);
}

// The volume says that half of it is there, and then that it is not.
TEST_F(ChannelClientTest, WhatWasReadyOfAWindowThatIsReadAgainIsSaidToBeVoid) {
  const channel::Request request = whole(image_);
  EXPECT_EQ(ask(request), 0);
  EXPECT_EQ(client_->memory().slot(0).ready.load(), kSide * kSide / 2);
  EXPECT_EQ(client_->memory().slot(0).changed, 1u);
  EXPECT_TRUE(shows_the_image(request));
}

TEST_F(ChannelClientTest, EachInvalidFieldIsAnErrorOfItsRequestAlone) {
  channel::Request wrong = whole(image_);
  wrong.offset = kArea - kSide * kSide + 1;
  EXPECT_EQ(ask(wrong), EINVAL);
  wrong.offset = UINT64_MAX - 10;
  EXPECT_EQ(ask(wrong), EINVAL);
  wrong = whole(image_);
  wrong.bytes = kSide * kSide - 1;
  EXPECT_EQ(ask(wrong), EINVAL);
  wrong = whole(image_);
  wrong.window.length[0] = kSide + 1;
  EXPECT_EQ(ask(wrong), ERANGE);
  wrong = whole(image_);
  wrong.buffer = buffer_ + 1;
  EXPECT_EQ(ask(wrong), EINVAL);
  wrong.buffer = buffer_;
  wrong.offset = kBuffer - kSide * kSide + 1;
  EXPECT_EQ(ask(wrong), EINVAL);
  EXPECT_EQ(ask(whole(image_ + 1)), ENOENT);
  EXPECT_EQ(ask(whole(UINT32_MAX)), ENOENT);
  EXPECT_EQ(ask(whole(image_)), 0);
}

TEST_F(ChannelClientTest, NoWindowOfAnImageWhoseDescriptorIsClosed) {
  EXPECT_EQ(ask(whole(image_)), 0);
  grant_->withdraw();
  EXPECT_EQ(ask(whole(image_)), ENOENT);
  client_->remove_withdrawn();
  EXPECT_EQ(grant_.use_count(), 1);
}

TEST_F(ChannelClientTest, AnyBytesInTheMemoryLeaveHonestRequestsRight) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "this client races with the daemon on purpose";
#endif
  std::mt19937_64 random(22);
  channel::Header& header = client_->memory().header();
  for (int round = 0; round < 300; ++round) {
    for (unsigned slot = 0; slot < channel::kSlots; ++slot) {
      channel::Slot& own = client_->memory().slot(slot);
      channel::Request request = whole(random() % 3 == 0 ? static_cast<std::uint32_t>(random()) : image_);
      request.buffer = random() % 2 == 0 ? buffer_ : channel::kArea;
      auto* const bytes = reinterpret_cast<unsigned char*>(&request);
      for (unsigned changes = random() % 4; changes > 0; --changes)
        bytes[random() % sizeof request] = static_cast<unsigned char>(random());
      own.request = request;
      own.error = static_cast<std::int32_t>(random());
      own.state = static_cast<std::uint32_t>(random() % 6);
    }
    header.sleeping = static_cast<std::uint32_t>(random());
    header.doorbell = static_cast<std::uint32_t>(random());
    ring(random());
    if (round % 50 == 49) {  // while requests are under way
      client_->buffers().remove(buffer_);
      auto memory = SharedMemory::make("mdfs-buffer", kBuffer);
      ASSERT_TRUE(memory.ok());
      ASSERT_TRUE(client_->buffers().add(std::make_shared<SharedMemory>(std::move(memory).value())).ok());
      client_->buffers().reap();
    }
  }
  // Slots that were submitted again while they were busy have no answer of their own: ask until all are idle.
  const channel::Request request = whole(image_);
  for (const auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(kStep);
    if (ask(request, 5) == 0 && shows_the_image(request)) return;
  }
  FAIL() << "the client is not served any more";
}

TEST(ChannelMemoryTest, ItsSizeCannotBeChangedByItsHolders) {
  auto memory = ChannelMemory::make(kArea);
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(::ftruncate(memory->shared().descriptor().get(), 0), 0);
  EXPECT_NE(::ftruncate(memory->shared().descriptor().get(), 1 << 30), 0);
}

TEST(ChannelMemoryTest, AClientThatStillMapsItSeesThatThePagesAreFreed) {
  auto memory = ChannelMemory::make(kArea);
  ASSERT_TRUE(memory.ok());
  void* const start = ::mmap(nullptr, channel::kAreaOffset + kArea, PROT_READ | PROT_WRITE, MAP_SHARED,
                             memory->shared().descriptor().get(), 0);
  ASSERT_NE(start, MAP_FAILED);
  auto* const bytes = static_cast<unsigned char*>(start) + channel::kAreaOffset;
  const auto& header = *static_cast<const channel::Header*>(start);
  bytes[5] = 9;
  EXPECT_EQ(header.alive, 1u);
  { const ChannelMemory ended = std::move(memory).value(); }
  EXPECT_EQ(bytes[5], 0);
  EXPECT_EQ(header.alive, 0u);
  ::munmap(start, channel::kAreaOffset + kArea);
}

TEST(ChannelGrantsTest, ATokenIsForOneUseByItsUserUntilItsHolderCloses) {
  test::FakeVolume volume;
  SeededEnvironment environment(1);
  ChannelGrants grants;
  const volume::Ino ino = volume.add_image("scan", square());
  const auto token = [&](const void* holder) {
    auto grant = ChannelGrant::make(volume, ino, 7);
    return grants.add(holder, std::move(grant).value(), environment);
  };
  const int first = 0, second = 0;
  const auto used = token(&first);
  ASSERT_TRUE(used.ok());
  EXPECT_EQ(grants.redeem(*used, 8), nullptr);
  const auto grant = grants.redeem(*used, 7);
  ASSERT_NE(grant, nullptr);
  EXPECT_EQ(grants.redeem(*used, 7), nullptr);
  EXPECT_FALSE(grant->withdrawn());
  const auto closed = token(&second);
  EXPECT_TRUE(grants.withdraw(&second));
  EXPECT_EQ(grants.redeem(*closed, 7), nullptr);
  EXPECT_FALSE(grant->withdrawn());
  EXPECT_TRUE(grants.withdraw(&first));
  EXPECT_TRUE(grant->withdrawn());
  EXPECT_FALSE(grants.withdraw(&first));
}

TEST(ChannelGrantsTest, AnOpenFileHasABoundedNumberOfTokens) {
  test::FakeVolume volume;
  SeededEnvironment environment(1);
  ChannelGrants grants;
  const volume::Ino ino = volume.add_image("scan", square());
  const int holder = 0;
  std::size_t given = 0;
  while (grants.add(&holder, ChannelGrant::make(volume, ino, 7).value(), environment).ok()) ++given;
  EXPECT_EQ(given, ChannelGrants::kMostOfHolder);
}

}  // namespace
}  // namespace mdfs::fuse
