// Which piece of each extent a load reads.
// SPDX-License-Identifier: Apache-2.0
#include "engine/read/piece_choice.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "geometry/copies.h"

namespace mdfs::engine {

namespace {

using Place = std::pair<std::uint16_t, std::uint64_t>;  // a disk, and a block of it

// Where first pieces begin, or end.
std::vector<Place> places(std::span<const PieceToRead> pieces, bool ends) {
  std::vector<Place> found;
  for (const PieceToRead& one : pieces) {
    const format::Run& run = one.extent->runs.front();
    found.emplace_back(run.disk, run.block + (ends ? run.blocks : 0));
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has(const std::vector<Place>& places, const format::Run& run, std::uint64_t block) {
  return std::binary_search(places.begin(), places.end(), Place{run.disk, block});
}

}  // namespace

std::vector<bool> choose_pieces(std::span<const PieceToRead> pieces, std::span<const double> queued) {
  const std::vector<Place> begins = places(pieces, false), ends = places(pieces, true);
  constexpr auto kRequest = static_cast<double>(kRequestBytes);
  std::vector<double> busy(queued.begin(), queued.end());
  std::vector<geometry::CopiesOfExtent> extents;
  for (const PieceToRead& one : pieces) {
    MDFS_CHECK(one.extent->runs.size() == 1 && one.extent->copy.size() == 1);
    const format::Run& first = one.extent->runs.front();
    MDFS_CHECK(first.disk < busy.size());
    const bool continues = has(ends, first, first.block), is_continued = has(begins, first, first.block + first.blocks);
    const auto bytes = static_cast<double>(one.bytes);
    if (is_continued && !continues) busy[first.disk] += kRequest;  // of all that lie together
    const bool together = continues || is_continued;
    extents.push_back({{first.disk, one.extent->copy.front().disk},
                       {bytes + (together ? 0 : kRequest), bytes + kRequest * (together ? 2 : 1)}});
  }
  const std::vector<std::uint8_t> chosen = geometry::choose_copies(extents, busy);
  return {chosen.begin(), chosen.end()};
}

}  // namespace mdfs::engine
