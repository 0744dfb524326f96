// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/checked.h"
#include "imagefile/band_source.h"
#include "imagefile/chunk_stream.h"
#include "imagefile/packed.h"
#include "imagefile/picture_end.h"
#include "support/text.h"

namespace mdfs::imagefile {
namespace {

using geometry::ElementType;

constexpr std::uint64_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgbColour = 2, kPaletteColour = 3, kMask = 4,
                        kSeparated = 5, kYcbcrColour = 6, kColorFilter = 32803, kLinearRaw = 34892;
constexpr std::uint64_t kUnsignedFormat = 1, kSignedFormat = 2, kFloatFormat = 3, kUndefinedFormat = 4;
constexpr std::uint64_t kNoPredictor = 1, kHorizontal = 2, kFloatingPoint = 3;
constexpr std::uint64_t kUncompressedNumber = 1, kJpegCompression = 7;
constexpr std::uint64_t kHighestBitFirst = 1, kLowestBitFirst = 2;
constexpr std::uint64_t kStripBandBytes = 1u << 20, kMaxBandBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxPlanes = 1024;
constexpr std::uint64_t kChunksAtOnce = 4096;  // whose places are read together

// OpenImageIO spreads samples of other widths over the range of the next wider type.
bool is_spread(std::uint64_t bits) { return bits < 8 || (bits > 8 && bits < 16); }

std::optional<ElementType> type_of(const TiffLayout& layout) {
  const bool whole = layout.bits == 8 || layout.bits == 16 || layout.bits == 32 || layout.bits == 64;
  if (layout.sample_format == kUnsignedFormat || layout.sample_format == kUndefinedFormat) {
    if (layout.bits <= 8) return ElementType::kU8;
    if (layout.bits <= 16) return ElementType::kU16;
    if (layout.bits == 32) return ElementType::kU32;
    if (layout.bits == 64) return ElementType::kU64;
  } else if (layout.sample_format == kSignedFormat && whole) {
    if (layout.bits == 8) return ElementType::kI8;
    if (layout.bits == 16) return ElementType::kI16;
    return layout.bits == 32 ? ElementType::kI32 : ElementType::kI64;
  } else if (layout.sample_format == kFloatFormat && whole && layout.bits > 8) {
    if (layout.bits == 16) return ElementType::kF16;
    return layout.bits == 32 ? ElementType::kF32 : ElementType::kF64;
  }
  return std::nullopt;
}

bool is_unsigned(ElementType type) {
  return type == ElementType::kU8 || type == ElementType::kU16 || type == ElementType::kU32 ||
         type == ElementType::kU64;
}

bool has_predictor(TiffCompression compression) {
  return compression != TiffCompression::kNone && compression != TiffCompression::kPackBits;
}

// Bits that are reversed within a compressed stream are not decoded.
bool has_known_fill_order(const TiffLayout& layout) {
  return layout.fill_order == kHighestBitFirst ||
         (layout.fill_order == kLowestBitFirst && layout.compression == kUncompressedNumber);
}

bool is_known_predictor(const TiffLayout& layout) {
  if (!has_predictor(TiffCompression{layout.compression}) || layout.predictor == kNoPredictor) return true;
  if (layout.predictor == kHorizontal) return !is_spread(layout.bits);
  return layout.predictor == kFloatingPoint && layout.sample_format == kFloatFormat;
}

// What a chunk's error is called. Errors of the file itself have its name already.
Status name_chunk(const Status& status, const std::string& name, std::uint64_t page, bool tiled, std::uint64_t chunk) {
  if (status.ok() || status.error().where.starts_with(name)) return status;
  return {status.error().code,
          fmt::format("{}: page {}: {} {}: {}", name, page, tiled ? "tile" : "strip", chunk, status.error().where)};
}

// One strip or tile of which all bytes are asked for.
class Chunk {
 public:
  Chunk(TiffCompression compression, ByteSource& bytes, TiffChunk where)
      : compression_(compression), stream_(open_chunk(compression, bytes, where.at, where.length)) {}

  Status read(MutableBytes into) {
    MDFS_TRY_ASSIGN(const std::size_t got, stream_->read(into));
    read_ += got;
    if (got == into.size()) return {};
    return {Errc::kBadData, fmt::format("it has {} bytes of samples and requires more", read_)};
  }

  // What follows the samples is padding of at most `slack` bytes. Uncompressed chunks may be longer.
  Status finish(std::uint64_t slack) {
    if (compression_ == TiffCompression::kNone) return {};
    ByteVector rest(4096);
    for (std::uint64_t more = 0;;) {
      MDFS_TRY_ASSIGN(const std::size_t got, stream_->read(rest));
      more += got;
      if (more > slack) return {Errc::kBadData, fmt::format("it has more than its {} bytes of samples", read_)};
      if (got < rest.size()) return {};
    }
  }

