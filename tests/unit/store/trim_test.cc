// Disks that are told of free blocks, and make them unreadable at once.
// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "device/request.h"
#include "store_fixture.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kBlock = 4096;
constexpr std::byte kPoison{0xDB};

// A disk on which a discarded block holds something else at once; or that does with discards what a test wants.
class PoisonDisk final : public device::Disk {
 public:
  using OnDiscard = std::function<Status(const device::Io&)>;
  explicit PoisonDisk(device::MemoryDisk& disk, OnDiscard on_discard = {})
      : disk_(disk), on_discard_(std::move(on_discard)) {}
  const std::string& name() const override { return disk_.name(); }
  std::uint64_t size_bytes() const override { return disk_.size_bytes(); }
  bool writable() const override { return true; }
  void submit(std::span<device::Io* const> batch) override {
    for (device::Io* io : batch) {
      if (io->op != device::Op::kDiscard) {
        disk_.submit({&io, 1});
        continue;
      }
      if (on_discard_) {
        if (const Status status = on_discard_(*io); !status.ok()) {
          device::complete(*io, status);
          continue;
        }
      }
      disk_.poke(io->offset, ByteVector(io->discard_bytes, kPoison));
      device::complete(*io, {});
    }
  }

 private:
  device::MemoryDisk& disk_;
  const OnDiscard on_discard_;
};

Result<std::unique_ptr<Store>> open_poisoned(const Disks& disks, Environment& environment,
                                             const StoreOptions& options = {},
                                             const PoisonDisk::OnDiscard& on_discard = {}) {
  std::vector<std::unique_ptr<device::Disk>> wrapped;
  for (const auto& disk : disks) wrapped.push_back(std::make_unique<PoisonDisk>(*disk, on_discard));
  return Store::open(std::move(wrapped), options, environment);
}

// Until all are done; what each was told of.
std::vector<DiskTrim> trim_all(Store& store, std::uint64_t smallest) {
  std::vector<DiskTrim> disks(store.disk_count());
  const auto more = [&] {
    return std::any_of(disks.begin(), disks.end(), [](const auto& d) { return d.state == DiskTrim::State::kMore; });
  };
  while (more()) {
    const Status status = store.trim_some(disks, smallest);
    EXPECT_OK(status);
    if (!status.ok()) break;
  }
  return disks;
}

bool holds_poison(const Disks& disks, const Run& run) {
  ByteVector bytes(kBlock);
  for (std::uint64_t block = run.block; block < run.end(); ++block) {
    disks[run.disk]->peek(block * kBlock, bytes);
    if (bytes == ByteVector(kBlock, kPoison)) return true;
  }
  return false;
}

Result<Run> allocate(Store& store, std::uint16_t disk, std::uint32_t blocks, std::uint64_t owner = 16) {
  AllocationRequest request;
  request.disk = disk;
  request.blocks = blocks;
  request.owner = owner;
  return store.allocate(request, nullptr);
}

Status change(Store& store, const std::function<void(Transaction&)>& body, Purpose purpose = Purpose::kNormal) {
  return store.transact(purpose, [&](Transaction& transaction) -> Status {
    body(transaction);
    return {};
  });
}

// What a commit holds: its items, each of which names a run by its key, and the bytes of the runs.
struct Snapshot {
  std::uint64_t generation = 0;
  Model items;
  std::map<Key, Run> runs;
};

