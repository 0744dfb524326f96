// Splitting and grouping of requests, against a plain array.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/object_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace mdfs::device {
namespace {

constexpr std::uint64_t kObject = 64;

TEST(ObjectPlan, ARequestOverAnEndBecomesOnePieceInEachObject) {
  const DiskRange requests[] = {{48, 96}};
  const auto plan = plan_objects(requests, kObject);
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0], (ObjectOperation{0, {{48, 16, {{0, 0, 16}}}}}));
  EXPECT_EQ(plan[1], (ObjectOperation{1, {{0, 64, {{0, 16, 64}}}}}));
  EXPECT_EQ(plan[2], (ObjectOperation{2, {{0, 16, {{0, 80, 16}}}}}));
  EXPECT_EQ(plan[1].bytes(), 64u);
}

TEST(ObjectPlan, RequestsThatTouchAreOneTransferAndOthersShareTheOperation) {
  const DiskRange requests[] = {{32, 8}, {0, 8}, {8, 8}, {64, 8}};
  const auto plan = plan_objects(requests, kObject);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0], (ObjectOperation{0, {{0, 16, {{1, 0, 8}, {2, 0, 8}}}, {32, 8, {{0, 0, 8}}}}}));
  EXPECT_EQ(plan[1], (ObjectOperation{1, {{0, 8, {{3, 0, 8}}}}}));
}

TEST(ObjectPlan, AnOperationHasABoundedNumberOfTransfers) {
  std::vector<DiskRange> requests;
  for (std::uint64_t i = 0; i <= kMaxObjectExtents; ++i) requests.push_back({2 * i, 1});
  const auto plan = plan_objects(requests, 4096);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].extents.size(), kMaxObjectExtents);
  EXPECT_EQ(plan[1].object, 0u);
  EXPECT_EQ(plan[1].extents.size(), 1u);
}

RC_GTEST_PROP(ObjectPlan, EveryByteOfEveryRequestIsInOnePieceAtItsPlace, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 12);
  std::vector<DiskRange> requests;
  for (std::size_t i = 0; i < count; ++i)
    requests.push_back({*rc::gen::inRange<std::uint64_t>(0, 600), *rc::gen::inRange<std::uint64_t>(1, 200)});
  std::vector<std::map<std::uint64_t, std::uint64_t>> seen(count);  // byte of the request -> byte of the disk
  std::uint64_t last_object = 0;
  for (const ObjectOperation& operation : plan_objects(requests, kObject)) {
    RC_ASSERT(operation.object >= last_object);
    last_object = operation.object;
    for (const ObjectExtent& extent : operation.extents) {
      RC_ASSERT(extent.offset + extent.length <= kObject);
      std::uint64_t at = extent.offset;
      for (const ObjectPiece& piece : extent.pieces)
        for (std::uint64_t i = 0; i < piece.length; ++i)
          RC_ASSERT(seen[piece.request].emplace(piece.within + i, operation.object * kObject + at++).second);
      RC_ASSERT(at == extent.offset + extent.length);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(seen[i].size() == requests[i].length);
    for (const auto& [within, at] : seen[i]) RC_ASSERT(at == requests[i].offset + within);
  }
}

RC_GTEST_PROP(ObjectPlan, ADiscardCoversItsRangeAndTouchesNoOtherByteOfTheDisk, ()) {
  const auto disk = *rc::gen::inRange<std::uint64_t>(1, 400);
  const auto begin = *rc::gen::inRange<std::uint64_t>(0, disk);
  const auto length = *rc::gen::inRange<std::uint64_t>(1, disk - begin + 1);
  DiskRange range{begin, length};
  std::vector<bool> gone(disk + kObject);
  while (range.length > 0) {
    const ObjectDiscard step = next_discard(range, kObject, disk);
    const std::uint64_t base = step.object * kObject;
    const bool cuts = step.kind != ObjectDiscard::Kind::kZero;
    const std::uint64_t from = step.kind == ObjectDiscard::Kind::kRemove ? 0 : step.offset;
    for (std::uint64_t i = from; i < (cuts ? kObject : step.offset + step.length); ++i) gone[base + i] = true;
  }
  for (std::uint64_t i = 0; i < disk; ++i) RC_ASSERT(gone[i] == (i >= begin && i < begin + length));
}

}  // namespace
}  // namespace mdfs::device
