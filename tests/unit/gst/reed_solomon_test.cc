// The Reed-Solomon code: any k of the symbols give all.
// SPDX-License-Identifier: Apache-2.0
#include "reed_solomon.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mdfs::gst {
namespace {

using Symbols = std::vector<std::vector<std::byte>>;

Symbols random_symbols(std::size_t count, std::size_t bytes, std::mt19937& random) {
  Symbols symbols(count, std::vector<std::byte>(bytes));
  for (auto& symbol : symbols)
    for (auto& byte : symbol) byte = static_cast<std::byte>(random());
  return symbols;
}

std::vector<const std::byte*> pointers(const Symbols& symbols) {
  std::vector<const std::byte*> all;
  for (const auto& symbol : symbols) all.push_back(symbol.data());
  return all;
}

// Loses as many sources as there are repair symbols, or all; true if they come back.
bool comes_back(std::size_t sources, std::size_t repairs, std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  const Symbols sent = random_symbols(sources, bytes, random);
  const Symbols made = repair_symbols(pointers(sent), repairs, bytes);
  if (made.size() != repairs) return false;
  std::vector<std::size_t> order(sources), repair_order(repairs);
  std::iota(order.begin(), order.end(), 0);
  std::iota(repair_order.begin(), repair_order.end(), 0);
  std::ranges::shuffle(order, random);
  std::ranges::shuffle(repair_order, random);
  order.resize(std::min(sources, repairs));
  std::ranges::sort(order);
  auto arrived = pointers(sent);
  std::vector<RepairSymbol> used;
  for (std::size_t i = 0; i < order.size(); ++i) {
    arrived[order[i]] = nullptr;
    used.push_back({static_cast<std::uint8_t>(sources + repair_order[i]), made[repair_order[i]].data()});
  }
  const Symbols found = missing_sources(arrived, used, bytes);
  if (found.size() != order.size()) return false;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (found[i] != sent[order[i]]) return false;
  return true;
}

TEST(ReedSolomonTest, NothingIsComputedWhereNothingIsMissing) {
  std::mt19937 random(1);
  const Symbols sent = random_symbols(3, 20, random);
  EXPECT_TRUE(missing_sources(pointers(sent), {}, 20).empty());
  EXPECT_TRUE(repair_symbols(pointers(sent), 0, 20).empty());
}

TEST(ReedSolomonTest, TheLargestBlocksComeBack) {
  EXPECT_TRUE(comes_back(1, 254, 40, 1));
  EXPECT_TRUE(comes_back(254, 1, 40, 2));
  EXPECT_TRUE(comes_back(127, 128, 1402, 3));
  EXPECT_TRUE(comes_back(212, 43, 1402, 4));
}

// A receiver of another program computes the same: coefficients are 1 / (i ^ j), in the field of 0x11D.
TEST(ReedSolomonTest, TheCodeIsThatOfTheManual) {
  const Symbols sent = {{std::byte{1}}, {std::byte{0}}};
  // Repair symbol 2 of 2 sources: 1 / (2 ^ 0), which is 0x8E, because 2 * 0x8E is 0x11C, reduced 1.
  EXPECT_EQ(repair_symbols(pointers(sent), 1, 1).at(0).at(0), std::byte{0x8E});
  // Repair symbol 3: 1 / (3 ^ 0), which is 0xF4.
  EXPECT_EQ(repair_symbols(pointers(sent), 2, 1).at(1).at(0), std::byte{0xF4});
}

RC_GTEST_PROP(ReedSolomonTest, AnySymbolsThatAreEnoughGiveAll, (std::uint32_t seed)) {
  const auto sources = *rc::gen::inRange<std::size_t>(1, 255);
  const auto repairs = *rc::gen::inRange<std::size_t>(1, 256 - sources);
  const auto bytes = *rc::gen::inRange<std::size_t>(1, 200);
  RC_ASSERT(comes_back(sources, repairs, bytes, seed));
}

}  // namespace
}  // namespace mdfs::gst
