// The grammar under win/ and the content of virtual files.
// SPDX-License-Identifier: Apache-2.0
#include "views/view_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "geometry/cut_spec.h"
#include "geometry/level.h"
#include "geometry/window_spec.h"
#include "views/dpx.h"
#include "views/exr.h"
#include "views/jpeg.h"
#include "views/npy.h"
#include "views/png.h"
#include "views/pnm.h"
#include "views/tiff_layout.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;
using geometry::Window;

constexpr ElementType kIntegers8[] = {ElementType::kU8};
constexpr ElementType kIntegers16[] = {ElementType::kU8, ElementType::kU16};
constexpr ElementType kExrTypes[] = {ElementType::kF16, ElementType::kF32, ElementType::kU32};

// What a format of windows is; `channels`: bit n - 1 is set if it holds n of them, none for an array of any shape.
struct FormatInfo {
  Format format;
  std::string_view suffix;
  const Encoder* encoder;  // null: the size of the file is known before it is opened
  unsigned channels;
  std::span<const ElementType> types = kIntegers16;  // of the samples of a picture
  std::uint64_t side = UINT64_MAX;                   // most samples along each axis of a picture

  bool rendered() const { return encoder != nullptr; }
};
constexpr Encoder kPng{max_png_bytes, encode_png};
constexpr Encoder kJpeg{max_jpeg_bytes, encode_jpeg};
constexpr unsigned kAnyArray = 0;
constexpr std::uint64_t kMaxTiffHead = 1u << 20;  // which is in memory while the file is open
constexpr std::array kFormats = {
    FormatInfo{Format::kRaw, "raw", nullptr, kAnyArray},
    FormatInfo{Format::kNpy, "npy", nullptr, kAnyArray},
    FormatInfo{Format::kPgm, "pgm", nullptr, 0b0001},
    FormatInfo{Format::kPpm, "ppm", nullptr, 0b0100},
    FormatInfo{Format::kPng, "png", &kPng, 0b1111, kIntegers16, kMaxPngSide},
    FormatInfo{Format::kJpg, "jpg", &kJpeg, 0b0101, kIntegers8, kMaxJpegSide},
    FormatInfo{Format::kTif, "tif", nullptr, kAnyArray},
    FormatInfo{Format::kDpx, "dpx", nullptr, 0b0100, kIntegers16, kMaxDpxSide},
    FormatInfo{Format::kExr, "exr", nullptr, 0b1101, kExrTypes, kMaxExrSide},
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<std::size_t>(kFormats[i].format) != i) return false;
  return true;
}
static_assert(in_order());

const FormatInfo& info(Format format) { return kFormats[static_cast<std::size_t>(format)]; }

std::string all_suffixes() {
  std::vector<std::string> suffixes;
  for (const FormatInfo& row : kFormats) suffixes.push_back(fmt::format(".{}", row.suffix));
  return fmt::format("{}", fmt::join(suffixes, ", "));
}

std::string allowed_channels(unsigned mask) {
  std::vector<unsigned> counts;
  for (unsigned count = 1; mask >> (count - 1) != 0; ++count)
    if (((mask >> (count - 1)) & 1) != 0) counts.push_back(count);
  return fmt::format("{} channel{}", fmt::join(counts, ", "), counts == std::vector<unsigned>{1} ? "" : "s");
}

bool holds_type(const FormatInfo& format, ElementType type) {
  return std::find(format.types.begin(), format.types.end(), type) != format.types.end();
}

