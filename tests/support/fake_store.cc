// A store in memory.
// SPDX-License-Identifier: Apache-2.0
#include "fake_store.h"

#include <sys/stat.h>

#include "format/dirent.h"
#include "format/inode.h"

namespace mdfs::test {

using store::Item;
using store::Run;

// Collects changes and applies them when the change function has succeeded.
class FakeStore::FakeTransaction final : public store::Transaction {
 public:
  explicit FakeTransaction(FakeStore& store) : store_(store) {}

  Result<std::optional<ByteVector>> get(const format::Key& key) override {
    const auto found = changes_.find(key);
    if (found != changes_.end()) return found->second;
    return store_.get(key);
  }

  Result<std::vector<Item>> scan(const format::Key& first, const format::Key& last, std::size_t limit) override {
    MDFS_TRY_ASSIGN(const std::vector<Item> below, store_.scan(first, last, SIZE_MAX));
    std::map<format::Key, std::optional<ByteVector>> merged;
    for (const Item& item : below) merged[item.key] = item.value;
    for (auto i = changes_.lower_bound(first); i != changes_.end() && i->first <= last; ++i)
      merged[i->first] = i->second;
    std::vector<Item> items;
    for (auto& [key, value] : merged)
      if (value && items.size() < limit) items.push_back({key, std::move(*value)});
    return items;
  }

  void put(const format::Key& key, ConstBytes value) override {
    MDFS_CHECK(value.size() <= MDFS_MAX_ITEM);
    changes_[key] = ByteVector(value.begin(), value.end());
  }
  void erase(const format::Key& key) override { changes_[key] = std::nullopt; }
  void publish(const Run& run) override { published_.push_back(run); }
  void publish(const Run& run, std::uint64_t /*other_disks*/) override { published_.push_back(run); }
  void free(const Run& run) override { freed_.push_back(run); }
  std::uint64_t new_object() override {
    const std::lock_guard lock(store_.mutex_);
    return store_.next_object_++;
  }
  void count_objects(std::int64_t change) override { objects_ += change; }
  std::uint64_t generation() const override { return store_.commits_ + 1; }

  void apply() {
    for (const Run& run : published_) store_.set_state(run, BlockState::kAllocated, BlockState::kPublished);
    for (const Run& run : freed_) store_.set_state(run, BlockState::kPublished, BlockState::kFree);
    const std::lock_guard lock(store_.mutex_);
    for (auto& [key, value] : changes_) {
      if (value) {
        store_.items_[key] = std::move(*value);
      } else {
        store_.items_.erase(key);
      }
    }
    store_.objects_ += static_cast<std::uint64_t>(objects_);
    if (!changes_.empty() || !published_.empty() || !freed_.empty()) store_.dirty_ = true;
  }

 private:
  FakeStore& store_;
  std::map<format::Key, std::optional<ByteVector>> changes_;
  std::vector<Run> published_, freed_;
  std::int64_t objects_ = 0;
};

FakeStore::FakeStore(unsigned disks, std::uint64_t disk_bytes, std::uint32_t block_size) : block_size_(block_size) {
  for (unsigned i = 0; i < disks; ++i)
    disks_.push_back({std::make_unique<device::MemoryDisk>("disk" + std::to_string(i), disk_bytes), nullptr,
                      std::vector<BlockState>(disk_bytes / block_size, BlockState::kFree), disk_bytes / block_size - 1,
                      1});
  for (FakeDisk& disk : disks_) disk.blocks[0] = BlockState::kPublished;  // so that block 0 is not given out
  format::Inode root;
  root.mode = S_IFDIR | 0755;
  root.links = 2;
  root.parent = MDFS_OBJECT_ROOT_DIRECTORY;
  items_[{MDFS_OBJECT_ROOT_DIRECTORY, MDFS_KIND_INODE, 0}] = format::encode(root);
  items_[format::kSecretKey] = format::encode(format::NameSecret{1, 2});
}

FakeStore::~FakeStore() = default;

std::map<format::Key, ByteVector> FakeStore::items() const {
  const std::lock_guard lock(mutex_);
  return items_;
}

std::uint64_t FakeStore::free_blocks() const {
  std::uint64_t free = 0;
  for (const FakeDisk& disk : disks_) free += disk.free_blocks;
  return free;
}

std::uint64_t FakeStore::used_blocks() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t used = 0;
  for (const FakeDisk& disk : disks_) used += disk.blocks.size() - 1;
  return used - free_blocks();
}

store::DiskInfo FakeStore::disk_info(unsigned index) const {
  const std::lock_guard lock(mutex_);
  const FakeDisk& disk = disks_[index];
  store::DiskInfo info;
  info.name = disk.disk->name();
  info.blocks = disk.blocks.size();
  info.free_blocks = disk.free_blocks;
  if (missing_ && index + 1 == disks_.size()) info.state = store::DiskState::kMissing;
  return info;
}

Result<std::optional<ByteVector>> FakeStore::get(const format::Key& key) {
  ++lookups_;
  const std::lock_guard lock(mutex_);
  const auto found = items_.find(key);
  if (found == items_.end()) return std::optional<ByteVector>();
  return std::optional<ByteVector>(found->second);
}