class TrimProperty {
 public:
  explicit TrimProperty(std::uint64_t seed) : random_(seed), environment_(seed), disks_(make_disks(2, 12u << 20)) {
    EXPECT_OK(format_disks(disks_, environment_));
    open();
  }
  ~TrimProperty() { close(); }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
  }

 private:
  void open() {
    StoreOptions options;
    options.discard = random_() % 2 == 0;
    auto store = open_poisoned(disks_, environment_, options);
    ASSERT_OK(store);
    store_ = std::move(*store);
    background_ = std::thread([this] {
      while (store_->discard_freed()) {
      }
    });
  }

  void close() {
    if (store_) store_->stop_waiting();
    if (background_.joinable()) background_.join();
    store_.reset();
    pending_.clear();
  }

  void step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        return write();
      case 3:
        return publish_one();
      case 4:
        return free_one();
      case 5:
        return commit();
      case 6:
        return trim();
      default:
        if (random_() % 6 != 0) return check();
        commit();
        close();
        return open();
    }
  }

  // Blocks that are known to their writer alone.
  void write() {
    const auto disk = static_cast<std::uint16_t>(random_() % 2);
    const auto found = allocate(*store_, disk, static_cast<std::uint32_t>(1 + random_() % 40), 16 + random_() % 4);
    if (!found.ok()) return free_one();
    const std::uint64_t number = ++written_;
    disks_[found->disk]->poke(found->block * kBlock, value_of(found->blocks * kBlock, number));
    pending_.emplace_back(item_key(number), *found);
    seeds_[item_key(number)] = number;
  }

  void publish_one() {
    if (pending_.empty()) return;
    const auto [key, run] = pending_.back();
    pending_.pop_back();
    const ByteVector value = value_of(random_() % 300, key.object);
    EXPECT_OK(change(*store_, [&](Transaction& transaction) {
      transaction.publish(run);
      transaction.put(key, value);
    }));
    now_.items[key] = value;
    now_.runs[key] = run;
  }

  void free_one() {
    if (now_.runs.empty()) return;
    const auto victim = std::next(now_.runs.begin(), static_cast<std::ptrdiff_t>(random_() % now_.runs.size()));
    const auto [key, run] = *victim;
    EXPECT_OK(change(
        *store_,
        [&](Transaction& transaction) {
          transaction.free(run);
          transaction.erase(key);
        },
        Purpose::kFreeing));
    now_.runs.erase(key);
    now_.items.erase(key);
  }

  void commit() {
    EXPECT_OK(store_->commit());
    if (random_() % 2 == 0) {
      EXPECT_OK(store_->finalize());
    }
    snapshot();
  }

  void trim() {
    const std::uint64_t before = store_->generation();
    if (random_() % 3 == 0) {
      EXPECT_OK(store_->commit_discardable());
    }
    trim_all(*store_, 1 + random_() % 24);
    if (store_->generation() != before) snapshot();
    check();
  }

  void snapshot() {
    last_ = now_;
    last_.generation = store_->generation();
    snapshots_.push_back(last_);
  }

  void check() {
    const std::uint64_t newest = store_->generation();
    for (const Snapshot& snapshot : snapshots_) {
      if (snapshot.generation + 4 <= newest || snapshot.generation > newest) continue;
      const bool whole = snapshot.generation + 1 >= newest;
      for (const auto& [key, run] : snapshot.runs) {
        ASSERT_FALSE(holds_poison(disks_, run)) << "generation " << snapshot.generation << " of " << newest;
        if (whole) check_bytes(run, seeds_.at(key));
      }
      if (whole) check_items(snapshot, newest);
    }
    for (const auto& [key, run] : pending_) check_bytes(run, seeds_.at(key));
  }

  void check_bytes(const Run& run, std::uint64_t number) {
    ByteVector bytes(run.blocks * kBlock);
    disks_[run.disk]->peek(run.block * kBlock, bytes);
    ASSERT_TRUE(bytes == value_of(bytes.size(), number)) << "block " << run.block << " of disk " << run.disk;
  }

  // As a mount finds it after a crash, and as a rollback does.
  void check_items(const Snapshot& snapshot, std::uint64_t newest) {
    const Disks clones = clone_disks(disks_);
    StoreOptions options;
    options.read_only = true;
    if (snapshot.generation != newest) options.rollback = snapshot.generation;
    auto store = open_disks(clones, environment_, options);
    ASSERT_OK(store);
    if ((*store)->generation() != snapshot.generation) return;  // the commit was made meanwhile
    ASSERT_TRUE(read_all(**store) == snapshot.items) << "generation " << snapshot.generation << " of " << newest;
  }

  std::mt19937_64 random_;
  SeededEnvironment environment_;
  const Disks disks_;
  std::unique_ptr<Store> store_;
  std::thread background_;
  std::uint64_t written_ = 0;
  std::map<Key, std::uint64_t> seeds_;  // seed of the bytes
  std::vector<std::pair<Key, Run>> pending_;
  Snapshot now_, last_;
  std::vector<Snapshot> snapshots_;
};

TEST(TrimTest, WhatTheLastCommitsHoldIsThereWhenAllDiscardedBlocksArePoisoned) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    TrimProperty(seed).run(400);
  }
}

class TrimFixture : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(format_disks(disks_, environment_));
    open();
  }
  void open(const StoreOptions& options = {}, const PoisonDisk::OnDiscard& on_discard = {}) {
    store_.reset();
    auto store = open_poisoned(disks_, environment_, options, on_discard);
    ASSERT_OK(store);
    store_ = std::move(*store);
  }
  alloc::Run store_run(std::uint32_t blocks) {
    const auto run = allocate(*store_, 0, blocks);
    EXPECT_OK(run);
    disks_[0]->poke(run->block * kBlock, value_of(run->blocks * kBlock, 7));
    EXPECT_OK(change(*store_, [&](Transaction& transaction) { transaction.publish(*run); }));
    EXPECT_OK(store_->commit());
    return *run;
  }
  void free_run(const alloc::Run& run) {
    EXPECT_OK(change(
        *store_, [&](Transaction& transaction) { transaction.free(run); }, Purpose::kFreeing));
    EXPECT_OK(store_->commit());
  }

  SeededEnvironment environment_{4};
  const Disks disks_ = make_disks(2, 16u << 20);
  std::unique_ptr<Store> store_;
};