std::string allowed_types(const FormatInfo& format) {
  std::vector<std::string_view> names;
  for (const ElementType type : format.types) names.push_back(name(type));
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? std::string(last) : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

// What is shown of the image or of a level, whose geometry is given.
struct ShownArray {
  std::vector<std::uint64_t> lengths;  // along axes that are not dropped
  unsigned channels = 1;
  std::uint64_t data_bytes = 0;
};
Result<ShownArray> shown_by(const Geometry& geometry, const WindowName& name) {
  ShownArray shown;
  shown.channels = name.window.channel ? 1 : geometry.channels;
  if (name.cut) {
    const geometry::CutPlane plane{*name.cut, name.window};
    MDFS_TRY(geometry::check(geometry, plane));
    shown.lengths = {plane.cut.height, plane.cut.width};
    shown.data_bytes = geometry::cut_bytes(geometry, plane);
    return shown;
  }
  MDFS_TRY(geometry::check(geometry, name.window));
  const Window padded = geometry::padded(geometry, name.window, name.padding);
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    if (!padded.single[axis]) shown.lengths.push_back(padded.length[axis]);
  shown.data_bytes = geometry::window_bytes(geometry, padded);
  return shown;
}

Result<Raster> find_raster(const Geometry& geometry, const ShownArray& shown, const FormatInfo& format, bool ranged) {
  if (!ranged && !holds_type(format, geometry.type))
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} requires {} samples{}; the image has {}", format.suffix, allowed_types(format),
                             format.rendered() ? " or a range (mdfs image display)" : "", name(geometry.type))};
  const unsigned channels = shown.channels;
  if (channels > 32 || ((format.channels >> (channels - 1)) & 1) == 0)
    return Error{Errc::kInvalidArgument, fmt::format("{} holds {}; the window has {} (c0, c1, .. picks one)",
                                                     format.suffix, allowed_channels(format.channels), channels)};
  const std::vector<std::uint64_t>& lengths = shown.lengths;
  if (lengths.size() != 2)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{} requires two axes; the window has {} (an axis given as one index is dropped)",
                             format.suffix, lengths.size())};
  const Raster raster{lengths[1], lengths[0], channels, ranged ? 1 : element_bytes(geometry.type)};
  if (std::max(raster.width, raster.height) > format.side)
    return Error{Errc::kInvalidArgument, fmt::format("{} holds at most {} rows and columns; the window has {} and {}",
                                                     format.suffix, format.side, raster.height, raster.width)};
  if (format.format == Format::kDpx && raster.row_bytes() % kDpxRowStep != 0)
    return Error{Errc::kInvalidArgument, fmt::format("dpx holds rows of whole words of {} bytes; those of the window "
                                                     "have {} bytes",
                                                     kDpxRowStep, raster.row_bytes())};
  if ((format.rendered() || format.format == Format::kExr) && raster.row_bytes() > kMaxRenderedRowBytes)
    return Error{Errc::kInvalidArgument, fmt::format("{} holds rows of at most {} bytes; those of the window have {}",
                                                     format.suffix, kMaxRenderedRowBytes, raster.row_bytes())};
  return raster;
}

// The layout of the window as pages of strips. kInvalidArgument: TIFF cannot hold it, or with many pages alone.
Result<TiffLayout> tiff_of(const Geometry& geometry, const ShownArray& shown) {
  if (shown.lengths.empty()) return Error{Errc::kInvalidArgument, "tif requires an axis; the window has none"};
  Geometry array;
  array.rank = static_cast<unsigned>(shown.lengths.size());
  array.type = geometry.type;
  array.channels = shown.channels;
  std::copy(shown.lengths.begin(), shown.lengths.end(), array.shape.begin());
  std::fill_n(array.extent.begin(), array.rank, 1);  // no tiles
  MDFS_TRY_ASSIGN(TiffLayout layout, TiffLayout::of({.image = array}));
  if (layout.data_offset() > kMaxTiffHead)
    return Error{Errc::kInvalidArgument, fmt::format("tif: a window has a head of at most {} bytes; {} pages or strips "
                                                     "need {}: read the image NAME.tif, or less at a time",
                                                     kMaxTiffHead, shown.lengths[0], layout.data_offset())};
  return layout;
}

ByteVector picture_header(Format format, const Raster& raster, ElementType type) {
  switch (format) {
    case Format::kDpx:
      return dpx_header(raster);
    case Format::kExr:
      return exr_head(raster, type);
    default:
      return pnm_header(raster.width, raster.height, raster.channels, raster.sample_bytes);
  }
}

// Reads data with swapped samples: from the even offset at or before `offset`.
Status read_swapped(const ViewFile& file, std::uint64_t offset, MutableBytes into, const WindowBytes& read) {
  const std::uint64_t first = offset / 2 * 2;
  const std::uint64_t last = std::min(file.data_bytes, (offset + into.size() + 1) / 2 * 2);
  if (first == offset && last == offset + into.size()) {
    MDFS_TRY(read(offset, into));
    swap_samples_16(into);
    return {};
  }
  ByteVector whole(last - first);
  MDFS_TRY(read(first, whole));
  swap_samples_16(whole);
  std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(offset - first), into.size(), into.begin());
  return {};
}

}  // namespace

std::string_view suffix(Format format) { return info(format).suffix; }
bool is_rendered(Format format) { return info(format).rendered(); }
const Encoder& encoder_of(Format format) {
  MDFS_CHECK(is_rendered(format));
  return *info(format).encoder;
}

