// Memory of the engine's buffers.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/slab_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "engine/cache/slab_classes.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_poison_memory_region(const volatile void* address, std::size_t size);
extern "C" void __asan_unpoison_memory_region(const volatile void* address, std::size_t size);
#endif

namespace mdfs::engine {

namespace {

// Each broken slab is a mapping of its own, of which a process has 65530.
constexpr std::size_t kMostBrokenSlabs = 8192;

void forbid([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, size);
#endif
}

void allow([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, size);
#endif
}

std::byte* map_memory(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) out_of_memory();
  return static_cast<std::byte*>(mapped);
}

// At a boundary of huge pages.
std::byte* map_aligned(std::size_t bytes) {
  std::byte* const wide = map_memory(bytes + kHugePageBytes);
  const std::size_t skip = (kHugePageBytes - reinterpret_cast<std::uintptr_t>(wide) % kHugePageBytes) % kHugePageBytes;
  if (skip > 0) ::munmap(wide, skip);
  if (skip < kHugePageBytes) ::munmap(wide + skip + bytes, kHugePageBytes - skip);
  return wide + skip;
}

void unmap(std::byte* data, std::size_t bytes) {
  allow(data, bytes);
  ::munmap(data, bytes);
}

}  // namespace

bool SlabArena::ByAddress::operator()(const Slab* a, const Slab* b) const { return std::less<>()(a->data, b->data); }

bool SlabArena::BySize::operator()(const Slab* a, const Slab* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : std::less<>()(a->data, b->data);
}

SlabArena::~SlabArena() {
  MDFS_CHECK(used_bytes_ == 0);
  for (const auto& [data, slab] : slabs_) unmap(data, slab->bytes);
}

bool SlabArena::takes_huge_slab(const SizeClass& size_class, std::size_t piece) const {
  const std::size_t bytes = huge_slab_bytes(piece);
  if (largest_huge_slab_ == 0) return false;
  return bytes == piece || (bytes <= largest_huge_slab_ && size_class.used_bytes >= bytes);
}

// A slab whose memory is there and is used by none.
SlabArena::Slab* SlabArena::reusable_slab(std::size_t piece) const {
  const auto found = unused_.find(huge_slab_bytes(piece));
  return found == unused_.end() ? nullptr : *found;
}

void SlabArena::cut(Slab& slab, std::size_t piece) {
  slab.piece = piece;
  slab.pieces = slab.bytes / piece;
  slab.charge = slab.huge ? huge_slab_charge(slab.bytes, piece) : piece;
  slab.idle.clear();
  slab.empty.clear();
  std::vector<std::uint32_t>& free = slab.huge ? slab.idle : slab.empty;
  for (auto number = static_cast<std::uint32_t>(slab.pieces); number-- > 0;) free.push_back(number);
}

