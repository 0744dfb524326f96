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

std::vector<bool> choose_pieces(std::span<const PieceToRead> pieces, std::span<const DiskToRead> disks) {
  const std::vector<Place> begins = places(pieces, false), ends = places(pieces, true);
  constexpr auto kRequest = static_cast<double>(kRequestBytes);
  std::vector<double> busy;
  for (const DiskToRead& disk : disks) busy.push_back(disk.queued * disk.slowness);
  std::vector<geometry::CopiesOfExtent> extents;
  for (const PieceToRead& one : pieces) {
    MDFS_CHECK(one.extent->runs.size() == 1 && one.extent->copy.size() == 1);
    const format::Run& first = one.extent->runs.front();
    const format::Run& copy = one.extent->copy.front();
    MDFS_CHECK(first.disk < busy.size() && copy.disk < busy.size());
    const double slow_first = disks[first.disk].slowness, slow_copy = disks[copy.disk].slowness;
    const bool continues = has(ends, first, first.block), is_continued = has(begins, first, first.block + first.blocks);
    const auto bytes = static_cast<double>(one.bytes);
    if (is_continued && !continues) busy[first.disk] += kRequest * slow_first;  // of all that lie together
    const bool together = continues || is_continued;
    extents.push_back(
        {{first.disk, copy.disk},
         {(bytes + (together ? 0 : kRequest)) * slow_first, (bytes + kRequest * (together ? 2 : 1)) * slow_copy}});
  }
  const std::vector<std::uint8_t> chosen = geometry::choose_copies(extents, busy);
  return {chosen.begin(), chosen.end()};
}

}  // namespace mdfs::engine
