// Detached headers.
// SPDX-License-Identifier: Apache-2.0
#include "views/detached_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "geometry/units.h"
#include "views/type_names.h"

namespace mdfs::views {
namespace {

using geometry::Geometry;

struct HeaderRow {
  std::string_view suffix;
  std::string_view TypeNames::*type;
};
constexpr std::array kHeaderRows = {HeaderRow{"nhdr", &TypeNames::nrrd}, HeaderRow{"mhd", &TypeNames::meta},
                                    HeaderRow{"hdr", &TypeNames::envi}, HeaderRow{"vrt", &TypeNames::vrt}};

const HeaderRow& row_of(HeaderFormat format) { return kHeaderRows[static_cast<std::size_t>(format)]; }

Error cannot(HeaderFormat format, std::string_view what) {
  return {Errc::kInvalidArgument, fmt::format("a .{} header cannot describe {}", suffix(format), what)};
}

// Names that readers of a format find. ENVI names no file; the others trim spaces before a name. NRRD is a text of
// ASCII with ':' after a key. NRRD and MetaImage take % and LIST for patterns and lists of files, MetaImage ~ for a
// home directory; MetaImage and VRT a backslash for the end of a directory.
bool can_be_named(HeaderFormat format, std::string_view file) {
  const auto has = [&](std::string_view refused) { return file.find_first_of(refused) != std::string_view::npos; };
  const auto begins = [&](std::string_view refused) { return refused.find(file.front()) != std::string_view::npos; };
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto beyond_ascii = [](unsigned char c) { return c >= 0x80; };
  if (format == HeaderFormat::kEnvi) return true;
  if (file.empty() || file.front() == ' ' || std::any_of(file.begin(), file.end(), control)) return false;
  if (format == HeaderFormat::kVrt) return !has("\\");
  if (has("%") || file.starts_with("LIST")) return false;
  if (format == HeaderFormat::kNrrd) return !has(":") && std::none_of(file.begin(), file.end(), beyond_ascii);
  return !has("\\") && !begins("~=:");
}

std::uint64_t lines(const Geometry& geometry) { return geometry.rank >= 2 ? geometry.shape[geometry.rank - 2] : 1; }
std::uint64_t planes(const Geometry& geometry) {
  std::uint64_t planes = 1;
  for (unsigned axis = 0; axis + 2 < geometry.rank; ++axis) planes *= geometry.shape[axis];
  return planes;
}
std::uint64_t samples(const Geometry& geometry) { return geometry.shape[geometry.rank - 1]; }

// A word for each axis, fastest first.
template <typename Text>
std::string for_axes(const Geometry& geometry, Text text) {
  std::string words;
  for (unsigned axis = geometry.rank; axis-- > 0;) words += " " + std::string(text(axis));
  return words;
}

std::string nrrd(const Geometry& geometry, std::string_view type, std::string_view file) {
  const bool channels = geometry.channels > 1;
  const auto known = [&](unsigned axis) { return geometry.spacing[axis] > 0; };
  std::string text = fmt::format("NRRD0005\ntype: {}\ndimension: {}\nsizes:", type, geometry.rank + (channels ? 1 : 0));
  if (channels) text += fmt::format(" {}", geometry.channels);
  text += for_axes(geometry, [&](unsigned axis) { return std::to_string(geometry.shape[axis]); });
  text += channels ? "\nkinds: vector" : "\nkinds:";
  text += for_axes(geometry, [&](unsigned axis) {
    return geometry.axes[axis] == 't' ? "time" : geometry.axes[axis] == 'c' ? "list" : "space";
  });
  bool spacing = false, units = false;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) {
    spacing = spacing || known(axis);
    units = units || (known(axis) && !geometry.unit[axis].empty());
  }
  if (spacing) {
    text += channels ? "\nspacings: nan" : "\nspacings:";
    text += for_axes(geometry,
                     [&](unsigned axis) { return known(axis) ? fmt::format("{}", geometry.spacing[axis]) : "nan"; });
  }
  if (units) {
    text += channels ? "\nunits: \"\"" : "\nunits:";
    text += for_axes(geometry, [&](unsigned axis) {
      std::string unit;
      if (known(axis))
        for (const char c : geometry.unit[axis]) unit += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
      return '"' + unit + '"';
    });
  }
  return text + fmt::format("\nendian: little\nencoding: raw\ndata file: {}\n", file);
}

std::string meta_image(const Geometry& geometry, std::string_view type, std::string_view file) {
  bool lengths = true;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    lengths = lengths && geometry.spacing[axis] > 0 && geometry::centimetres(geometry.unit[axis]) > 0;
  std::string text = fmt::format(
      "ObjectType = Image\nNDims = {}\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n",
      geometry.rank);
  text += "DimSize =" + for_axes(geometry, [&](unsigned axis) { return std::to_string(geometry.shape[axis]); });
  text += "\nElementSpacing =" + for_axes(geometry, [&](unsigned axis) {
            constexpr double kMmPerCm = 10;
            if (lengths)
              return fmt::format("{}", geometry.spacing[axis] * geometry::centimetres(geometry.unit[axis]) * kMmPerCm);
            return geometry.spacing[axis] > 0 ? fmt::format("{}", geometry.spacing[axis]) : std::string("1");
          });
  if (geometry.channels > 1) text += fmt::format("\nElementNumberOfChannels = {}", geometry.channels);
  return text + fmt::format("\nElementType = {}\nElementDataFile = {}\n", type, file);
}

std::string envi(const Geometry& geometry, std::string_view type) {
  const bool channels = geometry.channels > 1;
  return fmt::format(
      "ENVI\nsamples = {}\nlines = {}\nbands = {}\nheader offset = 0\nfile type = ENVI Standard\ndata type = {}\n"
      "interleave = {}\nbyte order = 0\n",
      samples(geometry), lines(geometry), channels ? geometry.channels : planes(geometry), type,
      channels ? "bip" : "bsq");
}

std::string in_xml(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string vrt(const Geometry& geometry, std::string_view type, std::string_view file) {
  const std::uint64_t element = geometry::element_bytes(geometry.type), pixel = geometry.sample_bytes();
  const std::uint64_t line = pixel * samples(geometry), plane = line * lines(geometry);
  std::string text =
      fmt::format("<VRTDataset rasterXSize=\"{}\" rasterYSize=\"{}\">\n", samples(geometry), lines(geometry));
  std::uint64_t band = 1;
  for (std::uint64_t z = 0; z < planes(geometry); ++z)
    for (unsigned channel = 0; channel < geometry.channels; ++channel)
      text += fmt::format(
          "  <VRTRasterBand dataType=\"{}\" band=\"{}\" subClass=\"VRTRawRasterBand\">\n"
          "    <SourceFilename relativeToVRT=\"1\">{}</SourceFilename>\n"
          "    <ImageOffset>{}</ImageOffset>\n    <PixelOffset>{}</PixelOffset>\n    <LineOffset>{}</LineOffset>\n"
          "    <ByteOrder>LSB</ByteOrder>\n  </VRTRasterBand>\n",
          type, band++, in_xml(file), z * plane + channel * element, pixel, line);
  return text + "</VRTDataset>\n";
}

}  // namespace

std::string_view suffix(HeaderFormat format) { return row_of(format).suffix; }

std::optional<HeaderFormat> parse_header_suffix(std::string_view suffix) {
  for (const HeaderFormat format : kHeaderFormats)
    if (row_of(format).suffix == suffix) return format;
  return std::nullopt;
}

Status check_header(const Geometry& geometry, HeaderFormat format, std::string_view data_file) {
  if ((names_of(geometry.type).*(row_of(format).type)).empty()) return cannot(format, geometry::name(geometry.type));
  if (geometry.shape[0] == 0) return cannot(format, "an image without samples");
  if (!can_be_named(format, data_file)) return cannot(format, "a file of this name");
  if (format == HeaderFormat::kEnvi && geometry.channels > 1 && planes(geometry) > 1)
    return cannot(format, "several planes of several channels");
  if (format == HeaderFormat::kNrrd) return {};
  // Readers of the other formats keep lengths in 32 bits, and take a longer one for another.
  constexpr std::uint64_t kMaxLength = INT32_MAX;
  for (unsigned axis = 0; axis < geometry.rank; ++axis)
    if (geometry.shape[axis] > kMaxLength) return cannot(format, "an axis of 2^31 samples");
  if (format == HeaderFormat::kMetaImage) return {};
  if (samples(geometry) > kMaxLength / geometry.sample_bytes()) return cannot(format, "a line of 2^31 bytes");
  const std::uint64_t bands = planes(geometry) * geometry.channels;
  if (bands > (format == HeaderFormat::kVrt ? kMaxVrtBands : kMaxEnviBands)) return cannot(format, "so many bands");
  return {};
}

Result<std::string> detached_header(const Geometry& geometry, HeaderFormat format, std::string_view data_file) {
  MDFS_TRY(check_header(geometry, format, data_file));
  const std::string_view type = names_of(geometry.type).*(row_of(format).type);
  switch (format) {
    case HeaderFormat::kNrrd:
      return nrrd(geometry, type, data_file);
    case HeaderFormat::kMetaImage:
      return meta_image(geometry, type, data_file);
    case HeaderFormat::kEnvi:
      return envi(geometry, type);
    case HeaderFormat::kVrt:
      break;
  }
  return vrt(geometry, type, data_file);
}

}  // namespace mdfs::views
