// SPDX-License-Identifier: Apache-2.0
#include "views/tiff_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "geometry/level.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

constexpr std::uint64_t kHeaderBytes = 16;
constexpr std::uint64_t kTileStep = 16;  // TIFF demands it of the sides of tiles
constexpr std::uint64_t kStripBytes = 256 << 10;

constexpr std::uint64_t kReducedPicture = 1;

enum Tag : std::uint16_t {
  kNewSubfileType = 254,
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kSubIfds = 330,
  kExtraSamples = 338,
  kSampleFormat = 339,
};

ByteVector number_of_8_bytes(std::uint64_t value) {
  ByteVector bytes;
  put_number(bytes, value, 8);
  return bytes;
}

std::uint64_t value_bytes(TiffType type) { return type == TiffType::kShort ? 2 : type == TiffType::kLong ? 4 : 8; }

// Entries of a directory, in ascending order of their tags whatever the order in which they come.
class Entries {
 public:
  // Values that are at `offset` of the file, or, if they fit, in the entry: then `value` is all of them.
  void add(std::uint16_t tag, TiffType type, std::uint64_t count, std::uint64_t value, std::uint64_t offset = 0) {
    const bool fits = count * value_bytes(type) <= kTiffInlineBytes;
    const ByteVector last = number_of_8_bytes(fits ? value : offset);
    entries_.emplace_back(tag, tiff_entry(tag, static_cast<std::uint16_t>(type), count, last));
  }
  void add(const TiffField& field, std::uint64_t offset) {
    const ByteVector place = number_of_8_bytes(offset);
    const ConstBytes last = field.bytes.size() <= kTiffInlineBytes ? ConstBytes(field.bytes) : ConstBytes(place);
    entries_.emplace_back(field.tag, tiff_entry(field.tag, field.type, field.count, last));
  }
  // The directory. `next` is where the next one is in the file; 0: nowhere.
  ByteVector bytes(std::uint64_t next) {
    std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    ByteVector result = number_of_8_bytes(entries_.size());
    for (const auto& [tag, entry] : entries_) result.insert(result.end(), entry.begin(), entry.end());
    put_number(result, next, 8);
    return result;
  }

 private:
  std::vector<std::pair<std::uint16_t, ByteVector>> entries_;
};

// The values of fields, each on its own 8 bytes, also those whose values are in their entries.
void append_values(const std::vector<TiffField>& fields, ByteVector& bytes) {
  for (const TiffField& field : fields) {
    bytes.insert(bytes.end(), field.bytes.begin(), field.bytes.end());
    bytes.resize(align_up(bytes.size(), 8));
  }
}

// Adds fields whose values lie as append_values() appends them, from `place` of the file on.
void add_fields(const std::vector<TiffField>& fields, std::uint64_t place, Entries& entries) {
  for (const TiffField& field : fields) {
    entries.add(field, place);
    place += align_up(field.bytes.size(), 8);
  }
}

std::uint64_t values_bytes(const std::vector<TiffField>& fields) {
  std::uint64_t bytes = 0;
  for (const TiffField& field : fields) bytes += align_up(field.bytes.size(), 8);
  return bytes;
}

// Of a directory: of its entries alone, and with the values behind them.
std::uint64_t entries_bytes(const TiffDirectory& directory) {
  return align_up(16 + directory.fields.size() * kTiffEntryBytes, 8);
}
std::uint64_t bytes_of(const TiffDirectory& directory) {
  return entries_bytes(directory) + values_bytes(directory.fields);
}

// Up to four equal shorts as the value of an entry.
std::uint64_t repeat_short(std::uint64_t value, std::uint64_t count) {
  std::uint64_t packed = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 4); ++i) packed |= value << (16 * i);
  return packed;
}

std::uint64_t sample_format(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kU64:
      return 1;
    case ElementType::kI8:
    case ElementType::kI16:
    case ElementType::kI32:
    case ElementType::kI64:
      return 2;
    case ElementType::kF16:
    case ElementType::kF32:
    case ElementType::kF64:
      break;
  }
  return 3;
}

