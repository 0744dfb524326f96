// Slabs and their pieces: sizes, reuse, what goes back to the system.
// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/slab_arena.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "engine/cache/slab_classes.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" int __asan_address_is_poisoned(const volatile void* address);
#endif

namespace mdfs::engine {
namespace {

constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kLargestSlab = 8 * kMiB;

// Of this process; a sanitizer's own memory would be counted too.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

void fill(const SlabArena::Piece& piece, std::size_t size, int value) { std::memset(piece.data, value, size); }

TEST(SlabClassesTest, AClassIsAtMostAnEighthOrAPageLargerThanTheBuffer) {
  for (std::size_t size = 1; size < 40 * kMiB; size += size < 100'000 ? 1 : 4093) {
    const std::size_t found = class_of(size);
    ASSERT_GE(found, size);
    ASSERT_LT(found - size, std::max(kPageBytes, size / 8 + 1)) << size;
    ASSERT_EQ(found % kPageBytes, 0u);
    ASSERT_EQ(class_of(found), found);
  }
}

TEST(SlabClassesTest, ASlabOfHugePagesLeavesASixteenthOverAtMost) {
  for (std::size_t piece = kPageBytes; piece < 40 * kMiB; piece = class_of(piece + 1)) {
    const std::size_t slab = huge_slab_bytes(piece);
    ASSERT_GE(slab, piece);
    ASSERT_LE(slab % piece, slab / 16) << piece;
    ASSERT_LE(slab, std::max(16 * kMiB, piece)) << piece;
    ASSERT_TRUE(slab % kHugePageBytes == 0 || slab == piece) << piece;
  }
}

TEST(SlabArenaTest, IdlePiecesAreUsedBeforeNewPages) {
  SlabArena arena(kLargestSlab);
  const SlabArena::Piece first = arena.take(class_of(200'000));
  EXPECT_GT(arena.growth(class_of(200'000)), 0u);
  arena.put(first);
  EXPECT_EQ(arena.growth(class_of(200'000)), 0u);
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(arena.idle_bytes(), first.charge);
  const SlabArena::Piece second = arena.take(class_of(200'000));
  EXPECT_EQ(second.data, first.data);
  arena.put(second);
}

TEST(SlabArenaTest, AFewSmallBuffersHoldNoHugePages) {
  SlabArena arena(kLargestSlab);
  std::vector<SlabArena::Piece> pieces;
  for (std::size_t size = kPageBytes; size <= 256 << 10; size = class_of(size + 1)) pieces.push_back(arena.take(size));
  std::size_t charged = 0;
  for (const SlabArena::Piece& piece : pieces) charged += piece.charge;
  EXPECT_EQ(arena.used_bytes(), charged);
  EXPECT_EQ(arena.idle_bytes(), 0u);
  for (const SlabArena::Piece& piece : pieces) arena.put(piece);
}

TEST(SlabArenaTest, ASlabWithoutAPieceInUseServesAnotherClassWithoutNewPages) {
  SlabArena arena(kLargestSlab);
  const std::size_t one = 256 << 10, other = 128 << 10;
  std::vector<SlabArena::Piece> pieces;
  while (arena.used_bytes() < 16 * kMiB) pieces.push_back(arena.take(one));
  while (arena.growth(other) < kHugePageBytes) pieces.push_back(arena.take(other));  // its small slabs are used up
  const std::size_t before = arena.used_bytes() + arena.idle_bytes();
  std::vector<SlabArena::Piece> kept;
  for (const SlabArena::Piece& piece : pieces) {
    if (piece.charge == one)
      arena.put(piece);
    else
      kept.push_back(piece);
  }
  EXPECT_EQ(arena.growth(other), 0u);
  kept.push_back(arena.take(other));
  EXPECT_EQ(arena.used_bytes() + arena.idle_bytes(), before);
  for (const SlabArena::Piece& piece : kept) arena.put(piece);
}

// 85 pieces of 24 KiB are charged 2 MiB less 32 bytes; 512 pages are charged all of them.
TEST(SlabArenaTest, ASlabThatIsCutAgainGrowsByWhatItsPiecesLeftOver) {
  SlabArena arena(kLargestSlab);
  const std::size_t one = 24 << 10, other = 4096;
  std::vector<SlabArena::Piece> pieces, kept;
  while (arena.used_bytes() < 16 * kMiB) pieces.push_back(arena.take(one));
  while (arena.growth(other) < kHugePageBytes) kept.push_back(arena.take(other));
  for (const SlabArena::Piece& piece : pieces) arena.put(piece);
  const std::size_t before = arena.used_bytes() + arena.idle_bytes(), growth = arena.growth(other);
  kept.push_back(arena.take(other));
  EXPECT_EQ(growth, 32u);
  EXPECT_EQ(arena.used_bytes() + arena.idle_bytes(), before + growth);
  for (const SlabArena::Piece& piece : kept) arena.put(piece);
}

TEST(SlabArenaTest, WhatIsGivenBackIsNoMemoryOfTheProcess) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's memory would be counted";
  SlabArena arena(kLargestSlab);
  const std::size_t before = resident_bytes();
  std::vector<SlabArena::Piece> pieces;
  for (int i = 0; i < 256; ++i) {
    pieces.push_back(arena.take(256 << 10));
    fill(pieces.back(), 256 << 10, i);
  }
  EXPECT_GT(resident_bytes(), before + 60 * kMiB);
  for (const SlabArena::Piece& piece : pieces) arena.put(piece);
  EXPECT_EQ(arena.idle_bytes(), 64 * kMiB);
  EXPECT_EQ(arena.give_back(0), 64 * kMiB);
  EXPECT_EQ(arena.idle_bytes(), 0u);
  EXPECT_LT(resident_bytes(), before + 4 * kMiB);
}

TEST(SlabArenaTest, PiecesInUseSpreadOverAllSlabsHoldNoMoreThanTheirOwnMemory) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's memory would be counted";
  SlabArena arena(kLargestSlab);
  const std::size_t before = resident_bytes();
  std::vector<SlabArena::Piece> pieces, kept;
  for (int i = 0; i < 512; ++i) {
    pieces.push_back(arena.take(128 << 10));
    fill(pieces.back(), 128 << 10, i);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (i % 8 == 3)
      kept.push_back(pieces[i]);
    else
      arena.put(pieces[i]);
  arena.give_back(0);
  EXPECT_EQ(arena.idle_bytes(), 0u);
  EXPECT_EQ(arena.used_bytes(), 8 * kMiB);
  EXPECT_LT(resident_bytes(), before + 8 * kMiB + 4 * kMiB);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].data[0], static_cast<std::byte>(8 * i + 3));
    EXPECT_EQ(kept[i].data[(128 << 10) - 1], static_cast<std::byte>(8 * i + 3));
    arena.put(kept[i]);
  }
  // The slabs that had lost pages are whole again, or gone.
  EXPECT_LE(arena.idle_bytes(), 4 * kMiB);
}

TEST(SlabArenaTest, ASparsePieceCountsAndHoldsWhatIsFilled) {
  SlabArena arena(kLargestSlab);
  const std::size_t before = resident_bytes();
  std::vector<SlabArena::Piece> pieces;
  for (int i = 0; i < 512; ++i) {
    pieces.push_back(arena.take_sparse(256 << 10));
    arena.charge(pieces.back(), 16 << 10);
    std::memset(pieces.back().data + (64 << 10), i, 16 << 10);
  }
  EXPECT_EQ(arena.used_bytes(), 8 * kMiB);
  if (!is_sanitized()) {
    EXPECT_LT(resident_bytes(), before + 12 * kMiB);
  }
  arena.charge(pieces[7], 10 * kMiB);
  EXPECT_EQ(pieces[7].charge, 256u << 10) << "all of it at most";
  for (const SlabArena::Piece& piece : pieces) arena.put(piece);
  EXPECT_EQ(arena.used_bytes() + arena.idle_bytes(), 0u);
  if (!is_sanitized()) {
    EXPECT_LT(resident_bytes(), before + 4 * kMiB);
  }
}

#if defined(__SANITIZE_ADDRESS__)
TEST(SlabArenaTest, FreePiecesArePoisoned) {
  SlabArena arena(kLargestSlab);
  const SlabArena::Piece piece = arena.take(64 << 10), beside = arena.take(64 << 10);
  EXPECT_EQ(__asan_address_is_poisoned(piece.data), 0);
  arena.put(piece);
  EXPECT_NE(__asan_address_is_poisoned(piece.data), 0);
  EXPECT_NE(__asan_address_is_poisoned(piece.data + (64 << 10) - 1), 0);
  EXPECT_EQ(__asan_address_is_poisoned(beside.data), 0);
  arena.put(beside);
}
#endif

TEST(SlabArenaTest, ManyThreadsTakePiecesAndGiveMemoryBack) {
  SlabArena arena(kLargestSlab);
  const auto work = [&arena](unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<SlabArena::Piece> held;
    for (int step = 0; step < 2000; ++step) {
      if (held.size() < 20 || random() % 2 == 0) {
        held.push_back(arena.take(class_of(random() % 3 == 0 ? 256 << 10 : 64 << 10)));
        held.back().data[0] = static_cast<std::byte>(seed);
      } else {
        EXPECT_EQ(held.back().data[0], static_cast<std::byte>(seed));
        arena.put(held.back());
        held.pop_back();
      }
      if (step % 64 == 0) arena.give_back(random() % kMiB);
      if (held.size() > 60) {
        for (const SlabArena::Piece& piece : held) arena.put(piece);
        held.clear();
      }
    }
    for (const SlabArena::Piece& piece : held) arena.put(piece);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(arena.used_bytes(), 0u);
  arena.give_back(0);
  EXPECT_EQ(arena.idle_bytes(), 0u);
}

// Any sequence of calls: pieces keep their bytes, and the counts are the sums of the pieces.
RC_GTEST_PROP(SlabArenaTest, PiecesAreApartAndCounted, ()) {
  struct Held {
    SlabArena::Piece piece;
    std::size_t size;
    std::byte mark;
  };
  SlabArena arena(*rc::gen::element<std::size_t>(0, kHugePageBytes, kLargestSlab));
  // An arena must not end before its pieces, also when an assertion leaves the function.
  struct AllHeld {
    SlabArena& arena;
    std::vector<Held> pieces;
    void put_all() {
      for (const Held& one : pieces) arena.put(one.piece);
      pieces.clear();
    }
    ~AllHeld() { put_all(); }
  } all{arena, {}};
  std::vector<Held>& held = all.pieces;
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const std::vector<std::size_t> sizes = {4096, 24 << 10, 208 << 10, 256 << 10, 1152 << 10, 3 * kMiB};
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t choice = random() % 100;
    if (choice < 60 || held.empty()) {
      const std::size_t size = sizes[random() % sizes.size()];
      const std::size_t growth = arena.growth(size), before = arena.used_bytes() + arena.idle_bytes();
      const bool sparse = random() % 4 == 0;
      held.push_back({sparse ? arena.take_sparse(size) : arena.take(size), size, static_cast<std::byte>(random())});
      if (sparse)
        arena.charge(held.back().piece, size);
      else
        RC_ASSERT(arena.used_bytes() + arena.idle_bytes() <= before + growth);
      RC_ASSERT(held.back().piece.charge >= size);
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) held.back().piece.data[at] = held.back().mark;
    } else if (choice < 95) {
      const std::size_t at = random() % held.size();
      arena.put(held[at].piece);
      held[at] = held.back();
      held.pop_back();
    } else {
      const std::size_t left = random() % (4 * kMiB);
      arena.give_back(left);
      RC_ASSERT(arena.idle_bytes() <= left);
    }
    std::size_t charged = 0;
    for (const Held& one : held) {
      charged += one.piece.charge;
      for (const std::size_t at : {std::size_t{0}, one.size / 2, one.size - 1})
        RC_ASSERT(one.piece.data[at] == one.mark);
    }
    RC_ASSERT(arena.used_bytes() == charged);
  }
  all.put_all();
  RC_ASSERT(arena.used_bytes() == 0u);
  arena.give_back(0);
  RC_ASSERT(arena.idle_bytes() == 0u);
}

}  // namespace
}  // namespace mdfs::engine