bool is_ranged(const ShownImage& image, Format format) {
  return image.display && info(format).rendered() && !holds_type(info(format), image.geometry.type);
}

Result<WindowName> parse_window_name(const ShownImage& image, std::string_view name) {
  const Geometry& geometry = image.geometry;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos)
    return Error{Errc::kInvalidArgument, fmt::format("a window's name ends in one of {}", all_suffixes())};
  const std::string_view ending = name.substr(dot + 1);
  const auto* const found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatInfo& row) { return row.suffix == ending; });
  if (found == kFormats.end())
    return Error{Errc::kInvalidArgument, fmt::format("'.{}' must be one of {}", ending, all_suffixes())};
  WindowName result;
  result.format = found->format;
  const std::string_view spec = name.substr(0, dot);
  if (geometry::is_cut(spec)) {
    MDFS_TRY_ASSIGN(const auto cut, geometry::parse_cut(geometry, spec));
    result.window = cut.plane.window;
    result.level = cut.level;
    result.cut = cut.plane.cut;
  } else {
    MDFS_TRY_ASSIGN(const auto window, geometry::parse_level_window(geometry, spec));
    result.window = window.window;
    result.level = window.level;
    result.padding = window.padding;
  }
  if (found->channels != kAnyArray || found->format == Format::kTif) {
    MDFS_TRY_ASSIGN(const Geometry level, level_of(geometry, result));
    MDFS_TRY_ASSIGN(const ShownArray shown, shown_by(level, result));
    if (found->format == Format::kTif)
      MDFS_TRY(tiff_of(level, shown));
    else
      MDFS_TRY(find_raster(level, shown, *found, is_ranged(image, result.format)));
  }
  // Raw bytes have no axes: a single index and a length of one are the same bytes.
  if (result.format == Format::kRaw) result.window.single = {};
  if (geometry.channels == 1) result.window.channel.reset();
  return result;
}

std::string to_key(const WindowName& name) {
  std::string key =
      fmt::format("{}/{}/{}", suffix(name.format), name.level, name.window.channel ? int(*name.window.channel) : -1);
  for (unsigned axis = 0; axis < geometry::kMaxRank; ++axis)
    key +=
        fmt::format("/{}{}{}", name.window.start[axis], name.window.single[axis] ? "=" : "+", name.window.length[axis]);
  if (!name.padding.is_empty())
    key += fmt::format("/{}/{}", fmt::join(name.padding.before, ","), fmt::join(name.padding.after, ","));
  if (name.cut) {
    for (const auto* numbers : {&name.cut->origin, &name.cut->u, &name.cut->v})
      for (const double number : *numbers) key += fmt::format("/{}", number);
    key += fmt::format("/{}x{}{}", name.cut->width, name.cut->height, name.cut->nearest ? "n" : "");
  }
  if (name.plane) key += fmt::format("/{}={}", name.plane->axis, name.plane->index);
  return key;
}

std::string to_name(const Geometry& geometry, const WindowName& name) {
  MDFS_CHECK(!name.plane);
  if (name.cut)
    return fmt::format("{}.{}", geometry::to_spec(geometry, geometry::LevelCut{name.level, {*name.cut, name.window}}),
                       suffix(name.format));
  return fmt::format("{}.{}", geometry::to_spec(geometry, geometry::LevelWindow{name.level, name.window, name.padding}),
                     suffix(name.format));
}

Result<Geometry> level_of(const Geometry& image, const WindowName& name) {
  const auto level_in = [&](const Geometry& base) -> Result<Geometry> {
    if (name.level > geometry::level_count(base))
      return Error{Errc::kOutOfRange, fmt::format("the image has no level {}", name.level)};
    return geometry::level_geometry(base, name.level);
  };
  if (!name.plane) return level_in(image);
  if (name.plane->axis >= image.rank || name.plane->index >= image.shape[name.plane->axis])
    return Error{Errc::kOutOfRange, "the image has no such plane"};
  return level_in(geometry::plane_geometry(image, name.plane->axis));
}

Result<Raster> raster_of(const ShownImage& image, const WindowName& name) {
  MDFS_CHECK(info(name.format).channels != kAnyArray);
  MDFS_TRY_ASSIGN(const Geometry geometry, level_of(image.geometry, name));
  MDFS_TRY_ASSIGN(const ShownArray shown, shown_by(geometry, name));
  return find_raster(geometry, shown, info(name.format), is_ranged(image, name.format));
}