Result<std::vector<Item>> FakeStore::scan(const format::Key& first, const format::Key& last, std::size_t limit) {
  ++lookups_;
  const std::lock_guard lock(mutex_);
  std::vector<Item> items;
  for (auto i = items_.lower_bound(first); i != items_.end() && i->first <= last && items.size() < limit; ++i)
    items.push_back({i->first, i->second});
  return items;
}

Status FakeStore::transact(store::Purpose purpose, const std::function<Status(store::Transaction&)>& change,
                           const store::Reservation*) {
  const std::lock_guard transaction_lock(transaction_mutex_);
  if (read_only_) return Error{Errc::kReadOnly, "fake store"};
  FakeTransaction transaction(*this);
  MDFS_TRY(change(transaction));
  if (full_ && purpose == store::Purpose::kNormal) return Error{Errc::kNoSpace, "fake store"};
  transaction.apply();
  if (after_transaction_) after_transaction_();
  return {};
}

Status FakeStore::commit() {
  if (read_only_) return Error{Errc::kReadOnly, "fake store"};
  if (dirty_.exchange(false)) ++commits_;
  return {};
}

Result<Run> FakeStore::allocate(const store::AllocationRequest& request, store::Reservation* reservation) {
  const std::lock_guard lock(mutex_);
  if (refuses_blocks_ || (full_ && reservation == nullptr)) return Error{Errc::kNoSpace, "fake store"};
  for (unsigned turn = 0; turn < disks_.size() && (turn == 0 || request.may_fall_back); ++turn) {
    const unsigned index = (request.disk + turn) % disk_count();
    if ((request.avoided_disks >> index & 1) != 0) continue;
    FakeDisk& disk = disks_[index];
    std::vector<BlockState>& blocks = disk.blocks;
    std::uint64_t free = 0;
    for (std::uint64_t block = request.at_block != 0 ? request.at_block : disk.first_free; block < blocks.size();
         ++block) {
      if (block % MDFS_BITS_PER_PAGE == 0) free = 0;  // a run lies on one bitmap page
      free = blocks[block] == BlockState::kFree ? free + 1 : 0;
      if (request.at_block != 0 && free < block + 1 - request.at_block) break;
      if (free < request.blocks) continue;
      const Run run{static_cast<std::uint16_t>(index), block + 1 - free, request.blocks};
      std::fill_n(blocks.begin() + static_cast<std::ptrdiff_t>(run.block), run.blocks, BlockState::kAllocated);
      disk.free_blocks -= run.blocks;
      if (run.block == disk.first_free) disk.first_free += run.blocks;
      if (reservation != nullptr) {
        const std::uint64_t taken = std::min<std::uint64_t>(reservation->blocks(), run.blocks);
        take_from(*reservation, taken);
        reserved_.blocks -= taken;
      }
      return run;
    }
  }
  return Error{Errc::kNoSpace, "fake store"};
}

bool FakeStore::is_free(const Run& run) {
  const std::lock_guard lock(mutex_);
  const std::vector<BlockState>& blocks = disks_[run.disk].blocks;
  for (std::uint64_t i = 0; i < run.blocks; ++i)
    if (run.block + i >= blocks.size() || blocks[run.block + i] != BlockState::kFree) return false;
  return true;
}

void FakeStore::abandon(const Run& run) { set_state(run, BlockState::kAllocated, BlockState::kFree); }

void FakeStore::set_state(const Run& run, BlockState from, BlockState to) {
  const std::lock_guard lock(mutex_);
  FakeDisk& disk = disks_[run.disk];
  MDFS_CHECK(run.blocks > 0 && run.block / MDFS_BITS_PER_PAGE == (run.end() - 1) / MDFS_BITS_PER_PAGE);
  for (std::uint64_t i = 0; i < run.blocks; ++i) {
    BlockState& state = disk.blocks[run.block + i];
    MDFS_CHECK(state == from);
    state = to;
  }
  if (to != BlockState::kFree) return;
  disk.free_blocks += run.blocks;
  disk.first_free = std::min(disk.first_free, run.block);
}

Result<store::Reservation> FakeStore::reserve(const store::SpaceAmount& amount, store::Purpose) {
  const std::lock_guard lock(mutex_);
  if (full_ || amount.blocks + reserved_.blocks > free_blocks()) return Error{Errc::kNoSpace, "fake store"};
  reserved_ += amount;
  return make_reservation(this, amount);
}

void FakeStore::give_back(const store::SpaceAmount& amount) {
  const std::lock_guard lock(mutex_);
  MDFS_CHECK(amount.less(reserved_).empty());
  reserved_ = reserved_.less(amount);
}

std::vector<std::uint64_t> FakeStore::free_of_disks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> free;
  for (const FakeDisk& disk : disks_) free.push_back(disk.free_blocks);
  return free;
}

store::SpaceInfo FakeStore::space() const {
  const std::lock_guard lock(mutex_);
  store::SpaceInfo info;
  for (const FakeDisk& disk : disks_) info.total_blocks += disk.blocks.size();
  info.free_blocks = free_blocks();
  info.available_blocks = full_ ? 0 : info.free_blocks - std::min(info.free_blocks, reserved_.blocks);
  info.objects = objects_;
  return info;
}

}  // namespace mdfs::test