 private:
  TiffCompression compression_;
  std::unique_ptr<ChunkStream> stream_;
  std::uint64_t read_ = 0;
};

// ---- predictors, TIFF 6.0 section 14 and TIFF Technical Note 3

template <typename Number>
void add_neighbours(MutableBytes row, std::size_t stride) {
  const std::size_t count = row.size() / sizeof(Number);
  const auto at = [&](std::size_t i) { return row.data() + i * sizeof(Number); };
  for (std::size_t i = stride; i < count; ++i) {
    Number before, here;
    std::memcpy(&before, at(i - stride), sizeof(Number));
    std::memcpy(&here, at(i), sizeof(Number));
    here = static_cast<Number>(here + before);
    std::memcpy(at(i), &here, sizeof(Number));
  }
}

void undo_horizontal(MutableBytes row, unsigned element, std::size_t stride) {
  if (element == 1) return add_neighbours<std::uint8_t>(row, stride);
  if (element == 2) return add_neighbours<std::uint16_t>(row, stride);
  if (element == 4) return add_neighbours<std::uint32_t>(row, stride);
  add_neighbours<std::uint64_t>(row, stride);
}

// The highest bytes of all samples come first, each the difference to that of the sample before.
void undo_floating_point(MutableBytes row, unsigned element, std::size_t stride, ByteVector& scratch) {
  add_neighbours<std::uint8_t>(row, stride);
  scratch.assign(row.begin(), row.end());
  const std::size_t count = row.size() / element;
  for (std::size_t i = 0; i < count; ++i)
    for (unsigned byte = 0; byte < element; ++byte) row[i * element + byte] = scratch[(element - 1 - byte) * count + i];
}

void reverse_bits(MutableBytes bytes) {
  for (std::byte& byte : bytes) {
    byte = (byte & std::byte{0x0f}) << 4 | byte >> 4;
    byte = (byte & std::byte{0x33}) << 2 | (byte >> 2 & std::byte{0x33});
    byte = (byte & std::byte{0x55}) << 1 | (byte >> 1 & std::byte{0x55});
  }
}

// Samples of fewer bits, the highest bit first, to those of `element` bytes; the highest one becomes `range`.
void spread_bits(ConstBytes packed, std::uint64_t bits, unsigned element, unsigned range, MutableBytes into) {
  const unsigned highest = (1u << bits) - 1;
  unsigned buffer = 0, there = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < into.size(); i += element) {
    for (; there < bits; there += 8) buffer = buffer << 8 | std::to_integer<unsigned>(packed[at++]);
    there -= static_cast<unsigned>(bits);
    const unsigned value = (buffer >> there & highest) * range / highest;
    into[i] = static_cast<std::byte>(value);
    if (element == 2) into[i + 1] = static_cast<std::byte>(value >> 8);
  }
}

class TiffSource final : public BandSource {
 public:
  TiffSource(tools::File file, std::uint64_t size, TiffFile tiff, ArrayInfo array, std::uint64_t first_page)
      : file_(std::move(file)),
        bytes_(file_, size),
        tiff_(std::move(tiff)),
        array_(std::move(array)),
        element_(geometry::element_bytes(array_.type)),
        page_(first_page) {}

  const ArrayInfo& array() const override { return array_; }

 private:
  struct Plane {
    std::optional<Chunk> strip;
    std::uint64_t number = 0;     // of the strip in the page
    std::uint64_t rows_left = 0;  // of the strip
    std::uint64_t padding = 0;    // rows that the strip may have beyond
  };

  std::uint64_t planes() const { return layout_.separate ? layout_.samples : 1; }
  std::uint64_t samples_of_chunk() const { return layout_.separate ? 1 : layout_.samples; }
  std::size_t pixel_bytes() const {
    return has_palette(layout_) ? 3 : static_cast<std::size_t>(layout_.samples) * element_;
  }
  // Of a sample of a chunk, which may be the index of a colour.
  unsigned sample_bytes() const {
    if (!has_palette(layout_)) return element_;
    return layout_.bits > 8 ? 2 : 1;
  }

