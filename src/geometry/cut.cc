// Positions of a cut, the extents under it, and its samples.
// SPDX-License-Identifier: Apache-2.0
#include "geometry/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/sample_type.h"

namespace mdfs::geometry {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are used as they lie");

constexpr std::string_view kSpaceAxes = "xyz";
using Triple = std::array<std::uint64_t, 3>;  // along x, y, z

// The places of x, y and z among the axes of the image.
std::array<unsigned, 3> places_of_space(const Geometry& geometry) {
  std::array<unsigned, 3> places{};
  for (std::size_t i = 0; i < kSpaceAxes.size(); ++i) {
    const std::size_t place = geometry.axes.find(kSpaceAxes[i]);
    MDFS_CHECK(place != std::string::npos);
    places[i] = static_cast<unsigned>(place);
  }
  return places;
}

double coordinate(const Cut& cut, std::size_t axis, std::uint64_t column, std::uint64_t row) {
  return (cut.origin[axis] + static_cast<double>(row) * cut.v[axis]) + static_cast<double>(column) * cut.u[axis];
}

// The samples along each axis that a sample of the cut is made from: low, and high with the weight of the fraction.
struct Neighbours {
  Triple low{}, high{};
  std::array<double, 3> fraction{};

  // False: the sample is outside.
  bool find(const Cut& cut, const Triple& shape, std::uint64_t column, std::uint64_t row) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double at = coordinate(cut, axis, column, row);
      if (!(at >= 0 && at <= static_cast<double>(shape[axis] - 1))) return false;
      const double below = std::floor(cut.nearest ? at + 0.5 : at);
      low[axis] = std::min(static_cast<std::uint64_t>(below), shape[axis] - 1);
      fraction[axis] = cut.nearest ? 0 : at - below;
      high[axis] = fraction[axis] > 0 ? std::min(low[axis] + 1, shape[axis] - 1) : low[axis];
    }
    return true;
  }
};

class Volume {
 public:
  explicit Volume(const Geometry& geometry) : geometry_(geometry), places_(places_of_space(geometry)) {}
  Triple shape() const { return along(geometry_.shape); }
  Triple extent() const { return along(geometry_.extent); }
  Triple along(const Coord& all) const { return {all[places_[0]], all[places_[1]], all[places_[2]]}; }
  // Samples [first, last] along x, y and z, at the indices of the plane along all others.
  Window window(const CutPlane& plane, const Triple& first, const Triple& last) const {
    Window window;
    window.start = plane.window.start;
    for (unsigned axis = 0; axis < geometry_.rank; ++axis) window.length[axis] = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      window.start[places_[i]] = first[i];
      window.length[places_[i]] = last[i] - first[i] + 1;
    }
    return window;
  }

 private:
  const Geometry& geometry_;
  const std::array<unsigned, 3> places_;
};

// Samples [first, last] of an extent that have been asked for.
struct Touched {
  Triple first{}, last{};

  bool covers(const Triple& low, const Triple& high) const {
    for (std::size_t i = 0; i < 3; ++i)
      if (low[i] < first[i] || high[i] > last[i]) return false;
    return true;
  }
  void add(const Triple& at) {
    for (std::size_t i = 0; i < 3; ++i) {
      first[i] = std::min(first[i], at[i]);
      last[i] = std::max(last[i], at[i]);
    }
  }
};

// Calls `visit` for each of the one to eight neighbours; bit i of `corner` chooses high along axis i.
template <typename Visit>
void each_corner(const Neighbours& neighbours, const Visit& visit) {
  for (unsigned corner = 0; corner < 8; ++corner) {
    Triple at = neighbours.low;
    bool counts = true;
    for (unsigned i = 0; i < 3; ++i)
      if ((corner >> i & 1) != 0) {
        at[i] = neighbours.high[i];
        counts = counts && neighbours.fraction[i] > 0;
      }
    if (counts) visit(corner, at);
  }
}

// The pieces with their samples.
class Pieces {
 public:
  struct Piece {
    Touched box;
    Triple stride{};  // bytes
    const std::byte* samples = nullptr;
  };

