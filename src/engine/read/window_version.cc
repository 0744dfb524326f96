// Versions of windows.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/window_version.h"

#include <algorithm>
#include <cstring>

namespace mdfs::engine {

namespace {

constexpr std::size_t kMemoryShare = 8;  // of the cache, for all versions

}  // namespace

// ---- one version

WindowVersion::WindowVersion(Core& core, std::shared_ptr<OpenObject> object, const geometry::Window& window)
    : core_(core), object_(std::move(object)), window_(window), box_(geometry::byte_box(*object_->image, window)) {}

WindowVersion::~WindowVersion() { object_->versions.forget_ended(); }

void WindowVersion::give_up() {
  stale_.store(true, std::memory_order_release);
  std::unordered_map<std::uint64_t, std::shared_ptr<KeptBlock>> kept;
  const std::lock_guard lock(mutex_);
  kept.swap(kept_);
}

bool WindowVersion::wants(std::uint64_t extent, const geometry::Box& changed) const {
  if (is_stale() || !geometry::overlap(object_->rank, box_, changed)) return false;
  const std::lock_guard lock(mutex_);
  return !kept_.contains(extent);
}

bool WindowVersion::take_memory(std::size_t bytes) const {
  const std::size_t limit = core_.options.cache_bytes / kMemoryShare;
  std::size_t now = core_.kept_bytes.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || now > limit - bytes) return false;
  } while (!core_.kept_bytes.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
  return true;
}

// Keeps the bytes of the cache block that are in memory and newer than its record, or all of them if there is room.
// False if there are none.
bool WindowVersion::keep_bytes(const CacheBlock& live, KeptBlock& kept) const {
  CacheBlock& block = *kept.block;
  block.known_on_disk = live.known_on_disk;
  if (live.complete) {
    if (!live.buffer || take_memory(live.buffer.size())) {
      kept.bytes = live.buffer.size();
      block.buffer = live.buffer;  // shared: a thread that changes the live cache block makes a copy
      block.complete = true;
      return true;
    }
    return kept.is_stored;
  }
  if (kept.is_stored || live.valid.ranges().empty()) return true;
  if (!take_memory(live.buffer.size())) return false;
  kept.bytes = live.buffer.size();
  // A buffer of its own: the rest is loaded into it.
  block.buffer = core_.cache.acquire(live.buffer.size());
  std::memset(block.buffer.data(), 0, block.buffer.size());
  live.copy_valid(block.buffer);
  block.valid = live.valid;
  return true;
}

void WindowVersion::keep(const CacheBlock& live, const MappedExtent* stored,
                         const std::shared_ptr<const store::BlockHold>& hold) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stale() || kept_.contains(live.key.index)) return;
  }
  auto kept = std::make_shared<KeptBlock>(core_.kept_bytes, live.key);
  kept->is_stored = stored != nullptr && !live.dirty;
  if (stored != nullptr) {
    kept->stored = *stored;
    kept->hold = hold;
  }
  if (!keep_bytes(live, *kept) || (!kept->block->complete && stored == nullptr)) return give_up();
  const std::lock_guard lock(mutex_);
  if (is_stale()) return;
  if (kept_.emplace(live.key.index, std::move(kept)).second) kept_count_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<KeptBlock> WindowVersion::find(std::uint64_t extent) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(extent);
  return found == kept_.end() ? nullptr : found->second;
}

void WindowVersion::count_memory(KeptBlock& kept) const {
  CacheBlock& block = *kept.block;
  const std::lock_guard lock(block.mutex);
  if (block.loading || block.buffer.size() <= kept.bytes) return;
  const std::size_t more = block.buffer.size() - kept.bytes;
  if (take_memory(more)) {
    kept.bytes += more;
  } else if (kept.is_stored) {
    block.buffer = BufferRef();
    block.valid.clear();
    block.complete = false;
  }
}

// ---- those of an object

namespace {

bool reaches(const geometry::Box& box, const std::pair<std::uint64_t, std::uint64_t>& steps) {
  return box.start[0] < steps.second && box.start[0] + box.length[0] > steps.first;
}

}  // namespace

Versions::Change::Change(Versions& versions, std::uint64_t first, std::uint64_t last)
    : versions_(versions), steps_(first, last) {
  {
    const std::lock_guard lock(versions_.mutex_);
    versions_.changes_.push_back(steps_);
  }
  for (const std::shared_ptr<WindowVersion>& version : versions_.all())
    if (reaches(version->box(), steps_)) version->give_up();
}

Versions::Change::~Change() {
  const std::lock_guard lock(versions_.mutex_);
  versions_.changes_.erase(std::find(versions_.changes_.begin(), versions_.changes_.end(), steps_));
  versions_.changed_.notify_all();
}

bool Versions::is_changing(const geometry::Box& box) const {
  return std::any_of(changes_.begin(), changes_.end(), [&](const auto& steps) { return reaches(box, steps); });
}

void Versions::wait_for_changes(const geometry::Box& box) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_changing(box); });
}

bool Versions::add(const std::shared_ptr<WindowVersion>& version) {
  std::shared_ptr<WindowVersion> oldest;
  {
    const std::lock_guard lock(mutex_);
    if (is_changing(version->box())) return false;
    if (versions_.size() >= kMost) {
      oldest = versions_.front().lock();
      versions_.erase(versions_.begin());
    }
    versions_.push_back(version);
    count_.store(versions_.size(), std::memory_order_release);
  }
  if (oldest != nullptr) oldest->give_up();
  return true;
}

void Versions::forget_ended() {
  const std::lock_guard lock(mutex_);
  std::erase_if(versions_, [](const std::weak_ptr<WindowVersion>& version) { return version.expired(); });
  count_.store(versions_.size(), std::memory_order_release);
}

std::vector<std::shared_ptr<WindowVersion>> Versions::all() const {
  std::vector<std::shared_ptr<WindowVersion>> versions;
  if (!any()) return versions;
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<WindowVersion>& one : versions_)
    if (auto version = one.lock(); version != nullptr) versions.push_back(std::move(version));
  return versions;
}

std::vector<std::shared_ptr<WindowVersion>> Versions::wanting(std::uint64_t extent,
                                                              const geometry::Box& changed) const {
  std::vector<std::shared_ptr<WindowVersion>> versions = all();
  std::erase_if(versions,
                [&](const std::shared_ptr<WindowVersion>& version) { return !version->wants(extent, changed); });
  return versions;
}

}  // namespace mdfs::engine