bool is_colour(const Geometry& geometry) { return geometry.channels == 3 || geometry.channels == 4; }
std::uint64_t extra_samples(const Geometry& geometry) { return geometry.channels - (is_colour(geometry) ? 3u : 1u); }
// The fourth channel of RGBA, and the second one of grey and alpha, is alpha that is not multiplied in; others are
// without a meaning.
std::uint64_t extra_meaning(const Geometry& geometry) { return extra_samples(geometry) == 1 ? 2 : 0; }

bool has_tiles(const Geometry& geometry) {
  return geometry.rank > 1 && geometry.extent[geometry.rank - 1] % kTileStep == 0 &&
         geometry.extent[geometry.rank - 2] % kTileStep == 0;
}

// Copies from a row of units of equal size, the first at `begin`, what lies in [offset, offset + into.size()).
template <typename Make>
void fill_units(std::uint64_t begin, std::uint64_t unit_bytes, std::uint64_t count, std::uint64_t offset,
                MutableBytes into, const Make& make) {
  const std::uint64_t end = begin + unit_bytes * count;
  const std::uint64_t last = std::min(end, offset + into.size());
  for (std::uint64_t at = std::max(begin, offset); at < last;) {
    const std::uint64_t unit = (at - begin) / unit_bytes, skip = (at - begin) % unit_bytes;
    const ByteVector bytes = make(unit);
    MDFS_CHECK(bytes.size() == unit_bytes);
    const std::uint64_t piece = std::min(unit_bytes - skip, last - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(skip), piece,
                into.begin() + static_cast<std::ptrdiff_t>(at - offset));
    at += piece;
  }
}

}  // namespace

std::uint64_t tiff_pages(const Geometry& image) {
  std::uint64_t pages = 1;
  for (unsigned axis = 0; axis + 2 < image.rank; ++axis) pages *= image.shape[axis];
  return pages;
}

unsigned levels_in_tiff(const Geometry& image, unsigned stored) {
  if (!has_tiles(image)) return 0;
  const std::uint64_t pages = tiff_pages(image);
  for (unsigned level = 1; level <= stored; ++level) {
    const Geometry above = geometry::level_geometry(image, level);
    if (!has_tiles(above) || tiff_pages(above) != pages) return level - 1;
  }
  return stored;
}

Result<TiffLayout::Picture> TiffLayout::picture_of(const Geometry& geometry) {
  Picture picture;
  picture.geometry = geometry;
  picture.width = geometry.shape[geometry.rank - 1];
  picture.height = geometry.rank == 1 ? 1 : geometry.shape[geometry.rank - 2];
  picture.pages = tiff_pages(geometry);
  if (picture.width == 0 || picture.height == 0 || picture.pages == 0)
    return Error{Errc::kInvalidArgument, "tif: the image has no samples"};
  if (picture.width > kMaxTiffSide || picture.height > kMaxTiffSide || picture.pages > kMaxTiffPages)
    return Error{Errc::kInvalidArgument,
                 fmt::format("tif holds {} pages and sides of {} at most", kMaxTiffPages, kMaxTiffSide)};
  if (geometry.channels > kMaxTiffChannels)
    return Error{Errc::kInvalidArgument, fmt::format("tif holds {} channels at most", kMaxTiffChannels)};
  const std::uint64_t row_bytes = picture.width * geometry.sample_bytes();
  if (row_bytes > kMaxTiffSide) return Error{Errc::kInvalidArgument, "tif holds rows below 2 GiB"};

  picture.tiled = has_tiles(geometry);
  picture.tile_width = picture.tiled ? geometry.extent[geometry.rank - 1] : picture.width;
  picture.block_rows = picture.tiled ? geometry.extent[geometry.rank - 2]
                                     : std::clamp<std::uint64_t>(kStripBytes / row_bytes, 1, picture.height);
  picture.blocks_across = ceil_div(picture.width, picture.tile_width);
  picture.blocks_per_page = picture.blocks_across * ceil_div(picture.height, picture.block_rows);
  return picture;
}