  Status next_band() override {
    if (!open_ || row_ == layout_.length) MDFS_TRY(next_page());
    const std::uint64_t page_row = layout_.width * pixel_bytes();
    const std::uint64_t wanted = layout_.tiled ? layout_.down : std::max<std::uint64_t>(1, kStripBandBytes / page_row);
    const std::uint64_t rows = std::min(wanted, layout_.length - row_);
    const auto bytes = checked_mul(rows, page_row);
    if (!bytes || *bytes > kMaxBandBytes || layout_.row_bytes > kMaxBandBytes || planes() > kMaxPlanes)
      return {Errc::kTooBig, fmt::format("{}: page {}: {} rows of {} planes take more than {}", file_.name(), page_,
                                         rows, planes(), tools::format_size(kMaxBandBytes))};
    band_.resize(static_cast<std::size_t>(*bytes));
    for (std::uint64_t plane = 0; plane < planes(); ++plane)
      MDFS_TRY(layout_.tiled ? read_tiles(plane, rows) : read_strips(plane, rows));
    if (layout_.photometric == kWhiteIsZero && is_unsigned(array_.type))
      for (std::byte& sample : band_) sample = ~sample;
    row_ += rows;
    return {};
  }

  Status next_page() {
    if (open_) ++page_;
    MDFS_TRY_ASSIGN(layout_, read_tiff_layout(bytes_, tiff_, page_, file_.name()));
    open_ = true;
    row_ = 0;
    if (has_palette(layout_)) {
      MDFS_TRY_ASSIGN(palette_, read_tiff_palette(bytes_, tiff_, layout_));
    }
    planes_.clear();
    planes_.resize(static_cast<std::size_t>(layout_.tiled ? 0 : planes()));
    chunks_.clear();
    return {};
  }

  Status named(const Status& status, std::uint64_t chunk) const {
    return name_chunk(status, file_.name(), page_, layout_.tiled, chunk);
  }

  // Where a chunk lies; the lists of them are read in batches.
  Result<TiffChunk> find_chunk(std::uint64_t number) {
    if (number < first_chunk_ || number - first_chunk_ >= chunks_.size()) {
      MDFS_TRY_ASSIGN(
          chunks_, read_tiff_chunks(bytes_, tiff_, layout_, number, std::min(kChunksAtOnce, layout_.chunks - number)));
      first_chunk_ = number;
    }
    return chunks_[static_cast<std::size_t>(number - first_chunk_)];
  }

  Result<Chunk> open(std::uint64_t number) {
    MDFS_TRY_ASSIGN(const TiffChunk where, find_chunk(number));
    return Chunk(TiffCompression{layout_.compression}, bytes_, where);
  }

  Status read_strips(std::uint64_t plane, std::uint64_t rows) {
    Plane& state = planes_[static_cast<std::size_t>(plane)];
    row_bytes_.resize(static_cast<std::size_t>(layout_.row_bytes));
    for (std::uint64_t i = 0; i < rows; ++i) {
      if (state.rows_left == 0) MDFS_TRY(open_strip(plane, row_ + i, state));
      MDFS_TRY(named(state.strip->read(row_bytes_), state.number));
      if (--state.rows_left == 0) MDFS_TRY(named(state.strip->finish(state.padding * layout_.row_bytes), state.number));
      put_row(plane, i, 0, decoded_row());
    }
    return {};
  }

  Status open_strip(std::uint64_t plane, std::uint64_t row, Plane& state) {
    state.number = plane * layout_.chunks_down + row / layout_.down;
    state.rows_left = std::min(layout_.down, layout_.length - row);
    state.padding = layout_.down - state.rows_left;
    MDFS_TRY_ASSIGN(Chunk strip, open(state.number));
    state.strip.emplace(std::move(strip));
    return {};
  }

  Status read_tiles(std::uint64_t plane, std::uint64_t rows) {
    row_bytes_.resize(static_cast<std::size_t>(layout_.row_bytes));
    const std::uint64_t first = (plane * layout_.chunks_down + row_ / layout_.down) * layout_.chunks_across;
    for (std::uint64_t i = 0; i < layout_.chunks_across; ++i) {
      MDFS_TRY_ASSIGN(Chunk tile, open(first + i));
      for (std::uint64_t row = 0; row < layout_.down; ++row) {
        MDFS_TRY(named(tile.read(row_bytes_), first + i));
        if (row >= rows) continue;
        put_row(plane, row, i * layout_.across, decoded_row());
      }
      MDFS_TRY(named(tile.finish(0), first + i));
    }
    return {};
  }

  // Makes canonical samples of row_bytes_.
  ConstBytes decoded_row() {
    const ConstBytes row = unpacked_row();
    if (!has_palette(layout_)) return row;
    const std::size_t width = sample_bytes();
    colours_.resize(row.size() / width * 3);
    for (std::size_t i = 0; i < row.size() / width; ++i) {
      const std::uint64_t index =
          width == 1 ? std::to_integer<std::uint64_t>(row[i]) : to_integer(row.subspan(i * width, width), false);
      std::copy_n(palette_.begin() + static_cast<std::ptrdiff_t>(index) * 3, 3,
                  colours_.begin() + static_cast<std::ptrdiff_t>(i) * 3);
    }
    return colours_;
  }