SlabArena::Slab& SlabArena::new_slab(std::size_t piece, bool huge, bool sparse) {
  auto slab = std::make_unique<Slab>();
  slab->huge = huge;
  slab->sparse = sparse;
  slab->bytes = huge ? huge_slab_bytes(piece) : small_slab_bytes(piece);
  slab->data = huge ? map_aligned(slab->bytes) : map_memory(slab->bytes);
  // Where the kernel has no huge pages, small ones are used again all the same.
  ::madvise(slab->data, slab->bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  forbid(slab->data, slab->bytes);
  cut(*slab, piece);
  idle_bytes_ += slab->idle.size() * slab->charge;
  Slab& made = *slab;
  slabs_.emplace(made.data, std::move(slab));
  file(made);
  return made;
}

void SlabArena::file(Slab& slab) {
  SizeClass& size_class = class_of_slab(slab);
  if (!slab.empty.empty()) size_class.with_empty.insert(&slab);
  if (slab.idle.empty()) return;
  size_class.with_idle.insert(&slab);
  if (slab.huge && !slab.broken && slab.used == 0)
    unused_.insert(&slab);
  else
    (slab.huge && !slab.broken ? idle_huge_ : idle_small_).insert(&slab);
}

void SlabArena::unfile(Slab& slab) {
  SizeClass& size_class = class_of_slab(slab);
  for (Slabs* slabs : {&size_class.with_idle, &size_class.with_empty, &idle_small_, &idle_huge_}) slabs->erase(&slab);
  unused_.erase(&slab);
}

std::unique_ptr<SlabArena::Slab> SlabArena::remove(Slab& slab) {
  unfile(slab);
  idle_bytes_ -= slab.idle.size() * slab.charge;
  if (slab.broken) --broken_slabs_;
  const auto found = slabs_.find(slab.data);
  std::unique_ptr<Slab> removed = std::move(found->second);
  slabs_.erase(found);
  return removed;
}

SlabArena::Piece SlabArena::take(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  SizeClass& size_class = classes_[wanted];
  Slab* slab = nullptr;
  if (!size_class.with_idle.empty()) {
    slab = *size_class.with_idle.begin();
  } else if ((slab = reusable_slab(wanted)) != nullptr) {
    unfile(*slab);
    idle_bytes_ -= slab->idle.size() * slab->charge;
    cut(*slab, wanted);
    idle_bytes_ += slab->idle.size() * slab->charge;
    file(*slab);
  } else if (!size_class.with_empty.empty()) {
    slab = *size_class.with_empty.begin();
  } else {
    slab = &new_slab(wanted, takes_huge_slab(size_class, wanted), false);
  }
  const bool idle = !slab->idle.empty();
  std::byte* const data = take_from(*slab, idle);
  if (idle) idle_bytes_ -= slab->charge;
  used_bytes_ += slab->charge;
  size_class.used_bytes += slab->charge;
  return {data, slab, slab->charge};
}

std::byte* SlabArena::take_from(Slab& slab, bool idle) {
  unfile(slab);
  std::vector<std::uint32_t>& from = idle ? slab.idle : slab.empty;
  const std::uint32_t number = from.back();
  from.pop_back();
  ++slab.used;
  file(slab);
  allow(slab.at(number), slab.piece);
  return slab.at(number);
}

SlabArena::Piece SlabArena::take_sparse(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  const SizeClass& size_class = sparse_classes_[wanted];
  Slab& slab = size_class.with_empty.empty() ? new_slab(wanted, false, true) : **size_class.with_empty.begin();
  return {take_from(slab, false), &slab, 0};
}

void SlabArena::charge(Piece& piece, std::size_t bytes) {
  MDFS_CHECK(piece.slab->sparse);
  bytes = std::min(bytes, piece.slab->piece - piece.charge);
  piece.charge += bytes;
  used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void SlabArena::put(const Piece& piece) {
  Slab& slab = *piece.slab;
  if (slab.sparse) ::madvise(piece.data, slab.piece, MADV_DONTNEED);
  std::unique_ptr<Slab> done;
  {
    const std::lock_guard lock(mutex_);
    forbid(piece.data, slab.piece);
    unfile(slab);
    --slab.used;
    const auto number = static_cast<std::uint32_t>(static_cast<std::size_t>(piece.data - slab.data) / slab.piece);
    (slab.sparse ? slab.empty : slab.idle).push_back(number);
    used_bytes_ -= piece.charge;
    if (!slab.sparse) {
      idle_bytes_ += slab.charge;
      class_of_slab(slab).used_bytes -= slab.charge;
    }
    file(slab);
    if ((slab.broken || slab.sparse) && slab.used == 0) done = remove(slab);
  }
  if (done != nullptr) unmap(done->data, done->bytes);
}

// A slab that is cut again can count more bytes than before: those that its old pieces left over.
std::size_t SlabArena::growth(std::size_t wanted) const {
  const std::lock_guard lock(mutex_);
  const auto found = classes_.find(wanted);
  const SizeClass none;
  const SizeClass& size_class = found == classes_.end() ? none : found->second;
  if (!size_class.with_idle.empty()) return 0;
  if (const Slab* const slab = reusable_slab(wanted)) {
    const std::size_t before = slab->idle.size() * slab->charge;
    const std::size_t after = slab->bytes / wanted * huge_slab_charge(slab->bytes, wanted);
    return after - std::min(before, after);
  }
  if (!size_class.with_empty.empty()) return (*size_class.with_empty.begin())->charge;
  return takes_huge_slab(size_class, wanted) ? huge_slab_bytes(wanted) : wanted;
}

// Memory that is being given back is in no set meanwhile, so that the kernel works without the lock.
std::size_t SlabArena::give_back(std::size_t left) {
  for (std::size_t given = 0;;) {
    std::unique_ptr<Slab> whole;
    Slab* part = nullptr;
    std::vector<std::uint32_t> pieces;
    {
      const std::lock_guard lock(mutex_);
      const bool may_break = broken_slabs_ < kMostBrokenSlabs;
      Slab* const taken = !unused_.empty()                   ? *unused_.rbegin()
                          : !idle_small_.empty()             ? *idle_small_.rbegin()
                          : may_break && !idle_huge_.empty() ? *idle_huge_.rbegin()
                                                             : nullptr;
      if (idle_bytes_ <= left || taken == nullptr) return given;
      Slab& slab = *taken;
      given += slab.idle.size() * slab.charge;
      if (slab.used == 0) {
        whole = remove(slab);
      } else {
        unfile(slab);
        idle_bytes_ -= slab.idle.size() * slab.charge;
        pieces.swap(slab.idle);
        if (slab.huge && !slab.broken) ++broken_slabs_;
        slab.broken = slab.huge;
        ++slab.used;  // stays while its pieces are away
        file(slab);
        part = &slab;
      }
    }
    if (whole != nullptr) {
      unmap(whole->data, whole->bytes);
      continue;
    }
    // Otherwise the kernel fills the gaps with huge pages again.
    if (part->huge) ::madvise(part->data, part->bytes, MADV_NOHUGEPAGE);
    for (const std::uint32_t number : pieces) ::madvise(part->at(number), part->piece, MADV_DONTNEED);
    std::unique_ptr<Slab> done;
    {
      const std::lock_guard lock(mutex_);
      unfile(*part);
      --part->used;
      part->empty.insert(part->empty.end(), pieces.begin(), pieces.end());
      file(*part);
      if (part->broken && part->used == 0) done = remove(*part);
    }
    if (done != nullptr) unmap(done->data, done->bytes);
  }
}

}  // namespace mdfs::engine
