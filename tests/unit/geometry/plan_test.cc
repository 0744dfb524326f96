// Requests made of parts: every wanted byte once, in few requests.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>

namespace mdfs::geometry {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

DiskLimits requests_of(std::uint64_t max_request_bytes, std::uint64_t max_gap_bytes = 0) {
  return {max_request_bytes, max_gap_bytes};
}

TEST(PlanTest, NeighboursBecomeOneRequest) {
  const std::vector<PlanPart> parts = {{0, 200, 100}, {0, 100, 100}, {0, 400, 50}};
  const auto plan = plan_requests(parts, std::vector{requests_of(1000)});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->disks.size(), 1u);
  const DiskPlan& disk = plan->disks[0];
  EXPECT_EQ(disk.runs, 2u);
  EXPECT_EQ(disk.bytes, 250u);
  ASSERT_EQ(disk.requests.size(), 2u);
  EXPECT_EQ(disk.requests[0].offset_bytes, 100u);
  EXPECT_EQ(disk.requests[0].length_bytes, 200u);
  const auto pieces = disk.pieces_of(disk.requests[0]);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].part, 1u);
  EXPECT_EQ(pieces[1].part, 0u);
  EXPECT_EQ(pieces[1].request_offset_bytes, 100u);
}

TEST(PlanTest, RunsAreCutBetweenPartsWhereThatCostsNoRequest) {
  // Twelve parts of 48 KiB are 576 KiB: three requests of at most 256 KiB, each whole parts.
  std::vector<PlanPart> parts;
  for (std::uint64_t i = 0; i < 12; ++i) parts.push_back({0, i * 49152, 49152});
  const auto plan = plan_requests(parts, std::vector{requests_of(262144)});
  ASSERT_EQ(plan->disks[0].requests.size(), 3u);
  EXPECT_EQ(plan->disks[0].pieces.size(), 12u);
}

TEST(PlanTest, APartLongerThanARequestIsCut) {
  const auto plan = plan_requests(std::vector<PlanPart>{{0, 4096, 10 * kMiB + 1}}, std::vector{requests_of(kMiB)});
  EXPECT_EQ(plan->disks[0].requests.size(), 11u);
  EXPECT_EQ(plan->disks[0].runs, 1u);
}

TEST(PlanTest, SmallGapsAreReadThroughIfAsked) {
  const std::vector<PlanPart> parts = {{0, 0, 100}, {0, 150, 100}, {0, 500, 100}};
  const auto plan = plan_requests(parts, std::vector{requests_of(1000, 50)});
  ASSERT_EQ(plan->disks[0].requests.size(), 2u);
  EXPECT_EQ(plan->disks[0].requests[0].length_bytes, 250u);
  EXPECT_EQ(plan->disks[0].bytes, 350u);
  EXPECT_EQ(plan->disks[0].runs, 3u);
}

TEST(PlanTest, NothingWantedIsAnEmptyPlan) {
  EXPECT_TRUE(plan_requests({}, {})->disks.empty());
  EXPECT_TRUE(plan_requests(std::vector<PlanPart>{{0, 5, 0}}, std::vector{requests_of(1)})->disks.empty());
}

TEST(PlanTest, NonsenseIsRefused) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(plan_requests(std::vector<PlanPart>{{1, 0, 1}}, std::vector{requests_of(1)}).ok());
  EXPECT_FALSE(plan_requests(std::vector<PlanPart>{{0, kMax, 2}}, std::vector{requests_of(1)}).ok());
  EXPECT_FALSE(plan_requests(std::vector<PlanPart>{{0, 0, 1}}, std::vector{requests_of(0)}).ok());
  EXPECT_TRUE(plan_requests(std::vector<PlanPart>{{0, kMax - 1, 1}}, std::vector{requests_of(kMax)}).ok());
}

struct Input {
  std::vector<PlanPart> parts;
  std::vector<DiskLimits> limits;
};

Input any_input() {
  Input input;
  const auto disks = *rc::gen::inRange(1u, 4u);
  for (unsigned disk = 0; disk < disks; ++disk)
    input.limits.push_back(
        requests_of(*rc::gen::inRange<std::uint64_t>(1, 60), *rc::gen::element<std::uint64_t>(0, 0, 7)));
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i)
    input.parts.push_back({*rc::gen::inRange(0u, disks), *rc::gen::inRange<std::uint64_t>(0, 60) * 10,
                           *rc::gen::element<std::uint64_t>(0, 3, 10, 10, 20, 95)});
  return input;
}

RC_GTEST_PROP(PlanTest, PiecesGiveEveryPartEachOfItsBytesOnce, ()) {
  const Input input = any_input();
  const auto plan = plan_requests(input.parts, input.limits);
  RC_ASSERT(plan.ok());
  std::map<std::size_t, std::vector<int>> got;
  for (const DiskPlan& disk : plan->disks) {
    std::uint64_t before = 0, bytes = 0;
    std::size_t pieces = 0;
    for (const PlanRequest& request : disk.requests) {
      RC_ASSERT((request.length_bytes >= 1 && request.length_bytes <= input.limits[disk.disk].max_request_bytes));
      RC_ASSERT(request.offset_bytes >= before);
      before = request.offset_bytes + request.length_bytes;
      bytes += request.length_bytes;
      RC_ASSERT(request.piece_count >= 1);
      RC_ASSERT(request.first_piece == pieces);
      pieces += request.piece_count;
      for (const RequestPiece& piece : disk.pieces_of(request)) {
        const PlanPart& part = input.parts[piece.part];
        RC_ASSERT(part.disk == disk.disk);
        RC_ASSERT(part.offset_bytes + piece.part_offset_bytes == request.offset_bytes + piece.request_offset_bytes);
        RC_ASSERT(piece.request_offset_bytes + piece.length_bytes <= request.length_bytes);
        auto& bytes_of_part = got[piece.part];
        bytes_of_part.resize(part.length_bytes);
        for (std::uint64_t i = 0; i < piece.length_bytes; ++i) ++bytes_of_part.at(piece.part_offset_bytes + i);
      }
    }
    RC_ASSERT((disk.bytes == bytes && pieces == disk.pieces.size()));
  }
  for (std::size_t i = 0; i < input.parts.size(); ++i)
    RC_ASSERT(got[i] == std::vector<int>(input.parts[i].length_bytes, 1));
}

RC_GTEST_PROP(PlanTest, RunsAreCutIntoAsFewRequestsAsTheLimitAllows, ()) {
  Input input = any_input();
  for (DiskLimits& limit : input.limits) limit.max_gap_bytes = 0;
  const auto plan = plan_requests(input.parts, input.limits);
  for (const DiskPlan& disk : plan->disks) {
    const std::uint64_t most = input.limits[disk.disk].max_request_bytes;
    std::uint64_t fewest = 0, run = 0, end = 0;
    for (const PlanRequest& request : disk.requests) {
      if (run > 0 && request.offset_bytes != end) {
        fewest += (run + most - 1) / most;
        run = 0;
      }
      run += request.length_bytes;
      end = request.offset_bytes + request.length_bytes;
    }
    fewest += (run + most - 1) / most;
    RC_ASSERT(disk.requests.size() == fewest);
  }
}

}  // namespace
}  // namespace mdfs::geometry