  // Makes samples, or indices of a palette.
  ConstBytes unpacked_row() {
    const auto stride = static_cast<std::size_t>(samples_of_chunk());
    const unsigned element = sample_bytes();
    if (layout_.fill_order == kLowestBitFirst) reverse_bits(row_bytes_);
    if (is_spread(layout_.bits)) {
      const unsigned range = has_palette(layout_) ? (1u << layout_.bits) - 1 : element == 1 ? 0xff : 0xffff;
      spread_.resize(static_cast<std::size_t>(layout_.across) * stride * element);
      spread_bits(row_bytes_, layout_.bits, element, range, spread_);
      return spread_;
    }
    const std::uint64_t predictor =
        has_predictor(TiffCompression{layout_.compression}) ? layout_.predictor : kNoPredictor;
    if (predictor == kFloatingPoint) {
      undo_floating_point(row_bytes_, element, stride, scratch_);
      return row_bytes_;
    }
    if (tiff_.big_endian && element > 1) swap_elements(row_bytes_, element);
    if (predictor == kHorizontal) undo_horizontal(row_bytes_, element, stride);
    return row_bytes_;
  }

  // Puts the row of a chunk that begins at `column` into the band; a tile may reach beyond the page.
  void put_row(std::uint64_t plane, std::uint64_t row, std::uint64_t column, ConstBytes from) {
    const std::uint64_t columns = std::min(layout_.across, layout_.width - column);
    const auto begin = static_cast<std::size_t>((row * layout_.width + column) * pixel_bytes());
    if (!layout_.separate) {
      std::copy_n(from.begin(), static_cast<std::ptrdiff_t>(columns * pixel_bytes()),
                  band_.begin() + static_cast<std::ptrdiff_t>(begin));
      return;
    }
    std::byte* into = band_.data() + begin + plane * element_;
    for (std::uint64_t i = 0; i < columns; ++i, into += pixel_bytes())
      std::memcpy(into, from.data() + i * element_, element_);
  }

  tools::File file_;
  FileBytes bytes_;
  const TiffFile tiff_;
  const ArrayInfo array_;
  const unsigned element_;
  std::uint64_t page_;
  bool open_ = false;  // layout_ is that of page_
  TiffLayout layout_;
  std::uint64_t row_ = 0;
  std::vector<Plane> planes_;  // of strips
  std::vector<TiffChunk> chunks_;
  std::uint64_t first_chunk_ = 0;
  ByteVector row_bytes_, spread_, scratch_, palette_, colours_;
};

// A part of a file as a file.
class PartOfBytes final : public ByteSource {
 public:
  PartOfBytes(ByteSource& whole, TiffChunk where) : whole_(whole), where_(where) {}
  std::uint64_t size() const override { return where_.length; }
  Status read_at(std::uint64_t offset, MutableBytes into) override {
    MDFS_CHECK(inside(offset, into.size(), where_.length));
    return whole_.read_at(where_.at + offset, into);
  }

 private:
  ByteSource& whole_;
  const TiffChunk where_;
};

Status verify_chunk(ByteSource& bytes, const TiffLayout& layout, std::uint64_t number, TiffChunk where) {
  if (layout.compression == kJpegCompression) {
    PartOfBytes part(bytes, where);
    return check_jpeg(part, "it");
  }
  const std::uint64_t row = number / layout.chunks_across % layout.chunks_down * layout.down;
  const std::uint64_t rows = layout.tiled ? layout.down : std::min(layout.down, layout.length - row);
  Chunk chunk(TiffCompression{layout.compression}, bytes, where);
  // Chroma may be there for fewer places than luma.
  if (layout.photometric == kYcbcrColour) return chunk.finish(layout.row_bytes * layout.down);
  ByteVector samples(static_cast<std::size_t>(layout.row_bytes));
  for (std::uint64_t i = 0; i < rows; ++i) MDFS_TRY(chunk.read(samples));
  return chunk.finish((layout.down - rows) * layout.row_bytes);
}

}  // namespace

bool holds_long_integers(const TiffLayout& layout) {
  const std::uint64_t format = layout.sample_format;
  return layout.bits > 32 && (format == kUnsignedFormat || format == kSignedFormat || format == kUndefinedFormat);
}

