// Virtual files: the names under win/, their bytes, and reading them from the volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/cut.h"
#include "geometry/geometry.h"
#include "geometry/padded_box.h"
#include "geometry/plane.h"
#include "views/display.h"
#include "views/encoder.h"
#include "views/raster.h"
#include "volume/volume.h"

namespace mdfs::views {

enum class Format : std::uint8_t { kRaw, kNpy, kPgm, kPpm, kPng, kJpg, kTif, kDpx, kExr };

std::string_view suffix(Format format);  // "raw", "npy", "pgm"
// All others are read-only; raw and npy replace the window when written.
constexpr bool is_writable(Format format) { return format == Format::kRaw || format == Format::kNpy; }
// True if the bytes are encoded when the file is opened: their number is unknown before.
bool is_rendered(Format format);
// Of a format that is rendered (else abort).
const Encoder& encoder_of(Format format);
// A rendered picture needs memory for a few rows.
inline constexpr std::uint64_t kMaxRenderedRowBytes = 1u << 20;

// A parsed name under win/. All spellings of a window parse to equal values.
struct WindowName {
  geometry::Window window;
  Format format = Format::kRaw;
  unsigned level = 0;                  // resolution level, in whose samples the window is
  geometry::Padding padding{};         // around the window
  std::optional<geometry::Cut> cut{};  // then the window has what CutPlane says
  // The level is one of this plane of a volume, as of an image of two axes, and so is the window. Its levels are never
  // stored. Level 0 is a window of the volume instead.
  std::optional<geometry::PlaneIndex> plane{};
  bool operator==(const WindowName&) const = default;
};
// Windows of levels, those that the image does not fill, and cuts are read-only.
inline bool is_writable(const WindowName& name) {
  return name.level == 0 && is_writable(name.format) && name.padding.is_empty() && !name.cut;
}
// The geometry of the name's level. kOutOfRange if the image has no such plane or level, or no longer.
Result<geometry::Geometry> level_of(const geometry::Geometry& image, const WindowName& name);
// "<spec>.<suffix>". The error says why the name does not exist.
Result<WindowName> parse_window_name(const ShownImage& image, std::string_view name);
// Equal for equal windows in the same format, independent of the shape of the image.
std::string to_key(const WindowName& name);
// The canonical spelling; not of a level of a plane (abort).
std::string to_name(const geometry::Geometry& geometry, const WindowName& name);

// How a virtual file holds the window's canonical bytes: as they are, with the two bytes of each sample swapped, or as
// rows of OpenEXR.
enum class SampleOrder : std::uint8_t { kCanonical, kSwapped16, kExr };

// The bytes of one virtual file: a header, then the window's bytes in their order, with zeros around them if it is
// padded.
// Immutable; belongs to the geometry at the time of its creation.
struct ViewFile {
  geometry::Window window;
  Format format = Format::kRaw;
  geometry::ElementType type = geometry::ElementType::kU8;
  std::vector<std::uint64_t> array_shape;  // of the array in an NPY
  ByteVector header;
  std::uint64_t data_bytes = 0;  // with the padding
  SampleOrder order = SampleOrder::kCanonical;
  Raster raster{};  // of kExr
  std::optional<geometry::PaddedBox> padded{};

  std::uint64_t size_bytes() const { return header.size() + body_bytes(); }
  std::uint64_t body_bytes() const;  // behind the header
  std::uint64_t inside_bytes() const { return padded ? geometry::bytes_inside(*padded, data_bytes) : data_bytes; }
};
// Of a format that is not rendered (else abort). The window of a cut has no meaning. kOutOfRange if the window is not
// (or no longer) inside the image; kInvalidArgument if the format cannot hold it.
Result<ViewFile> view_window(const geometry::Geometry& geometry, const WindowName& name);
// The size of the virtual file before it is opened; nothing if it is rendered. Errors as view_window().
Result<std::optional<std::uint64_t>> known_size(const ShownImage& image, const WindowName& name);
// The picture that the window is in this format, which is none of raw, npy and tif. Errors as view_window().
Result<Raster> raster_of(const ShownImage& image, const WindowName& name);
// True if the samples of the picture are those of the image through its range of display (to_8_bits).
bool is_ranged(const ShownImage& image, Format format);
// scan.npy: the whole image behind a header of one page. An image without slabs is an array without elements.
ViewFile view_image_npy(const geometry::Geometry& geometry);
// scan.raw: the canonical bytes alone.
ViewFile view_image_raw(const geometry::Geometry& geometry);

// Reads bytes [offset, offset + into.size()) of the virtual file; fewer at its end. Returns the number.
Result<std::size_t> read_view(const ViewFile& file, std::uint64_t offset, MutableBytes into, const WindowBytes& read);
// Reads the current state of the image.
Result<std::size_t> read_view(volume::Volume& volume, volume::Ino image, const ViewFile& file, std::uint64_t offset,
                              MutableBytes into, const engine::Stop& stop = {});

}  // namespace mdfs::views