std::uint64_t TiffLayout::Picture::block_bytes(std::uint64_t block) const {
  if (tiled) return block_rows * row_bytes();
  const std::uint64_t first_row = block % blocks_per_page * block_rows;
  return std::min(block_rows, height - first_row) * row_bytes();
}

std::uint64_t TiffLayout::Picture::block_offset(std::uint64_t block) const {
  if (tiled) return block * block_bytes(0);
  const std::uint64_t row = block / blocks_per_page * height + block % blocks_per_page * block_rows;
  return row * row_bytes();
}

std::uint64_t TiffLayout::Picture::data_bytes() const {
  return tiled ? blocks() * block_bytes(0) : geometry.size_bytes();
}

Result<TiffLayout> TiffLayout::of(TiffContent content) {
  TiffLayout layout;
  layout.fields_ = std::move(content.fields);
  layout.field_directories_ = std::move(content.directories);
  MDFS_TRY_ASSIGN(Picture image, picture_of(content.image));
  layout.pictures_.push_back(std::move(image));
  MDFS_CHECK(content.levels == levels_in_tiff(content.image, content.levels));
  for (unsigned level = 1; level <= content.levels; ++level) {
    MDFS_TRY_ASSIGN(Picture picture, picture_of(geometry::level_geometry(content.image, level)));
    layout.pictures_.push_back(std::move(picture));
  }

  Picture& first = layout.pictures_.front();
  const std::uint64_t fields = (layout.fields_.size() + layout.field_directories_.size()) * kTiffEntryBytes;
  first.directories = kHeaderBytes;
  layout.first_directory_bytes_ = layout.directory(first, 0).size();
  layout.page_directory_bytes_ = layout.first_directory_bytes_ - fields;
  std::uint64_t end = kHeaderBytes + fields;
  for (Picture& picture : layout.pictures_) {
    if (!layout.is_image(picture)) {
      picture.directories = end;
      layout.level_directory_bytes_ = layout.directory(picture, 0).size();
    }
    end += picture.pages * layout.directory_bytes(picture);
  }
  layout.shared_offset_ = end;
  layout.fields_offset_ = align_up(layout.shared_offset_ + layout.shared_values().size(), 8);
  layout.fields_bytes_ = values_bytes(layout.fields_);
  for (const TiffDirectory& directory : layout.field_directories_) layout.fields_bytes_ += bytes_of(directory);
  layout.sub_levels_offset_ = layout.fields_offset_ + layout.fields_bytes_;
  end = layout.sub_levels_offset_ + (layout.has_sub_levels() ? first.pages * content.levels * 8 : 0);
  for (Picture& picture : layout.pictures_) {
    picture.offsets = end;
    picture.sizes = picture.offsets + picture.blocks() * 8;
    end = picture.sizes + picture.blocks() * 8;
  }
  layout.data_offset_ = align_up(end, kTiffAlignment);
  for (auto picture = layout.pictures_.rbegin(); picture != layout.pictures_.rend(); ++picture) {
    picture->data = layout.data_bytes_;
    layout.data_bytes_ += picture->data_bytes();
  }
  return layout;
}

std::uint64_t TiffLayout::block_offset(const Picture& picture, std::uint64_t block) const {
  return data_offset_ + picture.data + picture.block_offset(block);
}

std::uint64_t TiffLayout::directory_bytes(const Picture& picture) const {
  return is_image(picture) ? page_directory_bytes_ : level_directory_bytes_;
}

std::uint64_t TiffLayout::directory_offset(const Picture& picture, std::uint64_t page) const {
  const bool behind_first = is_image(picture) && page > 0;
  const std::uint64_t fields = behind_first ? first_directory_bytes_ - page_directory_bytes_ : 0;
  return picture.directories + page * directory_bytes(picture) + fields;
}

