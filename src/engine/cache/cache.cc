// The cache.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/cache.h"

#include <algorithm>

namespace mdfs::engine {

std::size_t Cache::KeyHash::operator()(const CacheBlockKey& key) const {
  std::uint64_t h = key.object * 0x9E3779B97F4A7C15ull ^ key.index;  // then the finaliser of SplitMix64
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return h ^ (h >> 31);
}

Cache::Cache(BufferPool& pool, std::size_t budget_bytes) : pool_(pool), limit_bytes_(budget_bytes) {}

std::size_t Cache::used_bytes() const {
  return pool_.used_bytes() + pool_.idle_bytes() + blocks_.load(std::memory_order_relaxed) * kBlockOverheadBytes;
}

void Cache::count(std::uint64_t hits, std::uint64_t misses) {
  if (hits != 0) hits_.fetch_add(hits, std::memory_order_relaxed);
  if (misses != 0) misses_.fetch_add(misses, std::memory_order_relaxed);
}

CacheBlockPtr Cache::look_up(const CacheBlockKey& key, bool count_use) {
  Shard& shard = shard_of(KeyHash{}(key));
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.map.find(key);
  if (found == shard.map.end()) return nullptr;
  Slot& slot = *found->second;
  if (count_use && slot.uses < kMaxUses) ++slot.uses;
  return slot.block;
}

CacheBlockPtr Cache::find(const CacheBlockKey& key) { return look_up(key, true); }
CacheBlockPtr Cache::peek(const CacheBlockKey& key) { return look_up(key, false); }

CacheBlockPtr Cache::find_or_create(const CacheBlockKey& key) {
  const std::size_t hash = KeyHash{}(key);
  Shard& shard = shard_of(hash);
  std::array<CacheBlockPtr, kVictimsOfNewBlock> victims;
  if (over_limit()) {
    if (CacheBlockPtr known = look_up(key, false)) return known;
    victims = trim(shard);
  }
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.map.find(key);
  if (found != shard.map.end()) return found->second->block;
  const auto ghost = shard.ghost_set.find(hash);
  const bool remembered = ghost != shard.ghost_set.end();
  if (remembered) shard.ghost_set.erase(ghost);
  Queue& queue = remembered ? shard.main : shard.small;
  queue.push_back({std::make_shared<CacheBlock>(key), 0, remembered});
  const auto slot = std::prev(queue.end());
  shard.map.emplace(key, slot);
  blocks_.fetch_add(1, std::memory_order_relaxed);
  return slot->block;
}

CacheBlockPtr Cache::remove(Shard& shard, Queue& queue, Queue::iterator slot) {
  CacheBlockPtr block = std::move(slot->block);
  shard.map.erase(block->key);
  queue.erase(slot);
  return block;
}

void Cache::remember(Shard& shard, std::size_t hash) {
  shard.ghosts.push_back(hash);
  shard.ghost_set.insert(hash);
  while (shard.ghosts.size() > std::max<std::size_t>(16, shard.map.size())) {
    const auto oldest = shard.ghost_set.find(shard.ghosts.front());
    if (oldest != shard.ghost_set.end()) shard.ghost_set.erase(oldest);
    shard.ghosts.pop_front();
  }
}

CacheBlockPtr Cache::evict_from(Shard& shard, std::size_t& steps) {
  for (; steps > 0 && !shard.map.empty(); --steps) {
    const std::size_t small_share = (shard.small.size() + shard.main.size()) / 10;
    if (!shard.small.empty() && (shard.small.size() > small_share || shard.main.empty())) {
      const auto oldest = shard.small.begin();
      const bool held = oldest->block.use_count() > 1;
      if (held || oldest->uses > 1) {
        oldest->uses = 0;
        oldest->in_main = true;
        shard.main.splice(shard.main.end(), shard.small, oldest);
        continue;
      }
      remember(shard, KeyHash{}(oldest->block->key));
      return remove(shard, shard.small, oldest);
    }
    const auto oldest = shard.main.begin();
    if (oldest->uses == 0 && oldest->block.use_count() == 1) return remove(shard, shard.main, oldest);
    if (oldest->uses > 0) --oldest->uses;
    shard.main.splice(shard.main.end(), shard.main, oldest);
  }
  return nullptr;
}

// Holes take no buffers, but many of them as much memory: each new cache block takes the place of others. It looks at
// few of them, since a request that holds more than the budget finds none that can go.
std::array<CacheBlockPtr, Cache::kVictimsOfNewBlock> Cache::trim(Shard& shard) {
  std::array<CacheBlockPtr, kVictimsOfNewBlock> victims;
  const std::lock_guard lock(shard.mutex);
  for (CacheBlockPtr& victim : victims) {
    std::size_t steps = kStepsOfNewBlock;
    victim = evict_from(shard, steps);
    if (victim == nullptr) break;
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    evictions_.fetch_add(1, std::memory_order_relaxed);
  }
  return victims;
}

// Where the main queue has none but held cache blocks, the small one must not be spared.
CacheBlockPtr Cache::evict_from_small(Shard& shard, std::size_t& steps) {
  for (auto slot = shard.small.begin(); slot != shard.small.end() && steps > 0; ++slot, --steps) {
    if (slot->block.use_count() > 1) continue;
    remember(shard, KeyHash{}(slot->block->key));
    return remove(shard, shard.small, slot);
  }
  return nullptr;
}

bool Cache::evict(std::size_t& patience) {
  for (std::size_t shards = 0; shards < kShards && patience > 0; ++shards) {
    Shard& shard = shards_[next_victim_shard_.fetch_add(1, std::memory_order_relaxed) % kShards];
    CacheBlockPtr victim;
    {
      const std::lock_guard lock(shard.mutex);
      // Each cache block is looked at a few times at most, also when all are held.
      const std::size_t most = std::min(patience, shard.map.size() * (kMaxUses + 1));
      std::size_t left = most;
      victim = evict_from(shard, left);
      patience -= most - left;
      if (victim == nullptr) victim = evict_from_small(shard, patience);
    }
    if (victim == nullptr) continue;
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    evictions_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// Memory of released buffers is used again before pages are asked for; a cache block that leaves makes some. Memory of
// other sizes goes back to the system. Where requests hold most of the cache blocks, those that can go are hard to
// find: a large demand looks at many.
void Cache::make_room(std::size_t size, const std::function<std::size_t()>& growth_now) {
  std::size_t patience = kLeastSteps + size / kBytesPerStep;  // cache blocks that are looked at and cannot go
  for (;;) {
    const std::size_t growth = growth_now(), wanted = used_bytes() + growth, limit = limit_bytes();
    if (growth == 0 || wanted <= limit) return;
    const std::size_t idle = pool_.idle_bytes(), excess = wanted - limit;
    if (idle >= excess && pool_.give_back(idle - excess) > 0) continue;
    if (!evict(patience)) return;
  }
}

void Cache::set_limit(std::size_t bytes) {
  limit_bytes_.store(bytes, std::memory_order_relaxed);
  trim_to(bytes);
}

void Cache::trim_to(std::size_t bytes) {
  std::size_t patience = kLeastSteps + blocks_.load(std::memory_order_relaxed) * (kMaxUses + 1);
  while (used_bytes() - std::min(used_bytes(), pool_.idle_bytes()) > bytes && evict(patience)) {
  }
  const std::size_t used = used_bytes(), idle = pool_.idle_bytes();
  if (used > bytes) pool_.give_back(idle - std::min(idle, used - bytes));
}

BufferRef Cache::acquire(std::size_t size, Use use) {
  make_room(size, [&] { return pool_.growth(size, use); });
  return pool_.acquire(size, use);
}

BufferRef Cache::acquire_sparse(std::size_t size, std::size_t bytes) {
  BufferRef buffer = pool_.acquire_sparse(size);
  charge(buffer, bytes);
  return buffer;
}

void Cache::charge(const BufferRef& buffer, std::size_t bytes) {
  make_room(bytes, [&] { return bytes; });
  buffer.charge(bytes);
}

void Cache::erase(const CacheBlockKey& key) {
  Shard& shard = shard_of(KeyHash{}(key));
  CacheBlockPtr block;
  {
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.map.find(key);
    if (found == shard.map.end()) return;
    const auto slot = found->second;
    block = remove(shard, slot->in_main ? shard.main : shard.small, slot);
  }
  blocks_.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<CacheBlockPtr> Cache::blocks_between(std::uint64_t object, std::uint64_t first, std::uint64_t last) {
  std::vector<CacheBlockPtr> blocks;
  if (first >= last) return blocks;
  if (last - first <= blocks_.load(std::memory_order_relaxed)) {
    for (std::uint64_t index = first; index < last; ++index)
      if (CacheBlockPtr block = peek({object, index})) blocks.push_back(std::move(block));
    return blocks;
  }
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (Queue* queue : {&shard.small, &shard.main})
      for (const Slot& slot : *queue) {
        const CacheBlockKey& key = slot.block->key;
        if (key.object == object && key.index >= first && key.index < last) blocks.push_back(slot.block);
      }
  }
  return blocks;
}

void Cache::erase_object(std::uint64_t object) {
  for (const CacheBlockPtr& block : blocks_between(object, 0, UINT64_MAX)) erase(block->key);
}

}  // namespace mdfs::engine
