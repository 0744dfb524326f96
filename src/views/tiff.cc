// The bytes of NAME.tif.
// SPDX-License-Identifier: Apache-2.0
#include "views/tiff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/checked.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;
using geometry::Geometry;

constexpr std::uint64_t kHeaderBytes = 16;
constexpr std::uint64_t kEntryBytes = 20;
constexpr std::uint64_t kInlineBytes = 8;  // values up to this many bytes lie in the entry
constexpr std::uint64_t kTileStep = 16;    // TIFF demands it of the sides of tiles
constexpr std::uint64_t kStripBytes = 256 << 10;

enum Tag : std::uint16_t {
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
  kExtraSamples = 338,
  kSampleFormat = 339,
};
enum FieldType : std::uint16_t { kShort = 3, kLong = 4, kLong8 = 16 };

void put(ByteVector& into, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) into.push_back(static_cast<std::byte>(value >> (8 * i)));
}

std::uint64_t field_bytes(FieldType type) { return type == kShort ? 2 : type == kLong ? 4 : 8; }

// An entry whose values are at `offset` of the file, or, if they fit, in the entry: then `value` is all of them.
void put_entry(ByteVector& into, Tag tag, FieldType type, std::uint64_t count, std::uint64_t value,
               std::uint64_t offset = 0) {
  put(into, tag, 2);
  put(into, type, 2);
  put(into, count, 8);
  put(into, count * field_bytes(type) <= kInlineBytes ? value : offset, 8);
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

Result<TiffLayout> TiffLayout::of(const Geometry& geometry) {
  TiffLayout layout;
  layout.geometry_ = geometry;
  layout.width_ = geometry.shape[geometry.rank - 1];
  layout.height_ = geometry.rank == 1 ? 1 : geometry.shape[geometry.rank - 2];
  layout.pages_ = 1;
  for (unsigned axis = 0; axis + 2 < geometry.rank; ++axis) layout.pages_ *= geometry.shape[axis];
  if (layout.width_ == 0 || layout.height_ == 0 || layout.pages_ == 0)
    return Error{Errc::kInvalidArgument, "tif: the image has no samples"};
  if (layout.width_ > kMaxTiffSide || layout.height_ > kMaxTiffSide || layout.pages_ > kMaxTiffPages)
    return Error{Errc::kInvalidArgument,
                 fmt::format("tif holds {} pages and sides of {} at most", kMaxTiffPages, kMaxTiffSide)};
  if (geometry.channels > kMaxTiffChannels)
    return Error{Errc::kInvalidArgument, fmt::format("tif holds {} channels at most", kMaxTiffChannels)};
  const std::uint64_t row_bytes = layout.width_ * geometry.sample_bytes();
  if (row_bytes > kMaxTiffSide) return Error{Errc::kInvalidArgument, "tif holds rows below 2 GiB"};

  layout.tiled_ = geometry.rank > 1 && geometry.extent[geometry.rank - 1] % kTileStep == 0 &&
                  geometry.extent[geometry.rank - 2] % kTileStep == 0;
  if (layout.tiled_) {
    layout.tile_width_ = geometry.extent[geometry.rank - 1];
    layout.block_rows_ = geometry.extent[geometry.rank - 2];
  } else {
    layout.tile_width_ = layout.width_;
    layout.block_rows_ = std::clamp<std::uint64_t>(kStripBytes / row_bytes, 1, layout.height_);
  }
  layout.blocks_across_ = ceil_div(layout.width_, layout.tile_width_);
  layout.blocks_per_page_ = layout.blocks_across_ * ceil_div(layout.height_, layout.block_rows_);
  layout.data_bytes_ =
      layout.tiled_ ? layout.blocks() * layout.block_rows_ * layout.tile_row_bytes() : geometry.size_bytes();
  layout.directory_bytes_ = layout.directory(0).size();
  layout.shared_offset_ = kHeaderBytes + layout.pages_ * layout.directory_bytes_;
  layout.offsets_offset_ = align_up(layout.shared_offset_ + layout.shared_values().size(), 8);
  layout.sizes_offset_ = layout.offsets_offset_ + layout.blocks() * 8;
  layout.data_offset_ = align_up(layout.sizes_offset_ + layout.blocks() * 8, kTiffAlignment);
  return layout;
}

std::uint64_t TiffLayout::block_bytes(std::uint64_t block) const {
  if (tiled_) return block_rows_ * tile_row_bytes();
  const std::uint64_t first_row = block % blocks_per_page_ * block_rows_;
  return std::min(block_rows_, height_ - first_row) * tile_row_bytes();
}

std::uint64_t TiffLayout::block_offset(std::uint64_t block) const {
  if (tiled_) return data_offset_ + block * block_bytes(0);
  const std::uint64_t row = block / blocks_per_page_ * height_ + block % blocks_per_page_ * block_rows_;
  return data_offset_ + row * tile_row_bytes();
}

ByteVector TiffLayout::header() const {
  ByteVector bytes;
  for (const char letter : {'I', 'I'}) bytes.push_back(static_cast<std::byte>(letter));
  put(bytes, 43, 2);  // BigTIFF
  put(bytes, 8, 2);   // bytes of an offset
  put(bytes, 0, 2);
  put(bytes, kHeaderBytes, 8);
  return bytes;
}

ByteVector TiffLayout::directory(std::uint64_t page) const {
  const std::uint64_t channels = geometry_.channels, extra = extra_samples(geometry_);
  const std::uint64_t bits = 8 * element_bytes(geometry_.type);
  const std::uint64_t bits_offset = shared_offset_, format_offset = bits_offset + 2 * channels;
  const std::uint64_t extra_offset = format_offset + 2 * channels;
  const std::uint64_t first = page * blocks_per_page_;
  // With one block the values are in the entries.
  const std::uint64_t offset_value = block_offset(first), size_value = block_bytes(first);
  const std::uint64_t offsets = offsets_offset_ + first * 8, sizes = sizes_offset_ + first * 8;
  ByteVector entries;  // by ascending tag
  put_entry(entries, kImageWidth, kLong, 1, width_);
  put_entry(entries, kImageLength, kLong, 1, height_);
  put_entry(entries, kBitsPerSample, kShort, channels, repeat_short(bits, channels), bits_offset);
  put_entry(entries, kCompression, kShort, 1, 1);
  put_entry(entries, kPhotometric, kShort, 1, is_colour(geometry_) ? 2 : 1);
  if (!tiled_) put_entry(entries, kStripOffsets, kLong8, blocks_per_page_, offset_value, offsets);
  put_entry(entries, kSamplesPerPixel, kShort, 1, channels);
  if (!tiled_) put_entry(entries, kRowsPerStrip, kLong, 1, block_rows_);
  if (!tiled_) put_entry(entries, kStripByteCounts, kLong8, blocks_per_page_, size_value, sizes);
  put_entry(entries, kPlanarConfiguration, kShort, 1, 1);
  if (tiled_) {
    put_entry(entries, kTileWidth, kLong, 1, tile_width_);
    put_entry(entries, kTileLength, kLong, 1, block_rows_);
    put_entry(entries, kTileOffsets, kLong8, blocks_per_page_, offset_value, offsets);
    put_entry(entries, kTileByteCounts, kLong8, blocks_per_page_, size_value, sizes);
  }
  if (extra != 0)
    put_entry(entries, kExtraSamples, kShort, extra, repeat_short(extra_meaning(geometry_), extra), extra_offset);
  put_entry(entries, kSampleFormat, kShort, channels, repeat_short(sample_format(geometry_.type), channels),
            format_offset);
  ByteVector bytes;
  put(bytes, entries.size() / kEntryBytes, 8);
  bytes.insert(bytes.end(), entries.begin(), entries.end());
  put(bytes, page + 1 == pages_ ? 0 : kHeaderBytes + (page + 1) * directory_bytes_, 8);
  return bytes;
}

ByteVector TiffLayout::shared_values() const {
  ByteVector bytes;
  for (unsigned i = 0; i < geometry_.channels; ++i) put(bytes, 8 * element_bytes(geometry_.type), 2);
  for (unsigned i = 0; i < geometry_.channels; ++i) put(bytes, sample_format(geometry_.type), 2);
  for (unsigned i = 0; i < extra_samples(geometry_); ++i) put(bytes, extra_meaning(geometry_), 2);
  return bytes;
}

void TiffLayout::fill_head(std::uint64_t offset, MutableBytes into) const {
  MDFS_CHECK(offset + into.size() <= data_offset_);
  const auto number = [](std::uint64_t value) {
    ByteVector bytes;
    put(bytes, value, 8);
    return bytes;
  };
  std::fill(into.begin(), into.end(), std::byte{0});
  fill_units(0, kHeaderBytes, 1, offset, into, [&](std::uint64_t) { return header(); });
  fill_units(kHeaderBytes, directory_bytes_, pages_, offset, into, [&](std::uint64_t page) { return directory(page); });
  const ByteVector shared = shared_values();
  fill_units(shared_offset_, shared.size(), 1, offset, into, [&](std::uint64_t) { return shared; });
  fill_units(offsets_offset_, 8, blocks(), offset, into, [&](std::uint64_t i) { return number(block_offset(i)); });
  fill_units(sizes_offset_, 8, blocks(), offset, into, [&](std::uint64_t i) { return number(block_bytes(i)); });
}

TiffLayout::Part TiffLayout::part_at(std::uint64_t offset) const {
  MDFS_CHECK(offset < data_bytes_);
  if (!tiled_) return {geometry::whole(geometry_), offset, data_bytes_ - offset};
  const std::uint64_t bytes = block_bytes(0), block = offset / bytes;
  const std::uint64_t in_page = block % blocks_per_page_;
  Part part{{}, offset % bytes, bytes - offset % bytes};
  const unsigned x = geometry_.rank - 1, y = x - 1;
  part.window.start[x] = in_page % blocks_across_ * tile_width_;
  part.window.start[y] = in_page / blocks_across_ * block_rows_;
  part.window.length[x] = std::min(tile_width_, width_ - part.window.start[x]);
  part.window.length[y] = std::min(block_rows_, height_ - part.window.start[y]);
  std::uint64_t page = block / blocks_per_page_;
  for (unsigned axis = y; axis-- > 0; page /= geometry_.shape[axis]) {
    part.window.start[axis] = page % geometry_.shape[axis];
    part.window.length[axis] = 1;
  }
  return part;
}

Status TiffView::read_part(const TiffLayout::Part& part, MutableBytes into, const engine::Stop& stop) {
  if (!layout_.is_tiled()) return volume_.read_window(image_, part.window, part.offset, into, stop);
  const unsigned x = layout_.geometry().rank - 1;
  const geometry::PaddedBox tile{
      .rank = 2,
      .length = {layout_.tile_rows(), layout_.tile_row_bytes()},
      .inside = {part.window.length[x - 1], part.window.length[x] * layout_.geometry().sample_bytes()}};
  return geometry::read_padded(tile, part.offset, into, [&](std::uint64_t first, MutableBytes inside) {
    return volume_.read_window(image_, part.window, first, inside, stop);
  });
}

Result<std::size_t> TiffView::read(std::uint64_t offset, MutableBytes into, const engine::Stop& stop) {
  if (offset >= size_bytes()) return std::size_t{0};
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), size_bytes() - offset)));
  const std::size_t total = into.size();
  if (offset < layout_.data_offset()) {
    const std::size_t head =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), layout_.data_offset() - offset));
    layout_.fill_head(offset, into.first(head));
    into = into.subspan(head);
    offset += head;
  }
  while (!into.empty()) {
    const TiffLayout::Part part = layout_.part_at(offset - layout_.data_offset());
    const std::size_t piece = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), part.bytes));
    MDFS_TRY(read_part(part, into.first(piece), stop));
    into = into.subspan(piece);
    offset += piece;
  }
  return total;
}

}  // namespace mdfs::views