bool is_plain_tiff(const TiffLayout& layout, ElementType type, std::uint64_t channels) {
  if (has_palette(layout)) return check_tiff_palette(layout).ok() && type == ElementType::kU8 && channels == 3;
  constexpr std::uint64_t kPhotometrics[] = {kWhiteIsZero, kBlackIsZero, kRgbColour, kMask,
                                             kSeparated,   kColorFilter, kLinearRaw};
  return layout.uniform && layout.samples == channels && type_of(layout) == type && has_known_fill_order(layout) &&
         is_known_compression(layout.compression) && is_known_predictor(layout) &&
         std::find(std::begin(kPhotometrics), std::end(kPhotometrics), layout.photometric) != std::end(kPhotometrics);
}

bool has_palette(const TiffLayout& layout) { return layout.photometric == kPaletteColour; }

Status check_tiff_palette(const TiffLayout& layout) {
  const auto refused = [](std::string_view field, std::uint64_t value, std::string_view allowed) -> Status {
    return {Errc::kNotSupported,
            fmt::format("a palette with {} {}; allowed are {}; convert the file to RGB", field, value, allowed)};
  };
  if (layout.samples != 1) return refused("SamplesPerPixel", layout.samples, "indices alone, SamplesPerPixel 1");
  if (layout.bits > 8 && layout.bits != 16) return refused("BitsPerSample", layout.bits, "1 to 8 and 16");
  if (!layout.uniform)
    return {Errc::kNotSupported, "a palette with several values of BitsPerSample or SampleFormat; one is allowed"};
  if (layout.sample_format != kUnsignedFormat && layout.sample_format != kUndefinedFormat)
    return refused("SampleFormat", layout.sample_format, "1 and 4");
  if (!is_known_compression(layout.compression))
    return refused("Compression", layout.compression, "LZW, PackBits, deflate, LZMA, zstd and none");
  if (!has_known_fill_order(layout)) return refused("FillOrder", layout.fill_order, "1, and 2 in uncompressed samples");
  if (!is_known_predictor(layout)) return refused("Predictor", layout.predictor, "1, and 2 for 8 and 16 bits");
  const TiffField& colours = layout.colours;
  const std::uint64_t required = std::uint64_t{3} << layout.bits;
  if (colours.count == required && colours.value_bytes == 2) return {};
  return {Errc::kBadData, colours.count == 0
                              ? fmt::format("a palette without ColorMap; it must have {} values of 16 bits", required)
                              : fmt::format("a palette with a ColorMap of {} values of {} bits; it must have {} of 16",
                                            colours.count, colours.value_bytes * 8, required)};
}

std::unique_ptr<ImageSource> open_tiff_samples(tools::File file, std::uint64_t size_bytes, TiffFile tiff,
                                               ArrayInfo array, std::uint64_t first_page) {
  return std::make_unique<TiffSource>(std::move(file), size_bytes, std::move(tiff), std::move(array), first_page);
}

Status verify_tiff_page(ByteSource& bytes, const TiffFile& tiff, std::uint64_t page, const std::string& name) {
  MDFS_TRY_ASSIGN(const TiffLayout layout, read_tiff_layout(bytes, tiff, page, name));
  if (layout.compression != kJpegCompression && !is_known_compression(layout.compression))
    return {Errc::kNotSupported,
            fmt::format("{}: page {}: TIFF compression {}, whose damage cannot be found; convert the file to TIFF with "
                        "deflate",
                        name, page, layout.compression)};
  if (!layout.has_bits || (layout.fill_order != 1 && layout.compression != kUncompressedNumber))
    return {Errc::kNotSupported, fmt::format("{}: page {}: a TIFF layout with {}", name, page,
                                             layout.has_bits ? "the lowest bit first" : "no width of its samples")};
  if (layout.row_bytes > kMaxBandBytes)
    return {Errc::kTooBig, fmt::format("{}: page {}: the rows have {}; at most {} are read at once", name, page,
                                       tools::format_size(layout.row_bytes), tools::format_size(kMaxBandBytes))};
  for (std::uint64_t first = 0; first < layout.chunks; first += kChunksAtOnce) {
    const std::uint64_t batch = std::min(kChunksAtOnce, layout.chunks - first);
    MDFS_TRY_ASSIGN(const auto chunks, read_tiff_chunks(bytes, tiff, layout, first, batch));
    for (std::uint64_t i = 0; i < batch; ++i) {
      const Status status = verify_chunk(bytes, layout, first + i, chunks[static_cast<std::size_t>(i)]);
      MDFS_TRY(name_chunk(status, name, page, layout.tiled, first + i));
    }
  }
  return {};
}

}  // namespace mdfs::imagefile
