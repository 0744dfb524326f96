// Shapes of images: axes, element types, extents and the grid they make.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::geometry {

inline constexpr unsigned kMaxRank = 5;
inline constexpr std::uint64_t kMaxExtentBytes = 16u << 20;
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 62;
inline constexpr unsigned kMaxChannels = 65535;
inline constexpr std::size_t kMaxUnitBytes = 7;  // of the name of a unit, such as "um"
inline constexpr int kMinCodecLevel = -100;      // of any codec
inline constexpr int kMaxCodecLevel = 22;

// One number for each axis, slowest axis first. Entries beyond the rank are 0 and ignored.
using Coord = std::array<std::uint64_t, kMaxRank>;

// Values are those of MDFS_TYPE_* in ondisk.h.
enum class ElementType : std::uint8_t { kU8 = 1, kU16, kU32, kU64, kI8, kI16, kI32, kI64, kF16, kF32, kF64 };

// Bytes and names of an element.
unsigned element_bytes(ElementType type);
std::string_view name(ElementType type);         // "u8", "f32"
std::string_view numpy_descr(ElementType type);  // "|u1", "<f4"
// Parses name(); kInvalidArgument lists the names.
Result<ElementType> parse_element_type(std::string_view text);

// How the bytes of extents are encoded. Values: MDFS_CODEC_* in ondisk.h; rows of codec/codec_table.cc.
enum class Codec : std::uint8_t { kRaw = 0, kZstd = 1 };
inline constexpr unsigned kCodecs = 2;

// Allocation policy: where on a disk a new group of extents begins. Values: MDFS_POLICY_* in ondisk.h; rows of
// alloc/policy.cc. kDefault: take the policy of the mount, then of the volume, then kScatter.
enum class AllocationPolicy : std::uint8_t { kDefault = 0, kScatter = 1, kFirst = 2, kNear = 3 };
inline constexpr unsigned kAllocationPolicies = 4;

// The geometry of an image. Canonical bytes: little endian, axes slowest first, channels interleaved (fastest).
struct Geometry {
  unsigned rank = 0;      // 1..5
  Coord shape{};          // samples
  Coord extent{};         // samples
  unsigned channels = 1;  // 1..65535
  ElementType type = ElementType::kU8;
  Codec codec = Codec::kZstd;
  int codec_level = 3;
  AllocationPolicy policy = AllocationPolicy::kDefault;
  std::string axes;                        // one letter for each axis, slowest first: "x", "yx", "zyx", "tyx", "tczyx"
  std::array<double, kMaxRank> spacing{};  // 0 = unknown
  std::array<std::string, kMaxRank> unit{};  // of spacing, at most 7 bytes

  bool operator==(const Geometry&) const = default;

  std::uint64_t sample_bytes() const { return std::uint64_t{element_bytes(type)} * channels; }
  std::uint64_t slab_bytes() const;    // one step along the slowest axis
  std::uint64_t size_bytes() const;    // the whole canonical file
  std::uint64_t extent_bytes() const;  // one decoded extent
  Coord grid() const;                  // extents along each axis: ceil(shape / extent)
};

// Extents of a grid; saturating.
std::uint64_t extent_count(unsigned rank, const Coord& grid);
// True if the index lies inside the grid along each axis.
bool in_grid(unsigned rank, const Coord& grid, const Coord& extent);

// Axes have lower-case letters other than l (level), which window specifications reserve. An axis may be named c only
// in an image without interleaved channels, because c selects one of these elsewhere, and not if it is the last one.
bool is_axis_letter(char letter);
// All others are time or something else.
constexpr bool is_space_axis(char letter) { return letter == 'x' || letter == 'y' || letter == 'z'; }

// Checks all rules of a geometry: rank, one name for each axis, no zero lengths (shape[0] may be 0), products without
// overflow, limits. Else kInvalidArgument or kTooBig, with the field and what is allowed. Call the member functions
// above only after this check.
Status check(const Geometry& geometry);

// Largest canonical file along the slowest axis: whole slabs of at most kMaxImageBytes, and at most as many pages
// of the extent table as have numbers. The geometry must have passed check().
std::uint64_t max_bytes(const Geometry& geometry);

// A half-open box in samples, slowest axis first. Axes with `single` set were given as one index and vanish from an
// array's shape.
struct Window {
  Coord start{};
  Coord length{};
  std::array<bool, kMaxRank> single{};
  std::optional<unsigned> channel;  // one channel only; absent = all, interleaved

  bool operator==(const Window&) const = default;
};

// The window of the whole image.
Window whole(const Geometry& geometry);
// The part of the image that lies in an extent, which lies in the grid (abort).
Window window_of_extent(const Geometry& geometry, const Coord& extent);
// Checks that the window lies inside the image, with no zero length and a valid channel. Else kOutOfRange or
// kInvalidArgument; the error names the range.
Status check(const Geometry& geometry, const Window& window);
// Bytes of the window's canonical layout.
std::uint64_t window_bytes(const Geometry& geometry, const Window& window);
// The array shape of the window: axes given as a single index are dropped, channels come last if there
// are several and none is selected. Empty for one sample.
std::vector<std::uint64_t> array_shape(const Geometry& geometry, const Window& window);

}  // namespace mdfs::geometry