  Pieces(const Geometry& geometry, const std::vector<CutPiece>& pieces, ConstBytes samples)
      : extent_(Volume(geometry).extent()) {
    const Volume volume(geometry);
    std::uint64_t offset = 0;
    for (const CutPiece& from : pieces) {
      Piece piece;
      piece.box.first = volume.along(from.window.start);
      const Triple length = volume.along(from.window.length);
      for (std::size_t i = 0; i < 3; ++i) piece.box.last[i] = piece.box.first[i] + length[i] - 1;
      Coord strides{};
      std::uint64_t stride = geometry.sample_bytes();
      for (unsigned axis = geometry.rank; axis-- > 0; stride *= from.window.length[axis]) strides[axis] = stride;
      piece.stride = volume.along(strides);
      MDFS_CHECK(inside(offset, stride, samples.size()));
      piece.samples = samples.data() + offset;
      offset += stride;
      by_extent_.emplace(volume.along(from.extent), piece);
    }
  }

  const std::byte* find(const Triple& at) {
    if (last_ == nullptr || !last_->box.covers(at, at)) {
      const auto found = by_extent_.find({at[0] / extent_[0], at[1] / extent_[1], at[2] / extent_[2]});
      MDFS_CHECK(found != by_extent_.end() && found->second.box.covers(at, at));
      last_ = &found->second;
    }
    const std::byte* sample = last_->samples;
    for (std::size_t i = 0; i < 3; ++i) sample += (at[i] - last_->box.first[i]) * last_->stride[i];
    return sample;
  }

 private:
  const Triple extent_;
  std::map<Triple, Piece> by_extent_;
  const Piece* last_ = nullptr;
};

template <typename T>
double value_of(const std::byte* from) {
  T sample;
  std::memcpy(&sample, from, sizeof sample);
  if constexpr (std::is_same_v<T, Half>)
    return to_double(sample);
  else
    return static_cast<double>(sample);
}

template <typename T>
T rounded(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    // The limits of 64 bits are no numbers of f64: the largest one is rounded up.
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    const double whole = std::nearbyint(value);
    if (whole >= static_cast<double>(kMost)) return kMost;
    if (whole <= static_cast<double>(kLeast)) return kLeast;
    return static_cast<T>(whole);
  }
}

double between(double low, double high, double fraction) {
  return fraction > 0 ? low * (1 - fraction) + high * fraction : low;
}

template <typename T>
T interpolated(const std::array<const std::byte*, 8>& corners, std::size_t offset,
               const std::array<double, 3>& fraction) {
  std::array<double, 8> values{};
  for (std::size_t i = 0; i < corners.size(); ++i)
    if (corners[i] != nullptr) values[i] = value_of<T>(corners[i] + offset);
  for (unsigned axis = 0, count = 4; axis < 3; ++axis, count /= 2)
    for (unsigned i = 0; i < count; ++i) values[i] = between(values[2 * i], values[2 * i + 1], fraction[axis]);
  return rounded<T>(values[0]);
}

}  // namespace

Status check(const Geometry& geometry, const CutPlane& plane) {
  for (const char letter : kSpaceAxes)
    if (geometry.axes.find(letter) == std::string::npos)
      return Error{Errc::kInvalidArgument,
                   fmt::format("a cut needs axes x, y and z; those of the image are {}", geometry.axes)};
  if (plane.cut.width == 0 || plane.cut.height == 0)
    return Error{Errc::kInvalidArgument, "a cut has a width and a height of 1 or more"};
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    if (geometry.shape[axis] == 0)
      return Error{Errc::kOutOfRange, fmt::format("the image is empty along axis {}", geometry.axes[axis])};
    if (!is_space_axis(geometry.axes[axis]) && plane.window.start[axis] >= geometry.shape[axis])
      return Error{Errc::kOutOfRange, fmt::format("{} along axis {} is not in 0..{}", plane.window.start[axis],
                                                  geometry.axes[axis], geometry.shape[axis] - 1)};
  }
  if (plane.window.channel && *plane.window.channel >= geometry.channels)
    return Error{Errc::kOutOfRange,
                 fmt::format("channel {} is not in 0..{}", *plane.window.channel, geometry.channels - 1)};
  const auto samples = checked_mul(plane.cut.width, plane.cut.height);
  const auto bytes = samples ? checked_mul(*samples, geometry.sample_bytes()) : std::nullopt;
  if (!bytes || *bytes > kMaxImageBytes) return Error{Errc::kTooBig, "a cut has at most 2^62 bytes"};
  return {};
}

std::uint64_t cut_bytes(const Geometry& geometry, const CutPlane& plane) {
  return plane.cut.width * plane.cut.height *
         (plane.window.channel ? element_bytes(geometry.type) : geometry.sample_bytes());
}