TEST_F(TrimFixture, EachDiskIsToldOfAllItsFreeBlocks) {
  const alloc::Run kept = store_run(20);
  free_run(store_run(100));
  ASSERT_OK(store_->commit_discardable());
  store_->release_preallocations(16);
  const std::uint64_t before = store_->space().available_blocks;
  const auto disks = trim_all(*store_, 1);
  for (unsigned i = 0; i < disks.size(); ++i) {
    EXPECT_EQ(disks[i].state, DiskTrim::State::kDone);
    EXPECT_GT(disks[i].discarded_blocks * 100, store_->disk_info(i).free_blocks * 95);
  }
  EXPECT_EQ(store_->space().available_blocks, before);
  EXPECT_FALSE(holds_poison(disks_, kept));
}

TEST_F(TrimFixture, SmallHolesAreLeftWhereLargeOnesAreWanted) {
  std::vector<alloc::Run> runs;
  for (int i = 0; i < 60; ++i) {
    runs.push_back(*allocate(*store_, 0, 10, 17));
    EXPECT_OK(change(*store_, [&](Transaction& transaction) { transaction.publish(runs.back()); }));
  }
  ASSERT_OK(store_->commit());
  for (std::size_t i = 1; i < runs.size(); i += 2) free_run(runs[i]);
  store_->release_preallocations(17);
  ASSERT_OK(store_->commit_discardable());
  trim_all(*store_, 11);
  const auto poisoned = [&] {
    int count = 0;
    for (std::size_t i = 1; i + 1 < runs.size(); i += 2)
      if (runs[i - 1].end() == runs[i].block && runs[i].end() == runs[i + 1].block)
        count += holds_poison(disks_, runs[i]) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(poisoned(), 0);
  trim_all(*store_, 10);
  EXPECT_GT(poisoned(), 5);
}

TEST_F(TrimFixture, ADiskThatCannotDiscardAndOneThatFailsAreToldApart) {
  open({}, [&](const device::Io&) -> Status { return {Errc::kNotSupported, "no"}; });
  for (const DiskTrim& disk : trim_all(*store_, 1)) EXPECT_EQ(disk.state, DiskTrim::State::kRefused);
  open({}, [&](const device::Io&) -> Status { return {Errc::kIo, "disk1: broken"}; });
  const auto disks = trim_all(*store_, 1);
  EXPECT_EQ(disks[1].state, DiskTrim::State::kFailed);
  EXPECT_NE(disks[1].why.find("disk1: broken"), std::string::npos);
  EXPECT_OK(store_->commit());  // no harm is done
}

TEST_F(TrimFixture, WhoeverNeedsTheLastBlocksWaitsUntilTheDiskHasBeenTold) {
  std::mutex mutex;
  std::condition_variable changed;
  bool parked = false, ended = false;
  open({}, [&](const device::Io& io) -> Status {
    std::unique_lock lock(mutex);
    if (parked || io.offset < store_->disk_info(0).blocks * kBlock / 4) return {};
    parked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return ended; });
    return {};
  });
  std::thread trimming([&] { trim_all(*store_, 1); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return parked; });
  }
  std::atomic<std::uint64_t> got{0};
  std::atomic<bool> full = false;
  const std::uint64_t room = store_->space().available_blocks;
  std::thread writing([&] {
    for (std::uint16_t disk = 0; got < room; disk = disk == 0 ? 1 : 0) {
      if (!allocate(*store_, disk, 1).ok()) break;
      ++got;
    }
    full = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(full);
  {
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  }
  writing.join();
  trimming.join();
  EXPECT_EQ(got, room);
}

TEST_F(TrimFixture, FreedRunsAreDiscardedByThemselvesWhereThatIsWantedAndNoCommitNeedsThem) {
  StoreOptions options;
  options.discard = true;
  open(options);
  std::thread background([&] {
    while (store_->discard_freed()) {
    }
  });
  const alloc::Run run = store_run(40);
  const alloc::Run second = store_run(40);
  free_run(run);
  for (int i = 0; i < 2; ++i) {  // the newest commit is one, two behind that which freed it
    EXPECT_FALSE(holds_poison(disks_, run));
    EXPECT_OK(change(*store_, [&](Transaction& transaction) { transaction.put({20, 1, 1}, value_of(3, i)); }));
    EXPECT_OK(store_->commit());
  }
  EXPECT_OK(store_->commit_discardable());
  for (int i = 0; i < 500 && !holds_poison(disks_, run); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(holds_poison(disks_, run));
  store_->set_discard(false);
  free_run(second);
  EXPECT_OK(store_->commit_discardable());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(holds_poison(disks_, second));
  store_->stop_waiting();
  background.join();
}

}  // namespace
}  // namespace mdfs::store
