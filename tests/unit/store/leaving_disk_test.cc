// Claims about callers that look at the space of a disk while the disk leaves the volume.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "store_fixture.h"

namespace mdfs::store {
namespace {

// Passes everything on; the next read waits until `moment` returns.
class StoppedDisk final : public test::PassingDisk {
 public:
  using PassingDisk::PassingDisk;
  void submit(std::span<device::Io* const> batch) override {
    const auto reads = [](const device::Io* io) { return io->op == device::Op::kRead; };
    if (std::any_of(batch.begin(), batch.end(), reads))
      if (const std::function<void()> moment = std::exchange(moment_, nullptr)) moment();
    PassingDisk::submit(batch);
  }
  void stop_at_next_read(std::function<void()> moment) { moment_ = std::move(moment); }
  bool was_read() const { return moment_ == nullptr; }

 private:
  std::function<void()> moment_;
};

struct LeavingDisk : ::testing::Test {
  static constexpr unsigned kLeaving = 2;
  SeededEnvironment environment{5};
  const Disks disks = make_disks(3, 300u << 20);  // three bitmap pages each
  StoppedDisk stopped{*disks[kLeaving]};
  std::unique_ptr<Store> store;
  std::thread remover;

  void SetUp() override {
    ASSERT_OK(format_disks(disks, environment));
    std::vector<std::unique_ptr<device::Disk>> doors;
    for (unsigned i = 0; i < kLeaving; ++i) doors.push_back(std::make_unique<BorrowedDisk>(*disks[i]));
    doors.push_back(std::make_unique<BorrowedDisk>(stopped));
    auto opened = Store::open(std::move(doors), {}, environment);
    ASSERT_OK(opened);
    store = std::move(*opened);
    ASSERT_OK(store->set_draining(kLeaving, true, nullptr));
    ASSERT_NO_FATAL_FAILURE(move_all_nodes_off(*store, kLeaving));
    ASSERT_OK(store->commit());
    stopped.stop_at_next_read([this] { leave(); });
  }
  void TearDown() override {
    if (remover.joinable()) remover.join();
    EXPECT_TRUE(stopped.was_read()) << "the disk left at another moment";
    EXPECT_EQ(store->disk_info(kLeaving).state, DiskState::kNone);
  }

  // Another thread removes the disk; its detaching waits for the read that is stopped here.
  void leave() {
    remover = std::thread([this] { EXPECT_OK(store->remove_disk(kLeaving)); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (store->disk_info(kLeaving).state != DiskState::kNone && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

TEST_F(LeavingDisk, WhoAsksForItsZonesIsAnswered) {
  const auto zones = store->zone_use(kLeaving, 0, 1000);
  ASSERT_OK(zones);
  ASSERT_OK(store->zone_use(kLeaving, 0, 1000));
  EXPECT_EQ(store->zone_use(kLeaving, 0, 1000)->size(), 0u);
}

}  // namespace
}  // namespace mdfs::store