// Of the chain. 0: none.
std::uint64_t TiffLayout::next_directory(const Picture& picture, std::uint64_t page) const {
  if (has_sub_levels() && !is_image(picture)) return 0;
  if (page + 1 < picture.pages) return directory_offset(picture, page + 1);
  const bool is_last = has_sub_levels() || &picture == &pictures_.back();
  return is_last ? 0 : directory_offset(*(&picture + 1), 0);
}

ByteVector TiffLayout::header() const {
  ByteVector bytes;
  for (const char letter : {'I', 'I'}) bytes.push_back(static_cast<std::byte>(letter));
  put_number(bytes, 43, 2);  // BigTIFF
  put_number(bytes, 8, 2);   // bytes of an offset
  put_number(bytes, 0, 2);
  put_number(bytes, kHeaderBytes, 8);
  return bytes;
}

ByteVector TiffLayout::directory(const Picture& picture, std::uint64_t page) const {
  const Geometry& geometry = picture.geometry;
  const std::uint64_t channels = geometry.channels, extra = extra_samples(geometry);
  const std::uint64_t bits = 8 * element_bytes(geometry.type);
  const std::uint64_t bits_offset = shared_offset_, format_offset = bits_offset + 2 * channels;
  const std::uint64_t extra_offset = format_offset + 2 * channels;
  const std::uint64_t first = page * picture.blocks_per_page;
  // With one block the values are in the entries.
  const std::uint64_t offset_value = block_offset(picture, first), size_value = picture.block_bytes(first);
  const std::uint64_t offsets = picture.offsets + first * 8, sizes = picture.sizes + first * 8;
  using enum TiffType;
  Entries entries;
  entries.add(kNewSubfileType, kLong, 1, is_image(picture) ? 0 : kReducedPicture);
  entries.add(kImageWidth, kLong, 1, picture.width);
  entries.add(kImageLength, kLong, 1, picture.height);
  entries.add(kBitsPerSample, kShort, channels, repeat_short(bits, channels), bits_offset);
  entries.add(kCompression, kShort, 1, 1);
  entries.add(kPhotometric, kShort, 1, is_colour(geometry) ? 2 : 1);
  entries.add(kSamplesPerPixel, kShort, 1, channels);
  entries.add(kPlanarConfiguration, kShort, 1, 1);
  if (picture.tiled) {
    entries.add(kTileWidth, kLong, 1, picture.tile_width);
    entries.add(kTileLength, kLong, 1, picture.block_rows);
    entries.add(kTileOffsets, kLong8, picture.blocks_per_page, offset_value, offsets);
    entries.add(kTileByteCounts, kLong8, picture.blocks_per_page, size_value, sizes);
  } else {
    entries.add(kRowsPerStrip, kLong, 1, picture.block_rows);
    entries.add(kStripOffsets, kLong8, picture.blocks_per_page, offset_value, offsets);
    entries.add(kStripByteCounts, kLong8, picture.blocks_per_page, size_value, sizes);
  }
  if (extra != 0) entries.add(kExtraSamples, kShort, extra, repeat_short(extra_meaning(geometry), extra), extra_offset);
  entries.add(kSampleFormat, kShort, channels, repeat_short(sample_format(geometry.type), channels), format_offset);
  if (has_sub_levels() && is_image(picture)) {
    entries.add(kSubIfds, kIfd8, levels(), directory_offset(pictures_[1], page),
                sub_levels_offset_ + page * levels() * 8);
  }
  if (is_image(picture) && page == 0) {
    add_fields(fields_, fields_offset_, entries);
    std::uint64_t place = fields_offset_ + values_bytes(fields_);
    for (const TiffDirectory& one : field_directories_) {
      entries.add(one.tag, kIfd8, 1, place);
      place += bytes_of(one);
    }
  }
  return entries.bytes(next_directory(picture, page));
}

