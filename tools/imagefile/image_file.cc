// Which reader or writer an image file gets.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/image_file.h"

#include <fcntl.h>

#include <algorithm>

#include "imagefile/film_end.h"
#include "imagefile/header.h"
#include "imagefile/oiio.h"
#include "imagefile/packed.h"
#include "imagefile/picture_end.h"
#include "imagefile/sequence.h"
#include "imagefile/stack_description.h"
#include "imagefile/tiff_directory.h"
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

// Some readers of the library take bytes that the disk does not give for zeros. The reader of TIFF, whose files may be
// large, reports them.
Status read_all(FileBytes& bytes) {
  ByteVector block(1u << 20);
  for (std::uint64_t at = 0; at < bytes.size(); at += block.size())
    MDFS_TRY(bytes.read_at(at, MutableBytes(block).first(std::min<std::uint64_t>(block.size(), bytes.size() - at))));
  return {};
}

// What is missing of a picture, and what its pages are to each other: the library may say nothing of either.
Result<PageFacts> judge_picture(ConstBytes start, tools::File& file, std::uint64_t size, const SourceOptions& options) {
  FileBytes bytes(file, size);
  if (is_tiff(start)) {
    MDFS_TRY_ASSIGN(const TiffFile tiff, parse_tiff(bytes, file.name()));
    MDFS_TRY_ASSIGN(PageFacts facts, judge_stack(tiff, options.flatten, options.page.has_value(), file.name()));
    facts.inks = tiff.inks;
    return facts;
  }
  if (is_softimage(start))
    return Error{Errc::kNotSupported, file.name() + ": a Softimage picture; convert the file to TIFF or PNG"};
  if (is_jpeg(start)) MDFS_TRY(check_jpeg(bytes, file.name()));
  if (is_png(start)) MDFS_TRY(check_png(bytes, file.name()));
  if (is_gif(start)) MDFS_TRY(check_gif(bytes, file.name()));
  if (is_dpx(start)) MDFS_TRY(check_dpx(bytes, file.name()));
  if (is_cineon(start)) MDFS_TRY(check_cineon(bytes, file.name()));
  MDFS_TRY(read_all(bytes));
  PageFacts facts;
  facts.flatten = options.flatten;
  return facts;
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
    MDFS_TRY_ASSIGN(const PageFacts facts, judge_picture(start, file, size, options));
    return open_oiio(path, options.page, facts);
  }
  if (options.page) return Error{Errc::kUsage, path + ": a file of this kind has no pages"};
  MDFS_TRY_ASSIGN(const PackedHeader header, is_npy(start) ? parse_npy(start, path) : parse_pnm(start, path));
  return open_packed(std::move(file), header);
}

Result<std::unique_ptr<ImageSink>> create_sink(const std::string& path, const ArrayInfo& array, bool overwrite) {
  MDFS_TRY_ASSIGN(const std::optional<Pattern> pattern, parse_pattern(path));
  if (pattern) return create_sequence(*pattern, array, overwrite);
  const std::string ending = extension(path);
  if (path == "-" || ending == ".raw") return create_packed(path, "", array, false, overwrite);
  if (ending == ".npy") return create_packed(path, npy_header(array), array, false, overwrite);
  if (ending == ".pgm" || ending == ".ppm" || ending == ".pnm") {
    MDFS_TRY_ASSIGN(const std::string header, pnm_header(array, path));
    return create_packed(path, header, array, true, overwrite);
  }
  return create_oiio(path, array, overwrite);
}

}  // namespace mdfs::imagefile
