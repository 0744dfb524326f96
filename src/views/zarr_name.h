// Names under ome.zarr/: the keys of a Zarr v3 group with one array for each resolution level, as a tree of files.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::views {

inline constexpr std::string_view kZarrName = "ome.zarr";
inline constexpr std::string_view kZarrMetadataName = "zarr.json";
inline constexpr std::string_view kZarrChunksName = "c";
inline constexpr unsigned kMaxZarrRank = geometry::kMaxRank + 1;  // the axes of an image, and its channels

// The axes of the array, slowest first: those of the image in their order, and its channels, if there are several,
// before the first axis of space. OME-NGFF demands the order time, channels, space.
struct ZarrAxis {
  static constexpr unsigned kChannels = geometry::kMaxRank;
  unsigned axis = 0;  // of the image, or kChannels
  bool operator==(const ZarrAxis&) const = default;
};
std::vector<ZarrAxis> zarr_axes(const geometry::Geometry& geometry);
// Chunks along an axis of the array. A chunk has the samples of one extent, with all their channels.
std::uint64_t chunks_along(const geometry::Geometry& geometry, ZarrAxis axis);

enum class ZarrKind : std::uint8_t {
  kGroup,          // ome.zarr/
  kGroupMetadata,  // ome.zarr/zarr.json
  kArray,          // ome.zarr/0/
  kArrayMetadata,  // ome.zarr/0/zarr.json
  kChunks,         // ome.zarr/0/c/ and the directories under it: `depth` numbers are given
  kChunk,          // ome.zarr/0/c/1/2/3: all numbers are given
};
constexpr bool is_directory(ZarrKind kind) {
  return kind == ZarrKind::kGroup || kind == ZarrKind::kArray || kind == ZarrKind::kChunks;
}

struct ZarrName {
  ZarrKind kind = ZarrKind::kGroup;
  unsigned level = 0;                               // resolution level; 0 is the image itself
  unsigned depth = 0;                               // numbers given
  std::array<std::uint64_t, kMaxZarrRank> index{};  // of the chunk, in the order of zarr_axes()
  bool operator==(const ZarrName&) const = default;
};

// The entry `name` of a directory, as far as names and the shape decide: a chunk may be a hole. kNotFound if there is
// none: numbers are decimal, without sign and leading zeros, and inside the grid.
// `geometry` is that of the directory's level, here and below; the image stores `levels` levels.
Result<ZarrName> zarr_entry(const geometry::Geometry& geometry, unsigned levels, const ZarrName& directory,
                            std::string_view name);
// The chunk of the entry `name` of a directory of chunks, if that is a name under which clients write a chunk before
// they rename it: KEY.<anything>.partial (zarr-python), or KEY.__lock (TensorStore). kNotFound if it is none.
Result<ZarrName> chunk_of_temporary(const geometry::Geometry& geometry, const ZarrName& directory,
                                    std::string_view name);
// A KEY.__lock, which its client has open until it is renamed.
bool is_lock_name(std::string_view name);
// False if the name leads outside the image, which has become smaller since.
bool is_inside(const geometry::Geometry& geometry, const ZarrName& name);
// True if the entries of a directory of chunks are chunks, not directories.
bool holds_chunks(const geometry::Geometry& geometry, const ZarrName& directory);
// The extent whose samples a chunk has; of a directory that holds chunks, the first one of its row.
geometry::Coord extent_of(const geometry::Geometry& geometry, const ZarrName& name);
// "0/c/1/2": equal for equal names.
std::string to_key(const ZarrName& name);

}  // namespace mdfs::views
