// Copying boxes, cutting windows into pieces and planning requests: the arithmetic in every read.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>

#include "geometry/copy_box.h"
#include "geometry/decompose.h"
#include "geometry/placement.h"
#include "geometry/plan.h"
#include "geometry/reduce.h"

namespace mdfs::geometry {
namespace {

constexpr unsigned kSampleBytes = 3;
constexpr std::uint64_t kExtentSide = 128;

// 16384x16384x3 u8 in extents of 128x128.
const ByteGeometry kPicture{2, {16384, 16384 * kSampleBytes, 0}, {kExtentSide, kExtentSide* kSampleBytes, 0}};
const ByteGeometry kVolume{3, {768, 768, 768}, {64, 64, 64}};

// The floor of the copies below: the same bytes in one piece.
void BM_Memcpy(benchmark::State& state) {
  const auto side = static_cast<std::size_t>(state.range(0));
  ByteVector from(side * side * kSampleBytes), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}
BENCHMARK(BM_Memcpy)->Arg(64)->Arg(512)->Arg(2048);

// A square window assembled out of its extents, all of them in memory, at a position that is no multiple of them.
void BM_AssembleWindow(benchmark::State& state) {
  const auto side = static_cast<std::uint64_t>(state.range(0));
  const Box box{{75, 67 * kSampleBytes, 0}, {side, side * kSampleBytes, 0}};
  const std::vector<Piece> pieces = decompose(kPicture, box);
  const std::vector<ByteVector> extents(pieces.size(), ByteVector(kPicture.extent_bytes()));
  ByteVector window(side * side * kSampleBytes);
  for (auto _ : state) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      copy_box(2, pieces[i].in_extent.length, extents[i], kPicture.extent, pieces[i].in_extent.start, window,
               box.length, pieces[i].in_box);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(window.size()));
}
BENCHMARK(BM_AssembleWindow)->Arg(64)->Arg(512)->Arg(2048);

// A plane out of one cube: axis 0 copies whole rows, axis 2 single samples.
void BM_PlaneOfACube(benchmark::State& state) {
  const auto axis = static_cast<std::size_t>(state.range(0));
  const ByteVector cube(kVolume.extent_bytes());
  Coord length = kVolume.extent, start{};
  length[axis] = 1;
  start[axis] = 17;
  ByteVector plane(64 * 64);
  for (auto _ : state) {
    copy_box(3, length, cube, kVolume.extent, start, plane, length, {});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 64 * 64);
}
BENCHMARK(BM_PlaneOfACube)->DenseRange(0, 2);

void BM_Decompose(benchmark::State& state) {
  const auto side = static_cast<std::uint64_t>(state.range(0));
  const Box box{{75, 67 * kSampleBytes, 0}, {side, side * kSampleBytes, 0}};
  for (auto _ : state) benchmark::DoNotOptimize(decompose(kPicture, box));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(piece_count(kPicture, box)));
}
BENCHMARK(BM_Decompose)->Arg(64)->Arg(512)->Arg(2048);

void BM_Plan(benchmark::State& state) {
  const auto side = static_cast<std::uint64_t>(state.range(0));
  const Placement placement = default_placement(2, {0, 1, 2, 3, 4, 5, 6, 7});
  const Coord grid = kPicture.grid();
  std::vector<PlanPart> parts;
  for (const Piece& piece : decompose(kPicture, {{75, 67 * kSampleBytes, 0}, {side, side * kSampleBytes, 0}})) {
    const std::uint64_t number = (piece.extent[0] * grid[1] + piece.extent[1]) / 8;
    parts.push_back(
        {disk_of(placement, 2, 0, piece.extent), number * kPicture.extent_bytes(), kPicture.extent_bytes()});
  }
  const std::vector<DiskLimits> limits(8);
  for (auto _ : state) benchmark::DoNotOptimize(plan_requests(parts, limits));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(parts.size()));
}
BENCHMARK(BM_Plan)->Arg(512)->Arg(2048);

// A level of a picture of one channel, and of a volume of 16 bits. Bytes of the samples below.
void BM_Reduce(benchmark::State& state, ElementType type, const ReducedBox& box) {
  const ByteVector from(box.length[0] * box.length[1] * box.length[2] * element_bytes(type));
  ByteVector into(box.result(0) * box.result(1) * box.result(2) * element_bytes(type));
  for (auto _ : state) {
    reduce(Reduction::kMean, type, box, from, into);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}
BENCHMARK_CAPTURE(BM_Reduce, picture, ElementType::kU8, ReducedBox{{1, 512, 512}, {1, 2, 2}, 1});
BENCHMARK_CAPTURE(BM_Reduce, volume, ElementType::kU16, ReducedBox{{64, 64, 64}, {2, 2, 2}, 1});

}  // namespace
}  // namespace mdfs::geometry

BENCHMARK_MAIN();
