// Virtual files: which names exist under win/, what bytes they hold, and how to read them from the volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "geometry/geometry.h"
#include "volume/volume.h"

namespace mdfs::views {

enum class Format : std::uint8_t { kRaw, kNpy, kPgm, kPpm };

std::string_view suffix(Format format);  // "raw", "npy", "pgm", "ppm"
// pgm and ppm are for looking at; raw and npy replace the window when written.
constexpr bool is_writable(Format format) { return format == Format::kRaw || format == Format::kNpy; }

// A name under win/: what it stands for, in the one form that all its spellings share.
struct WindowName {
  geometry::Window window;
  Format format = Format::kRaw;
  bool operator==(const WindowName&) const = default;
};
// "<spec>.<suffix>". Errors say why such a name does not exist.
Result<WindowName> parse_window_name(const geometry::Geometry& geometry, std::string_view name);
// The same for equal windows in the same format, whatever the image's shape is then.
std::string to_key(const WindowName& name);
// The canonical spelling.
std::string to_name(const geometry::Geometry& geometry, const WindowName& name);

// The bytes of one virtual file: a header, then the window's canonical bytes (16-bit samples swapped if so said).
// Immutable; made for the geometry as it was.
struct ViewFile {
  geometry::Window window;
  Format format = Format::kRaw;
  geometry::ElementType type = geometry::ElementType::kU8;
  std::vector<std::uint64_t> array_shape;  // of the array in an NPY
  ByteVector header;
  std::uint64_t data_bytes = 0;
  bool swap16 = false;

  std::uint64_t size_bytes() const { return header.size() + data_bytes; }
};
// kOutOfRange if the window is not inside the image (any more); kInvalidArgument if the format cannot hold it.
Result<ViewFile> view_window(const geometry::Geometry& geometry, const WindowName& name);
// scan.npy: the whole image behind a header of one page. An image without slabs is an array without elements.
ViewFile view_image_npy(const geometry::Geometry& geometry);

// Where the window's canonical bytes come from.
using WindowBytes = std::function<Status(std::uint64_t offset, MutableBytes into)>;
// Bytes [offset, offset + into.size()) of the virtual file; fewer at its end. Returns how many.
Result<std::size_t> read_view(const ViewFile& file, std::uint64_t offset, MutableBytes into, const WindowBytes& read);
// Of the image as it is.
Result<std::size_t> read_view(volume::Volume& volume, volume::Ino image, const ViewFile& file, std::uint64_t offset,
                              MutableBytes into);

}  // namespace mdfs::views