CutTile whole(const Cut& cut) { return {0, cut.width, 0, cut.height}; }

std::optional<Window> window_around(const Geometry& geometry, const CutPlane& plane) {
  const Volume volume(geometry);
  const Triple shape = volume.shape();
  Triple first{}, last{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // Rounding keeps the order of coordinates along a row and along a column: the extremes are at the corners.
    double low = coordinate(plane.cut, axis, 0, 0), high = low;
    for (const std::uint64_t column : {std::uint64_t{0}, plane.cut.width - 1})
      for (const std::uint64_t row : {std::uint64_t{0}, plane.cut.height - 1}) {
        low = std::min(low, coordinate(plane.cut, axis, column, row));
        high = std::max(high, coordinate(plane.cut, axis, column, row));
      }
    const auto end = static_cast<double>(shape[axis] - 1);
    if (!(high >= 0 && low <= end)) return {};
    first[axis] = std::min(static_cast<std::uint64_t>(std::max(std::floor(low), 0.0)), shape[axis] - 1);
    last[axis] = std::min(static_cast<std::uint64_t>(std::min(std::ceil(high), end)), shape[axis] - 1);
  }
  return volume.window(plane, first, last);
}

std::vector<CutPiece> cut_pieces(const Geometry& geometry, const CutPlane& plane, const CutTile& tile) {
  const Volume volume(geometry);
  const Triple shape = volume.shape(), extent = volume.extent();
  std::map<Triple, Touched> touched;
  Touched* last = nullptr;
  Neighbours neighbours;
  for (std::uint64_t row = tile.first_row; row < tile.last_row; ++row)
    for (std::uint64_t column = tile.first_column; column < tile.last_column; ++column) {
      if (!neighbours.find(plane.cut, shape, column, row)) continue;
      if (last != nullptr && last->covers(neighbours.low, neighbours.high)) continue;
      each_corner(neighbours, [&](unsigned, const Triple& at) {
        const auto [entry, is_new] =
            touched.try_emplace({at[0] / extent[0], at[1] / extent[1], at[2] / extent[2]}, Touched{at, at});
        if (!is_new) entry->second.add(at);
        last = &entry->second;
      });
    }
  std::vector<CutPiece> pieces;
  for (const auto& [in_grid, box] : touched) {
    CutPiece piece;
    piece.window = volume.window(plane, box.first, box.last);
    for (unsigned axis = 0; axis < geometry.rank; ++axis)
      piece.extent[axis] = piece.window.start[axis] / geometry.extent[axis];
    pieces.push_back(std::move(piece));
  }
  std::sort(pieces.begin(), pieces.end(), [](const CutPiece& a, const CutPiece& b) { return a.extent < b.extent; });
  return pieces;
}

void fill_cut(const Geometry& geometry, const CutPlane& plane, const CutTile& tile, const std::vector<CutPiece>& pieces,
              ConstBytes samples, MutableBytes into) {
  const Triple shape = Volume(geometry).shape();
  const unsigned channels = plane.window.channel ? 1 : geometry.channels;
  const std::size_t first = plane.window.channel.value_or(0) * std::size_t{element_bytes(geometry.type)};
  const std::size_t sample_bytes = channels * std::size_t{element_bytes(geometry.type)};
  MDFS_CHECK(into.size() == tile.samples() * sample_bytes);
  Pieces all(geometry, pieces, samples);
  with_type(geometry.type, [&](auto zero) {
    using T = decltype(zero);
    std::byte* to = into.data();
    Neighbours neighbours;
    for (std::uint64_t row = tile.first_row; row < tile.last_row; ++row)
      for (std::uint64_t column = tile.first_column; column < tile.last_column; ++column, to += sample_bytes) {
        if (!neighbours.find(plane.cut, shape, column, row)) {
          std::memset(to, 0, sample_bytes);
          continue;
        }
        if (neighbours.low == neighbours.high) {
          std::memcpy(to, all.find(neighbours.low) + first, sample_bytes);
          continue;
        }
        std::array<const std::byte*, 8> corners{};
        each_corner(neighbours, [&](unsigned corner, const Triple& at) { corners[corner] = all.find(at); });
        for (unsigned channel = 0; channel < channels; ++channel) {
          const T value = interpolated<T>(corners, first + channel * sizeof(T), neighbours.fraction);
          std::memcpy(to + channel * sizeof(T), &value, sizeof value);
        }
      }
  });
}

}  // namespace mdfs::geometry