ByteVector TiffLayout::shared_values() const {
  const Geometry& geometry = pictures_.front().geometry;
  ByteVector bytes;
  for (unsigned i = 0; i < geometry.channels; ++i) put_number(bytes, 8 * element_bytes(geometry.type), 2);
  for (unsigned i = 0; i < geometry.channels; ++i) put_number(bytes, sample_format(geometry.type), 2);
  for (unsigned i = 0; i < extra_samples(geometry); ++i) put_number(bytes, extra_meaning(geometry), 2);
  return bytes;
}

ByteVector TiffLayout::field_values() const {
  ByteVector bytes;
  append_values(fields_, bytes);
  for (const TiffDirectory& directory : field_directories_) {
    const std::uint64_t end = bytes.size() + entries_bytes(directory);
    Entries entries;
    add_fields(directory.fields, fields_offset_ + end, entries);
    const ByteVector head = entries.bytes(0);
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.resize(end);
    append_values(directory.fields, bytes);
  }
  return bytes;
}

void TiffLayout::fill_head(std::uint64_t offset, MutableBytes into) const {
  MDFS_CHECK(offset + into.size() <= data_offset_);
  std::fill(into.begin(), into.end(), std::byte{0});
  fill_units(0, kHeaderBytes, 1, offset, into, [&](std::uint64_t) { return header(); });
  fill_units(kHeaderBytes, first_directory_bytes_, 1, offset, into,
             [&](std::uint64_t) { return directory(pictures_.front(), 0); });
  for (const Picture& picture : pictures_) {
    const std::uint64_t skipped = is_image(picture) ? 1 : 0;  // the first directory
    fill_units(directory_offset(picture, skipped), directory_bytes(picture), picture.pages - skipped, offset, into,
               [&](std::uint64_t page) { return directory(picture, page + skipped); });
    fill_units(picture.offsets, 8, picture.blocks(), offset, into,
               [&](std::uint64_t i) { return number_of_8_bytes(block_offset(picture, i)); });
    fill_units(picture.sizes, 8, picture.blocks(), offset, into,
               [&](std::uint64_t i) { return number_of_8_bytes(picture.block_bytes(i)); });
  }
  if (has_sub_levels()) {
    fill_units(sub_levels_offset_, 8, pictures_.front().pages * levels(), offset, into, [&](std::uint64_t i) {
      return number_of_8_bytes(directory_offset(pictures_[1 + i % levels()], i / levels()));
    });
  }
  const ByteVector shared = shared_values();
  fill_units(shared_offset_, shared.size(), 1, offset, into, [&](std::uint64_t) { return shared; });
  fill_units(fields_offset_, fields_bytes_, 1, offset, into, [&](std::uint64_t) { return field_values(); });
}

TiffLayout::Part TiffLayout::part_at(std::uint64_t offset) const {
  MDFS_CHECK(offset < data_bytes_);
  unsigned level = 0;
  while (offset < pictures_[level].data) ++level;  // the last one begins at 0
  const Picture& picture = pictures_[level];
  const Geometry& geometry = picture.geometry;
  offset -= picture.data;
  if (!picture.tiled) return {geometry::whole(geometry), offset, picture.data_bytes() - offset, level};
  const std::uint64_t bytes = picture.block_bytes(0), block = offset / bytes;
  const std::uint64_t in_page = block % picture.blocks_per_page;
  Part part{{}, offset % bytes, bytes - offset % bytes, level};
  const unsigned x = geometry.rank - 1, y = x - 1;
  part.window.start[x] = in_page % picture.blocks_across * picture.tile_width;
  part.window.start[y] = in_page / picture.blocks_across * picture.block_rows;
  part.window.length[x] = std::min(picture.tile_width, picture.width - part.window.start[x]);
  part.window.length[y] = std::min(picture.block_rows, picture.height - part.window.start[y]);
  std::uint64_t page = block / picture.blocks_per_page;
  for (unsigned axis = y; axis-- > 0; page /= geometry.shape[axis]) {
    part.window.start[axis] = page % geometry.shape[axis];
    part.window.length[axis] = 1;
  }
  return part;
}

}  // namespace mdfs::views
