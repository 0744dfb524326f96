// Which reader or writer an image file gets.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/image_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "imagefile/film_end.h"
#include "imagefile/header.h"
#include "imagefile/oiio.h"
#include "imagefile/packed.h"
#include "imagefile/picture_end.h"
#include "imagefile/picture_exif.h"
#include "imagefile/sequence.h"
#include "imagefile/sgi_rows.h"
#include "imagefile/stack_description.h"
#include "imagefile/tiff_directory.h"
#include "imagefile/tiff_fields.h"
#include "imagefile/tiff_samples.h"
#include "support/file.h"

namespace mdfs::imagefile {
namespace {

// The name's ending in lower case, with the point.
std::string extension(const std::string& path) {
  const std::size_t point = path.rfind('.');
  if (point == std::string::npos || path.find('/', point) != std::string::npos) return "";
  std::string text = path.substr(point);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

// Its reader in the library ends the program on a truncated file.
bool is_softimage(ConstBytes start) { return as_text(start).starts_with("\x53\x80\xf6\x34"); }

// Is a page of this layout one of the array's, and its samples those that the file holds?
bool is_plain_page(const TiffLayout& layout, const ArrayInfo& array) {
  const bool coloured = array.axes.ends_with('c');
  const std::size_t rank = array.lengths.size() - (coloured ? 1 : 0);
  MDFS_CHECK(rank >= 2);
  return is_plain_tiff(layout, array.type, coloured ? array.lengths.back() : 1) &&
         layout.length == array.lengths[rank - 2] && layout.width == array.lengths[rank - 1];
}

// OpenImageIO changes the colours of palettes, and takes some for grey pictures.
Status check_palettes(ByteSource& bytes, const TiffFile& tiff, std::uint64_t first, std::uint64_t end,
                      const std::string& name) {
  for (std::uint64_t page = first; page < end; ++page) {
    MDFS_TRY_ASSIGN(const TiffLayout layout, read_tiff_layout(bytes, tiff, page, name));
    if (!has_palette(layout)) continue;
    const Status status = check_tiff_palette(layout);
    if (!status.ok()) return {status.error().code, fmt::format("{}: page {}: {}", name, page, status.error().where)};
  }
  return {};
}

// A block as it lies in the file, in place of what the library knows of it. Empty: the file has none.
void keep_block(ImageSource& source, std::string_view name, std::string block) {
  if (block.empty()) return;
  Metadata metadata = source.metadata();
  metadata.blocks.insert_or_assign(std::string(name), std::move(block));
  source.set_metadata(std::move(metadata));
}

// OpenImageIO tells the shape, the type and the resolution. It reads the samples only where it changes them, because it
// overlooks damage, and returns wrong samples of 64 bits.
Result<std::unique_ptr<ImageSource>> open_tiff(const std::string& path, tools::File file, std::uint64_t size,
                                               const SourceOptions& options) {
  constexpr std::uint64_t kMaxChangedBits = 32;
  FileBytes bytes(file, size);
  MDFS_TRY_ASSIGN(TiffFile tiff, parse_tiff(bytes, file.name()));
  MDFS_TRY_ASSIGN(PageFacts facts, judge_stack(tiff, options.flatten, options.page.has_value(), file.name()));
  facts.inks = tiff.inks;
  const std::uint64_t first = options.page.value_or(0), end = options.page ? first + 1 : tiff.pages;
  if (first < tiff.pages) {
    MDFS_TRY_ASSIGN(const TiffLayout layout, read_tiff_layout(bytes, tiff, first, file.name()));
    if (holds_long_integers(layout))
      return Error{Errc::kNotSupported,
                   fmt::format("{}: integers of {} bits, which OpenImageIO does not read; convert the file to NPY",
                               file.name(), layout.bits)};
    if (layout.bits > 1 && layout.bits % 2 == 1 && !has_palette(layout))
      return Error{
          Errc::kNotSupported,
          fmt::format("{}: samples of {} bits, which OpenImageIO does not read; it must be 1 or an even number",
                      file.name(), layout.bits)};
  }
  if (tiff.palette) MDFS_TRY(check_palettes(bytes, tiff, first, std::min(end, tiff.pages), file.name()));
  MDFS_TRY_ASSIGN(std::unique_ptr<ImageSource> source, open_oiio(path, options.page, facts));
  MDFS_TRY_ASSIGN(std::string geo, read_geo_fields(bytes, tiff, first));
  MDFS_TRY_ASSIGN(std::string exif, read_exif_fields(bytes, tiff, first));
  keep_block(*source, kGeoBlock, std::move(geo));
  keep_block(*source, kExifBlock, std::move(exif));
  bool plain = true;
  std::optional<std::uint64_t> palette;  // a page that has one
  for (std::uint64_t page = first; page < end; ++page) {
    MDFS_TRY_ASSIGN(const TiffLayout layout, read_tiff_layout(bytes, tiff, page, file.name()));
    plain = plain && is_plain_page(layout, source->array());
    if (has_palette(layout)) palette = page;
    if (!plain && layout.bits > kMaxChangedBits)
      return Error{Errc::kNotSupported,
                   fmt::format("{}: page {}: samples of {} bits in an unusual layout", file.name(), page, layout.bits)};
  }
  if (plain) {
    auto samples = open_tiff_samples(std::move(file), size, std::move(tiff), source->array(), first);
    samples->set_metadata(source->metadata());
    return samples;
  }
  if (palette)
    return Error{Errc::kNotSupported,
                 fmt::format("{}: page {}: a palette beside pages that must be converted; import each page with --page",
                             file.name(), *palette)};
  for (std::uint64_t page = first; page < end; ++page) MDFS_TRY(verify_tiff_page(bytes, tiff, page, file.name()));
  return source;
}

// Some readers of the library take bytes that the disk does not give for zeros.
Status read_all(FileBytes& bytes) {
  ByteVector block(1u << 20);
  for (std::uint64_t at = 0; at < bytes.size(); at += block.size())
    MDFS_TRY(bytes.read_at(at, MutableBytes(block).first(std::min<std::uint64_t>(block.size(), bytes.size() - at))));
  return {};
}

// What is missing of a picture other than TIFF: the library may say nothing of it.
Status check_picture(ConstBytes start, tools::File& file, std::uint64_t size) {
  FileBytes bytes(file, size);
  if (is_softimage(start))
    return {Errc::kNotSupported, file.name() + ": a Softimage picture; convert the file to TIFF or PNG"};
  if (is_jpeg(start)) MDFS_TRY(check_jpeg(bytes, file.name()));
  if (is_jpeg2000(start)) MDFS_TRY(check_jpeg2000(bytes, file.name()));
  if (is_png(start)) MDFS_TRY(check_png(bytes, file.name()));
  if (is_gif(start)) MDFS_TRY(check_gif(bytes, file.name()));
  if (is_sgi(start)) MDFS_TRY(check_sgi(bytes, file.name()));
  if (is_dpx(start)) MDFS_TRY(check_dpx(bytes, file.name()));
  if (is_cineon(start)) MDFS_TRY(check_cineon(bytes, file.name()));
  return read_all(bytes);
}

Status keep_exif(ConstBytes start, tools::File& file, std::uint64_t size, ImageSource& source) {
  FileBytes bytes(file, size);
  std::string exif;
  if (is_jpeg(start)) {
    MDFS_TRY_ASSIGN(exif, read_jpeg_exif(bytes));
  } else if (is_png(start)) {
    MDFS_TRY_ASSIGN(exif, read_png_exif(bytes));
  }
  keep_block(source, kExifBlock, std::move(exif));
  return {};
}

}  // namespace

Result<std::unique_ptr<ImageSource>> open_source(const std::string& path, const SourceOptions& options) {
  MDFS_TRY_ASSIGN(const std::optional<Pattern> pattern, parse_pattern(path));
  if (pattern && options.flatten) return Error{Errc::kUsage, "'" + path + "': --flatten requires one file with pages"};
  if (pattern) return open_sequence(*pattern, options);
  if (options.frames) return Error{Errc::kUsage, "'" + path + "': --frames requires a name with %d or %04d"};
  if (options.raw_type.has_value() == options.raw_lengths.empty())
    return Error{Errc::kUsage, "raw samples require --shape and --type"};
  MDFS_TRY_ASSIGN(tools::File file, tools::File::open(path, O_RDONLY | O_NONBLOCK));
  MDFS_TRY_ASSIGN(const std::uint64_t size, file.size_bytes());
  if (options.raw_type) {
    PackedHeader header;
    header.array.lengths = options.raw_lengths;
    header.array.type = *options.raw_type;
    return open_packed(std::move(file), header);
  }
  ByteVector start(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMaxHeaderBytes)));
  MDFS_TRY_ASSIGN(const std::size_t got, file.read_at(0, start));
  start.resize(got);
  if (!is_npy(start) && !is_pnm(start)) {
    if (is_tiff(start)) return open_tiff(path, std::move(file), size, options);
    MDFS_TRY(check_picture(start, file, size));
    PageFacts facts;
    facts.flatten = options.flatten;
    MDFS_TRY_ASSIGN(std::unique_ptr<ImageSource> source, open_oiio(path, options.page, facts));
    MDFS_TRY(keep_exif(start, file, size, *source));
    return source;
  }
  if (options.page) return Error{Errc::kUsage, path + ": a file of this kind has no pages"};
  MDFS_TRY_ASSIGN(const PackedHeader header, is_npy(start) ? parse_npy(start, path) : parse_pnm(start, path));
  return open_packed(std::move(file), header);
}

Result<std::unique_ptr<ImageSink>> create_sink(const std::string& path, const ArrayInfo& array, bool overwrite,
                                               const Metadata& metadata) {
  MDFS_TRY_ASSIGN(const std::optional<Pattern> pattern, parse_pattern(path));
  if (pattern) return create_sequence(*pattern, array, overwrite, metadata);
  const std::string ending = extension(path);
  const bool is_raw = path == "-" || ending == ".raw",
             is_pnm = ending == ".pgm" || ending == ".ppm" || ending == ".pnm";
  if (!is_raw && !is_pnm && ending != ".npy") return create_oiio(path, array, overwrite, metadata);
  std::string header;
  if (ending == ".npy") header = npy_header(array);
  if (is_pnm) {
    MDFS_TRY_ASSIGN(header, pnm_header(array, path));
  }
  MDFS_TRY_ASSIGN(auto sink, create_packed(path, header, array, is_pnm, overwrite));
  for (const auto& [block, bytes] : metadata.blocks) sink->drop(block);
  return sink;
}

std::vector<MetadataField> describe(const Metadata& metadata) { return describe_by_oiio(metadata); }

}  // namespace mdfs::imagefile