Result<std::optional<std::uint64_t>> known_size(const ShownImage& image, const WindowName& name) {
  if (is_rendered(name.format)) {
    MDFS_TRY(raster_of(image, name));
    return std::optional<std::uint64_t>();
  }
  MDFS_TRY_ASSIGN(const ViewFile file, view_window(image.geometry, name));
  return std::optional(file.size_bytes());
}

Result<ViewFile> view_window(const Geometry& image, const WindowName& name) {
  MDFS_CHECK(!is_rendered(name.format));
  MDFS_TRY_ASSIGN(const Geometry geometry, level_of(image, name));
  MDFS_TRY_ASSIGN(const ShownArray shown, shown_by(geometry, name));
  ViewFile file;
  file.window = name.window;
  file.format = name.format;
  file.type = geometry.type;
  file.data_bytes = shown.data_bytes;
  file.array_shape = shown.lengths;
  if (shown.channels > 1) file.array_shape.push_back(shown.channels);
  if (!name.padding.is_empty()) file.padded = geometry::padded_box(geometry, name.window, name.padding);
  if (name.format == Format::kNpy) file.header = npy_header(geometry.type, file.array_shape, kWindowNpyHeaderBytes);
  if (info(name.format).channels != kAnyArray) {
    MDFS_TRY_ASSIGN(const Raster raster, find_raster(geometry, shown, info(name.format), false));
    file.raster = raster;
    if (name.format == Format::kExr)
      file.order = SampleOrder::kExr;
    else if (raster.sample_bytes == 2)
      file.order = SampleOrder::kSwapped16;
    file.header = picture_header(name.format, raster, geometry.type);
  }
  if (name.format == Format::kTif) {
    MDFS_TRY_ASSIGN(const TiffLayout layout, tiff_of(geometry, shown));
    file.header.resize(static_cast<std::size_t>(layout.data_offset()));
    layout.fill_head(0, file.header);
  }
  return file;
}

std::uint64_t ViewFile::body_bytes() const { return order == SampleOrder::kExr ? exr_data_bytes(raster) : data_bytes; }

ViewFile view_image_npy(const Geometry& geometry) {
  ViewFile file;
  file.window = geometry::whole(geometry);
  file.format = Format::kNpy;
  file.type = geometry.type;
  file.data_bytes = geometry.size_bytes();
  file.array_shape = geometry::array_shape(geometry, file.window);
  file.header = npy_header(geometry.type, file.array_shape, kImageNpyHeaderBytes);
  return file;
}

ViewFile view_image_raw(const Geometry& geometry) {
  ViewFile file;
  file.window = geometry::whole(geometry);
  file.type = geometry.type;
  file.data_bytes = geometry.size_bytes();
  return file;
}

Result<std::size_t> read_view(volume::Volume& volume, volume::Ino image, const ViewFile& file, std::uint64_t offset,
                              MutableBytes into, const engine::Stop& stop) {
  return read_view(file, offset, into, [&](std::uint64_t at, MutableBytes bytes) {
    return volume.read_window(image, file.window, at, bytes, stop);
  });
}

Result<std::size_t> read_view(const ViewFile& file, std::uint64_t offset, MutableBytes into, const WindowBytes& read) {
  if (offset >= file.size_bytes()) return std::size_t{0};
  into = into.first(std::min<std::uint64_t>(into.size(), file.size_bytes() - offset));
  const std::size_t total = into.size();
  if (offset < file.header.size()) {
    const std::size_t part = std::min<std::size_t>(into.size(), file.header.size() - offset);
    std::copy_n(file.header.begin() + static_cast<std::ptrdiff_t>(offset), part, into.begin());
    into = into.subspan(part);
    offset += part;
  }
  if (into.empty()) return total;
  const std::uint64_t data_offset = offset - file.header.size();
  const WindowBytes samples = [&](std::uint64_t at, MutableBytes bytes) {
    return file.padded ? geometry::read_padded(*file.padded, at, bytes, read) : read(at, bytes);
  };
  switch (file.order) {
    case SampleOrder::kCanonical:
      MDFS_TRY(samples(data_offset, into));
      break;
    case SampleOrder::kSwapped16:
      MDFS_TRY(read_swapped(file, data_offset, into, samples));
      break;
    case SampleOrder::kExr:
      MDFS_TRY(read_exr(file.raster, data_offset, into, samples));
      break;
  }
  return total;
}

}  // namespace mdfs::views
