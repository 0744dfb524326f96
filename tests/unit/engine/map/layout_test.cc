// Pages of a layout: each row is in exactly one page, whatever happens to the image between two of them.
// SPDX-License-Identifier: Apache-2.0
#include "engine/map/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "engine_fixture.h"

namespace mdfs::engine::testing {
namespace {

using geometry::Codec;
using Row = std::tuple<geometry::Coord, unsigned, std::uint64_t, std::uint64_t, std::uint32_t, bool>;

Row row_of(const layout::ExtentPlace& place) {
  return {place.index, place.disk, place.block, place.stored_bytes, place.pieces, place.in_strip};
}

std::vector<Row> rows_of(const LayoutRows& page) {
  std::vector<Row> rows;
  for (const layout::ExtentPlace& place : page.rows) rows.push_back(row_of(place));
  return rows;
}

// All rows, in pages whose sizes `most` says.
std::vector<Row> paged(Bench& bench, LayoutOf of, const std::function<std::size_t()>& most) {
  std::vector<Row> rows;
  LayoutRequest request{.of = of};
  for (bool at_end = false; !at_end;) {
    request.most = most();
    const auto page = bench.engine().layout(bench.object(), request, {});
    MDFS_CHECK(page.ok() && page->rows.size() <= request.most);
    MDFS_CHECK(page->at_end || page->rows.size() == request.most);
    for (const Row& row : rows_of(*page)) rows.push_back(row);
    request.from = page->next;
    at_end = page->at_end;
  }
  return rows;
}

std::vector<Row> whole(Bench& bench, LayoutOf of) {
  return paged(bench, of, [] { return std::size_t{SIZE_MAX}; });
}

// Rank 3 with bytes in strips, whole extents and holes; or rank 2, 1, or a file, with holes.
Setting setting_of(unsigned kind, Codec codec) {
  Setting setting;
  if (kind == 0) setting.geometry = image_of(3, {0, 512, 512}, {8, 64, 64}, codec);
  if (kind == 1) setting.geometry = image_of(2, {700, 900}, {16, 64}, codec);
  if (kind == 2) setting.geometry = image_of(1, {200'000}, {1000}, codec);
  return setting;
}

void fill(Bench& bench, unsigned kind, std::mt19937_64& random) {
  if (kind == 0) {
    for (std::uint64_t frame = 0; frame < 8 + random() % 16; ++frame) {
      const ByteVector bytes = noise(random, 512 * 512, true);
      MDFS_CHECK(bench.engine().write(bench.object(), frame * 512 * 512, bytes).ok());
      if (random() % 2 == 0) MDFS_CHECK(bench.engine().write_back(bench.object()).ok());
    }
  } else {
    for (unsigned i = 0; i < 12; ++i)
      MDFS_CHECK(
          bench.engine()
              .write(bench.object(), random() % (kind == 3 ? 6'000'000 : 150'000), noise(random, random() % 40'000))
              .ok());
  }
  MDFS_CHECK(bench.engine().write_back(bench.object()).ok());
}

RC_GTEST_PROP(LayoutPagesPropertyTest, PagesOfAnySizeHaveEachRowOnceAndInTheSameOrder, ()) {
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const auto kind = static_cast<unsigned>(random() % 4);
  Bench bench(setting_of(kind, random() % 2 == 0 ? Codec::kRaw : Codec::kZstd));
  fill(bench, kind, random);
  for (const LayoutOf of : {LayoutOf::kAll, LayoutOf::kExtents, LayoutOf::kStrips}) {
    const std::vector<Row> all = whole(bench, of);
    const std::size_t largest = 1 + random() % 300;
    const std::vector<Row> pages = paged(bench, of, [&] { return 1 + random() % largest; });
    RC_ASSERT(pages == all);
    std::vector<Row> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    RC_ASSERT(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  }
  const std::size_t parts = whole(bench, LayoutOf::kStrips).size();
  RC_ASSERT(whole(bench, LayoutOf::kExtents).size() + parts == whole(bench, LayoutOf::kAll).size());
}

TEST(LayoutPagesTest, ExtentsInStripsComeToo) {
  std::mt19937_64 random(1);
  Bench bench(setting_of(0, Codec::kRaw));
  for (std::uint64_t frame = 0; frame < 3; ++frame) {
    ASSERT_TRUE(bench.engine().write(bench.object(), frame * 512 * 512, noise(random, 512 * 512)).ok());
    ASSERT_TRUE(bench.engine().write_back(bench.object()).ok());
  }
  EXPECT_EQ(whole(bench, LayoutOf::kStrips).size(), 3u * 64);
  EXPECT_EQ(paged(bench, LayoutOf::kAll, [] { return std::size_t{1}; }).size(), 3u * 64);
}

// What is written into holes comes or does not come; what is moved or rewritten comes once.
RC_GTEST_PROP(LayoutPagesPropertyTest, ExtentsThatStayStoredComeOnceWhateverMovesBetweenPages, ()) {
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  Bench bench(setting_of(1, random() % 2 == 0 ? Codec::kRaw : Codec::kZstd));
  fill(bench, 1, random);
  std::map<geometry::Coord, unsigned> stored, seen;
  for (const Row& row : whole(bench, LayoutOf::kExtents)) stored[std::get<0>(row)] = 1;
  LayoutRequest request{.of = LayoutOf::kExtents};
  for (bool at_end = false; !at_end;) {
    request.most = 1 + random() % 40;
    const auto page = bench.engine().layout(bench.object(), request, {});
    RC_ASSERT(page.ok());
    for (const layout::ExtentPlace& place : page->rows) ++seen[place.index];
    request.from = page->next;
    at_end = page->at_end;
    MoveRequest move;
    for (const auto& [extent, count] : stored)
      if (random() % 3 == 0) move.extents.push_back(extent);
    move.disk = [](const geometry::Coord&) { return 1u; };
    RC_ASSERT(bench.engine().move(bench.object(), move).ok());
    RC_ASSERT(bench.engine().write(bench.object(), random() % 600'000, noise(random, 100)).ok());
    RC_ASSERT(bench.engine().write_back(bench.object()).ok());
  }
  for (const auto& [extent, count] : seen) RC_ASSERT(count == 1);
  for (const auto& [extent, count] : stored) RC_ASSERT(seen.contains(extent));
}

TEST(LayoutPagesTest, BehindTheLastRowThereIsNothing) {
  std::mt19937_64 random(2);
  for (unsigned kind = 0; kind < 4; ++kind) {
    Bench bench(setting_of(kind, Codec::kRaw));
    fill(bench, kind, random);
    for (const LayoutCursor from :
         {LayoutCursor{1u << 20, 0}, LayoutCursor{UINT64_MAX, 0}, LayoutCursor{UINT64_MAX, kMostRowsOfPage - 1},
          LayoutCursor{UINT64_MAX / 256, 70}}) {
      const auto page = bench.engine().layout(bench.object(), {.from = from}, {});
      ASSERT_TRUE(page.ok()) << page.error().message();
      EXPECT_TRUE(page->rows.empty());
      EXPECT_TRUE(page->at_end);
    }
  }
}

TEST(LayoutPagesTest, AWalkThatIsStoppedEndsThere) {
  std::mt19937_64 random(3);
  Bench bench(setting_of(1, Codec::kRaw));
  fill(bench, 1, random);
  const auto page = bench.engine().layout(bench.object(), {}, [] { return true; });
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.error().code, Errc::kCancelled);
  const auto fragmentation = bench.engine().fragmentation(bench.object(), [] { return true; });
  ASSERT_FALSE(fragmentation.ok());
  EXPECT_EQ(fragmentation.error().code, Errc::kCancelled);
}

}  // namespace
}  // namespace mdfs::engine::testing
