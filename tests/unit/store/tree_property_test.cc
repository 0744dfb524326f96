// The store against a std::map: random transactions, commits and reopenings.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "store_fixture.h"

namespace mdfs::store {
namespace {

struct Case {
  std::size_t disks;
  std::uint32_t block_size;
  std::size_t cache_bytes;
  std::uint64_t keys;
  std::size_t max_value;
};

class TreeProperty : public testing::TestWithParam<Case> {};

// Changes the store and the model by the same random transaction.
void change(Store& store, Model& model, const Case& setup, std::mt19937_64& random) {
  Model after = model;
  const bool fails = random() % 10 == 0;
  const Status status = store.transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    const std::size_t steps = 1 + random() % 20;
    const bool erasing = random() % 3 == 0;
    // Anywhere, or one key after another, upwards or downwards: leaves at the beginnings of nodes empty and fill.
    const std::uint64_t pattern = random() % 4, from = random() % (random() % 2 == 0 ? setup.keys : 40);
    for (std::size_t i = 0; i < steps; ++i) {
      const Key key = item_key(pattern > 1    ? random() % setup.keys
                               : pattern == 1 ? (from + i) % setup.keys
                                              : (from + setup.keys - i % setup.keys) % setup.keys);
      if (erasing || random() % 4 == 0) {
        transaction.erase(key);
        after.erase(key);
      } else {
        const ByteVector value =
            value_of(random() % 3 == 0 ? setup.max_value : random() % (setup.max_value + 1), random());
        transaction.put(key, value);
        after[key] = value;
      }
      const Key looked = item_key(random() % setup.keys);
      const auto got = transaction.get(looked);
      EXPECT_OK(got);
      const auto expected = after.find(looked);
      EXPECT_EQ(*got, expected == after.end() ? std::nullopt : std::optional(expected->second));
    }
    if (fails) return Error{Errc::kCancelled, "on purpose"};
    return {};
  });
  EXPECT_EQ(status.ok(), !fails) << (status.ok() ? "" : status.error().message());
  if (!fails) model = std::move(after);
}

TEST_P(TreeProperty, EqualsAMapThroughTransactionsCommitsAndReopenings) {
  const Case setup = GetParam();
  std::mt19937_64 random(setup.disks * 1000 + setup.keys);
  SeededEnvironment environment(7);
  const Disks disks = make_disks(setup.disks, 64u << 20);
  FormatOptions format;
  format.block_size = setup.block_size;
  ASSERT_OK(format_disks(disks, environment, format));
  StoreOptions options;
  options.node_cache_bytes = setup.cache_bytes;
  options.dirty_node_limit = 64;
  Model model;
  for (int round = 0; round < 6; ++round) {
    auto store = open_disks(disks, environment, options);
    ASSERT_OK(store);
    ASSERT_TRUE(read_all(**store) == model);
    for (int i = 0; i < 150; ++i) {
      change(**store, model, setup, random);
      if (i % 40 == 7) {
        ASSERT_OK((*store)->commit());
      }
      if (i % 50 == 9) {
        ASSERT_TRUE(read_all(**store) == model);
      }
    }
    ASSERT_OK((*store)->commit());
    EXPECT_FALSE((*store)->dirty());
  }
  auto store = open_disks(disks, environment, options);
  ASSERT_OK(store);
  EXPECT_TRUE(read_all(**store) == model);
  // Empty it again.
  for (const auto& [key, value] : model) {
    const auto erase = [k = key](Transaction& transaction) -> Status {
      transaction.erase(k);
      return {};
    };
    ASSERT_OK((*store)->transact(Purpose::kFreeing, erase));
  }
  ASSERT_OK((*store)->commit());
  EXPECT_TRUE(read_all(**store).empty());
}

INSTANTIATE_TEST_SUITE_P(Shapes, TreeProperty,
                         testing::Values(Case{1, 4096, 16u << 20, 400, 200}, Case{2, 4096, 0, 2000, 60},
                                         Case{4, 4096, 1u << 20, 500, 4096}, Case{3, 16384, 100000, 300, 6144},
                                         Case{2, 4096, 1u << 20, 1500, 6144}, Case{1, 65536, 1u << 20, 3000, 100}));

// The branch of a leaf that is gone was the first: the next one has a key that is too large for what comes then.
TEST(StoreTest, KeysBelowTheFirstBranchOfANodeAreFoundWhenItsLeafDivides) {
  SeededEnvironment environment(1);
  const Disks disks = make_disks(2, 32u << 20);
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  constexpr std::size_t kLarge = MDFS_MAX_ITEM;  // two make a leaf
  Model model = read_all(**store);
  const auto put = [&](std::uint64_t first, std::uint64_t last) {
    ASSERT_OK((*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
      for (std::uint64_t i = first; i < last; ++i) {
        transaction.put({20, 4, i}, value_of(kLarge, i));
        model[{20, 4, i}] = value_of(kLarge, i);
      }
      return {};
    }));
  };
  // Three levels. Wherever a node of the middle one begins, what it begins with goes, and smaller keys come.
  constexpr std::uint64_t kFirst = 1000, kKeys = 800, kGap = 8;
  for (std::uint64_t i = 0; i < kKeys; i += 40) put(kFirst + i, kFirst + i + 40);
  for (std::uint64_t gap = kFirst; gap < kFirst + kKeys; gap += kGap) {
    ASSERT_OK((*store)->transact(Purpose::kFreeing, [&](Transaction& transaction) -> Status {
      for (std::uint64_t i = gap; i < gap + kGap; ++i) transaction.erase({20, 4, i});
      return {};
    }));
    ASSERT_OK((*store)->commit());
    for (std::uint64_t i = gap + kGap - 1; i > gap; --i) put(i, i + 1);
    put(gap, gap + 1);
    ASSERT_OK((*store)->commit());
  }
  EXPECT_TRUE(read_all(**store) == model);
  ASSERT_OK((*store)->commit());
  EXPECT_TRUE(read_all(**store) == model);
  store = open_disks(disks, environment);
  ASSERT_OK(store);
  EXPECT_TRUE(read_all(**store) == model);
}

TEST(StoreTest, TransactionsSeeTheirOwnChangesInScans) {
  SeededEnvironment environment(1);
  const Disks disks = make_disks(2, 8u << 20);
  ASSERT_OK(format_disks(disks, environment));
  auto store = open_disks(disks, environment);
  ASSERT_OK(store);
  const Status first = (*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    for (std::uint64_t i = 0; i < 10; ++i) transaction.put({20, 4, i}, value_of(8, i));
    return {};
  });
  ASSERT_OK(first);
  const Status second = (*store)->transact(Purpose::kNormal, [&](Transaction& transaction) -> Status {
    transaction.erase({20, 4, 0});
    transaction.erase({20, 4, 1});
    transaction.put({20, 4, 100}, value_of(9, 100));
    transaction.put({20, 4, 5}, value_of(3, 5));
    auto items = transaction.scan({20, 4, 0}, {20, 4, 1000}, 4);
    EXPECT_OK(items);
    EXPECT_EQ(items->size(), 4u);
    EXPECT_EQ((*items)[0].key.offset, 2u);
    EXPECT_EQ((*items)[3].value, value_of(3, 5));
    items = transaction.scan({20, 4, 0}, {20, 4, 1000}, SIZE_MAX);
    EXPECT_OK(items);
    EXPECT_EQ(items->size(), 9u);
    EXPECT_EQ(items->back().key.offset, 100u);
    return {};
  });
  ASSERT_OK(second);
}

}  // namespace
}  // namespace mdfs::store
