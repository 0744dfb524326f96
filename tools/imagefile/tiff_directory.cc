// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_directory.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kMaxFields = 65535, kMaxSamples = 65535;
constexpr std::uint64_t kClassic = 42, kBig = 43;

enum Tag : std::uint64_t {
  kWidth = 256,
  kLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kFillOrder = 266,
  kDescription = 270,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kXResolution = 282,
  kYResolution = 283,
  kPlanarConfiguration = 284,
  kResolutionUnit = 296,
  kPredictor = 317,
  kColorMap = 320,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kSampleFormat = 339,
  kImageDepth = 32997,
  kTileDepth = 32998,
};
constexpr std::uint64_t kUncompressed = 1, kPalette = 3, kInks = 5, kSeparatePlanes = 2, kYcbcr = 6;

// Bytes of one value by the number of its type; 0: a type that is not known, whose field is passed over.
constexpr std::array<std::uint64_t, 19> kTypeBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};

// The fewest bytes that a chunk must have.
struct LeastBytes {
  std::uint64_t each = 1;  // 1 where the samples are compressed
  std::uint64_t last = 1;  // of the lowest chunk, which may be shorter
};

Result<std::vector<std::uint64_t>> read_values(ByteSource& bytes, const TiffField& field, std::uint64_t first,
                                               std::uint64_t count, bool big_endian) {
  const auto width = static_cast<std::size_t>(field.value_bytes);
  ByteVector raw(static_cast<std::size_t>(count) * width);
  MDFS_TRY(bytes.read_at(field.at + first * width, raw));
  std::vector<std::uint64_t> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < raw.size(); at += width)
    values.push_back(to_integer(ConstBytes(raw).subspan(at, width), big_endian));
  return values;
}

class Walk {
 public:
  Walk(ByteSource& bytes, const std::string& name) : bytes_(bytes), name_(name) {}
  Walk(ByteSource& bytes, const std::string& name, const TiffFile& file, std::uint64_t page)
      : bytes_(bytes), name_(name), big_endian_(file.big_endian), wide_(file.wide) {
    file_.pages = page;
  }

  Result<TiffLayout> layout_of_page(std::uint64_t directory) {
    MDFS_TRY(read_fields(directory));
    return layout();
  }

  Result<TiffFile> run() {
    MDFS_TRY_ASSIGN(std::uint64_t at, header());
    std::unordered_set<std::uint64_t> seen;
    while (at != 0) {
      if (!seen.insert(at).second) return damaged("the directory of the next page is an earlier one");
      if (file_.pages == kMaxPages)
        return Error{Errc::kTooBig, fmt::format("{}: more than {} pages", name_, kMaxPages)};
      file_.directories.push_back(at);
      MDFS_TRY_ASSIGN(at, page(at));
      ++file_.pages;
    }
    if (file_.pages == 0) return Error{Errc::kBadData, name_ + ": TIFF without a page"};
    file_.big_endian = big_endian_;
    file_.wide = wide_;
    return file_;
  }

 private:
  Error damaged(const std::string& what) const {
    return Error{Errc::kBadData, fmt::format("{}: page {}: {}", name_, file_.pages, what)};
  }
  Error cut_short(const std::string& what, std::uint64_t end) const {
    return damaged(
        fmt::format("{} reaches to byte {}, the file has {}: it is truncated or damaged", what, end, bytes_.size()));
  }
  // Of what lies behind each other nothing is read twice; what overlaps is read a few times at most.
  Status spend(std::uint64_t bytes) {
    constexpr std::uint64_t kTimes = 4, kAlways = 1u << 20;
    spent_ += bytes;
    if (spent_ / kTimes <= bytes_.size() + kAlways) return {};
    return damaged("its directories lie over each other");
  }

  Result<std::uint64_t> number_at(std::uint64_t at, std::size_t width) {
    std::array<std::byte, 8> value{};
    const MutableBytes into = MutableBytes(value).first(width);
    MDFS_TRY(bytes_.read_at(at, into));
    return to_integer(into, big_endian_);
  }

  Result<std::uint64_t> header() {
    const Error short_header{Errc::kBadData, name_ + ": the file is truncated within the TIFF header"};
    if (bytes_.size() < 8) return short_header;
    std::array<std::byte, 2> order{};
    MDFS_TRY(bytes_.read_at(0, order));
    big_endian_ = order[0] == std::byte{'M'};
    MDFS_TRY_ASSIGN(const std::uint64_t version, number_at(2, 2));
    if (version == kClassic) return number_at(4, 4);
    if (bytes_.size() < 16) return short_header;
    MDFS_TRY_ASSIGN(const std::uint64_t width, number_at(4, 2));
    if (version != kBig || width != 8)
      return Error{Errc::kBadData, fmt::format("{}: TIFF version {} is unknown", name_, version)};
    wide_ = true;
    return number_at(8, 8);
  }

  // Reads one directory and checks what it points to. The place of the next one, 0 = none.
  Result<std::uint64_t> page(std::uint64_t at) {
    MDFS_TRY_ASSIGN(const std::uint64_t next, read_fields(at));
    MDFS_TRY(check_page());
    return next;
  }

  Result<std::uint64_t> read_fields(std::uint64_t at) {
    const auto [before, each, behind] = tiff_form(wide_);
    if (!inside(at, before, bytes_.size())) return cut_short("its directory", at + before);
    MDFS_TRY_ASSIGN(const std::uint64_t count, number_at(at, before));
    if (count == 0 || count > kMaxFields) return damaged(fmt::format("a directory of {} fields", count));
    const std::uint64_t length = before + count * each + behind;
    if (!inside(at, length, bytes_.size())) return cut_short("its directory", at + length);
    MDFS_TRY(spend(length));
    fields_.clear();
    for (std::uint64_t i = 0; i < count; ++i) MDFS_TRY(field(at + before + i * each));
    return number_at(at + before + count * each, behind);
  }

  Status field(std::uint64_t at) {
    MDFS_TRY_ASSIGN(const std::uint64_t tag, number_at(at, 2));
    MDFS_TRY_ASSIGN(const std::uint64_t type, number_at(at + 2, 2));
    const std::size_t width = tiff_form(wide_).offset;
    TiffField field;
    MDFS_TRY_ASSIGN(field.count, number_at(at + 4, width));
    if (type >= kTypeBytes.size() || kTypeBytes[type] == 0) return {};
    field.value_bytes = kTypeBytes[type];
    field.at = at + 4 + width;
    const auto length = checked_mul(field.count, field.value_bytes);
    if (!length || *length > width) {
      MDFS_TRY_ASSIGN(field.at, number_at(field.at, width));
      if (!length || !inside(field.at, *length, bytes_.size()))
        return damaged(fmt::format(
            "field {} of {} values at byte {} reaches beyond the {} bytes of the file: it is truncated or damaged", tag,
            field.count, field.at, bytes_.size()));
    }
    for (const auto& [known, there] : fields_)
      if (known == tag) return damaged(fmt::format("field {} is given twice", tag));
    if (is_used(tag)) fields_.emplace_back(tag, field);
    return {};
  }

  static bool is_used(std::uint64_t tag) {
    constexpr std::array kUsed = {kWidth,           kLength,
                                  kBitsPerSample,   kCompression,
                                  kPhotometric,     kFillOrder,
                                  kDescription,     kStripOffsets,
                                  kSamplesPerPixel, kRowsPerStrip,
                                  kStripByteCounts, kXResolution,
                                  kYResolution,     kPlanarConfiguration,
                                  kResolutionUnit,  kPredictor,
                                  kTileWidth,       kTileLength,
                                  kTileOffsets,     kTileByteCounts,
                                  kSampleFormat,    kImageDepth,
                                  kTileDepth,       kColorMap};
    return std::find(kUsed.begin(), kUsed.end(), tag) != kUsed.end();
  }

  const TiffField* find(std::uint64_t tag) const {
    for (const auto& [known, field] : fields_)
      if (known == tag) return &field;
    return nullptr;
  }
  // The first value of a field, or what it means that the field is not there.
  Result<std::uint64_t> value(std::uint64_t tag, std::uint64_t otherwise) {
    const TiffField* const field = find(tag);
    if (field == nullptr || field->count == 0) return otherwise;
    return number_at(field->at, static_cast<std::size_t>(field->value_bytes));
  }

  // 0 where there is no such number.
  Result<double> rational(std::uint64_t tag) {
    const TiffField* const field = find(tag);
    if (field == nullptr || field->count != 1 || field->value_bytes != 8) return 0.0;
    MDFS_TRY_ASSIGN(const std::uint64_t over, number_at(field->at, 4));
    MDFS_TRY_ASSIGN(const std::uint64_t under, number_at(field->at + 4, 4));
    return under == 0 ? 0.0 : static_cast<double>(over) / static_cast<double>(under);
  }

  Status check_page() {
    MDFS_TRY_ASSIGN(const std::uint64_t photometric, value(kPhotometric, 0));
    file_.palette = file_.palette || photometric == kPalette;
    if (file_.pages == 0) {
      file_.inks = photometric == kInks;
      MDFS_TRY(read_description());
      MDFS_TRY_ASSIGN(file_.samples, value(kSamplesPerPixel, 1));
      MDFS_TRY_ASSIGN(file_.resolution_unit, value(kResolutionUnit, 2));
      MDFS_TRY_ASSIGN(file_.x_resolution, rational(kXResolution));
      MDFS_TRY_ASSIGN(file_.y_resolution, rational(kYResolution));
    }
    MDFS_TRY_ASSIGN(const std::uint64_t planes, value(kImageDepth, 1));
    MDFS_TRY_ASSIGN(const std::uint64_t tile_planes, value(kTileDepth, 1));
    if (planes > 1 || tile_planes > 1)
      return Error{Errc::kNotSupported,
                   fmt::format("{}: page {} holds {} planes (ImageDepth); save each plane as a page", name_,
                               file_.pages, std::max(planes, tile_planes))};
    MDFS_TRY_ASSIGN(const TiffLayout found, layout());
    if (file_.pages == 0) file_.page_samples = checked_mul(found.width * found.length, found.samples).value_or(0);
    return check_chunks(found);
  }

  Status read_description() {
    const TiffField* const field = find(kDescription);
    if (field == nullptr || field->value_bytes != 1) return {};
    ByteVector text(static_cast<std::size_t>(std::min<std::uint64_t>(field->count, kMaxDescriptionBytes)));
    MDFS_TRY(bytes_.read_at(field->at, text));
    file_.description = std::string(as_text(text).substr(0, as_text(text).find('\0')));
    return {};
  }

  // The value of a field that has one for each sample of a pixel; `uniform` becomes false if they differ.
  Result<std::uint64_t> common_value(std::uint64_t tag, std::uint64_t otherwise, bool& uniform) {
    const TiffField* const field = find(tag);
    if (field == nullptr || field->count == 0) return otherwise;
    const std::uint64_t count = std::min(field->count, kMaxSamples);
    MDFS_TRY_ASSIGN(const auto values, read_values(bytes_, *field, 0, count, big_endian_));
    for (const std::uint64_t one : values) uniform = uniform && one == values[0];
    return values[0];
  }

  Result<TiffLayout> layout() {
    TiffLayout found;
    MDFS_TRY_ASSIGN(found.width, value(kWidth, 0));
    MDFS_TRY_ASSIGN(found.length, value(kLength, 0));
    MDFS_TRY_ASSIGN(found.samples, value(kSamplesPerPixel, 1));
    MDFS_TRY_ASSIGN(found.bits, common_value(kBitsPerSample, 1, found.uniform));
    found.has_bits = find(kBitsPerSample) != nullptr;
    MDFS_TRY_ASSIGN(found.sample_format, common_value(kSampleFormat, 1, found.uniform));
    MDFS_TRY_ASSIGN(found.compression, value(kCompression, kUncompressed));
    MDFS_TRY_ASSIGN(found.predictor, value(kPredictor, 1));
    MDFS_TRY_ASSIGN(found.photometric, value(kPhotometric, 1));
    MDFS_TRY_ASSIGN(found.fill_order, value(kFillOrder, 1));
    MDFS_TRY_ASSIGN(const std::uint64_t planar, value(kPlanarConfiguration, 1));
    found.separate = planar == kSeparatePlanes && found.samples > 1;
    found.tiled = find(kTileOffsets) != nullptr || find(kTileWidth) != nullptr;
    MDFS_TRY_ASSIGN(found.across, found.tiled ? value(kTileWidth, 0) : Result<std::uint64_t>(found.width));
    MDFS_TRY_ASSIGN(found.down, found.tiled ? value(kTileLength, 0) : value(kRowsPerStrip, found.length));
    MDFS_TRY(measure(found));
    if (const TiffField* const colours = find(kColorMap)) found.colours = *colours;
    const TiffField* const offsets = find(found.tiled ? kTileOffsets : kStripOffsets);
    const TiffField* const counts = find(found.tiled ? kTileByteCounts : kStripByteCounts);
    const std::uint64_t many = std::min(offsets != nullptr ? offsets->count : 0, counts != nullptr ? counts->count : 0);
    if (many < found.chunks)
      return damaged(fmt::format("it has {} {}s of {}", many, found.tiled ? "tile" : "strip", found.chunks));
    if (many > found.chunks)  // another program may show samples in them
      return damaged(fmt::format("it has {} {}s, its {}x{} samples take {}", many, found.tiled ? "tile" : "strip",
                                 found.length, found.width, found.chunks));
    found.offsets = *offsets;
    found.counts = *counts;
    return found;
  }

  // Sets what follows from the lengths. Rows begin at whole bytes.
  Status measure(TiffLayout& found) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    const auto in_bounds = [](std::uint64_t number, std::uint64_t most) { return number > 0 && number <= most; };
    if (!in_bounds(found.width, kMost) || !in_bounds(found.length, kMost) || !in_bounds(found.across, kMost) ||
        found.down == 0 || !in_bounds(found.samples, kMaxSamples) || !in_bounds(found.bits, 64))
      return damaged(fmt::format("{}x{} samples of {} x {} bits in pieces of {}x{}", found.length, found.width,
                                 found.samples, found.bits, found.down, found.across));
    if (!found.tiled) found.down = std::min(found.down, found.length);
    found.chunks_across = ceil_div(found.width, found.across);
    found.chunks_down = ceil_div(found.length, found.down);
    const auto chunks = checked_mul(found.chunks_across * found.chunks_down, found.separate ? found.samples : 1);
    if (!chunks) return damaged("too many pieces");
    found.chunks = *chunks;
    found.row_bytes = ceil_div(found.across * (found.separate ? 1 : found.samples) * found.bits, 8);
    return checked_mul(found.row_bytes, found.down) ? Status() : damaged("its pieces are too large");
  }

  // Chroma may be there for fewer places than luma.
  static LeastBytes least_bytes(const TiffLayout& found) {
    if (found.compression != kUncompressed || found.photometric == kYcbcr) return {};
    const std::uint64_t last_rows = found.tiled ? found.down : (found.length - 1) % found.down + 1;
    return {found.row_bytes * found.down, found.row_bytes * last_rows};
  }

  Status check_chunks(const TiffLayout& found) {
    MDFS_TRY(spend(found.chunks * (found.offsets.value_bytes + found.counts.value_bytes)));
    const LeastBytes least = least_bytes(found);
    const std::uint64_t in_plane = found.chunks_across * found.chunks_down;
    for (std::uint64_t first = 0; first < found.chunks; first += kBatch) {
      const std::uint64_t batch = std::min(kBatch, found.chunks - first);
      MDFS_TRY_ASSIGN(const auto starts, read_values(bytes_, found.offsets, first, batch, big_endian_));
      MDFS_TRY_ASSIGN(const auto lengths, read_values(bytes_, found.counts, first, batch, big_endian_));
      for (std::uint64_t i = 0; i < batch; ++i) {
        const bool last = (first + i) % in_plane == in_plane - 1;
        MDFS_TRY(check_chunk(found.tiled ? "tile" : "strip", first + i, starts[i], lengths[i],
                             last ? least.last : least.each));
      }
    }
    return {};
  }

  Status check_chunk(const char* noun, std::uint64_t i, std::uint64_t at, std::uint64_t length,
                     std::uint64_t least) const {
    if (at == 0 || length < least)
      return damaged(fmt::format("{} {} has {} bytes; it must have at least {}", noun, i, at == 0 ? 0 : length, least));
    if (!inside(at, length, bytes_.size()))
      return damaged(fmt::format(
          "{} {} of {} bytes at byte {} reaches beyond the {} bytes of the file: it is truncated or damaged", noun, i,
          length, at, bytes_.size()));
    return {};
  }

  static constexpr std::uint64_t kBatch = 4096;

  ByteSource& bytes_;
  const std::string& name_;
  bool big_endian_ = false;
  bool wide_ = false;
  std::vector<std::pair<std::uint64_t, TiffField>> fields_;  // of the page, those that are used
  std::uint64_t spent_ = 0;
  TiffFile file_;
};

}  // namespace

bool is_tiff(ConstBytes start) {
  if (start.size() < 4) return false;
  const std::string_view text = as_text(start.first(4));
  return text == std::string_view("II*\0", 4) || text == std::string_view("MM\0*", 4) ||
         text == std::string_view("II+\0", 4) || text == std::string_view("MM\0+", 4);
}

Result<TiffFile> parse_tiff(ByteSource& bytes, const std::string& name) { return Walk(bytes, name).run(); }

Result<TiffLayout> read_tiff_layout(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                    const std::string& name) {
  MDFS_CHECK(page < file.directories.size());
  return Walk(bytes, name, file, page).layout_of_page(file.directories[static_cast<std::size_t>(page)]);
}

// The highest byte is the colour for writers that scale by 256 and for those that scale by 257. Old ones stored 8 bits,
// which the tools of libtiff recognize in the same way.
Result<ByteVector> read_tiff_palette(ByteSource& bytes, const TiffFile& file, const TiffLayout& layout) {
  MDFS_TRY_ASSIGN(const auto values, read_values(bytes, layout.colours, 0, layout.colours.count, file.big_endian));
  const bool is_short = std::all_of(values.begin(), values.end(), [](std::uint64_t value) { return value < 256; });
  const std::size_t colours = values.size() / 3;
  ByteVector palette(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    palette[i % colours * 3 + i / colours] = static_cast<std::byte>(is_short ? values[i] : values[i] >> 8);
  return palette;
}

Result<std::vector<TiffChunk>> read_tiff_chunks(ByteSource& bytes, const TiffFile& file, const TiffLayout& layout,
                                                std::uint64_t first, std::uint64_t count) {
  MDFS_CHECK(inside(first, count, layout.chunks));
  MDFS_TRY_ASSIGN(const auto starts, read_values(bytes, layout.offsets, first, count, file.big_endian));
  MDFS_TRY_ASSIGN(const auto lengths, read_values(bytes, layout.counts, first, count, file.big_endian));
  std::vector<TiffChunk> chunks(starts.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i] = {starts[i], lengths[i]};
    if (!inside(starts[i], lengths[i], bytes.size()))
      return Error{Errc::kBadData, "the file has changed while it was read"};
  }
  return chunks;
}

namespace {

// Those that `wants` takes, of a tag and a number of bytes.
template <typename Wants>
Result<std::vector<TiffValues>> read_values(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                            const Wants& wants) {
  const TiffForm form = tiff_form(file.wide);
  const auto number = [&](std::uint64_t at, std::size_t length) -> Result<std::uint64_t> {
    std::array<std::byte, 8> value{};
    if (!inside(at, length, bytes.size())) return std::uint64_t{0};
    MDFS_TRY(bytes.read_at(at, MutableBytes(value).first(length)));
    return to_integer(MutableBytes(value).first(length), file.big_endian);
  };
  std::vector<TiffValues> found;
  const std::uint64_t directory = file.directories.at(page);
  MDFS_TRY_ASSIGN(const std::uint64_t fields, number(directory, form.count));
  for (std::uint64_t i = 0; i < std::min(fields, kMaxFields); ++i) {
    const std::uint64_t at = directory + form.count + i * form.field;
    TiffValues values;
    MDFS_TRY_ASSIGN(const std::uint64_t tag, number(at, 2));
    MDFS_TRY_ASSIGN(const std::uint64_t type, number(at + 2, 2));
    MDFS_TRY_ASSIGN(values.count, number(at + 4, form.offset));
    if (type >= kTypeBytes.size()) continue;
    const auto length = checked_mul(values.count, kTypeBytes[type]);
    if (!length || *length == 0 || !wants(tag, *length)) continue;
    std::uint64_t place = at + 4 + form.offset;
    if (*length > form.offset) {
      MDFS_TRY_ASSIGN(place, number(place, form.offset));
    }
    if (!inside(place, *length, bytes.size())) continue;
    values.tag = static_cast<std::uint16_t>(tag);
    values.type = static_cast<std::uint16_t>(type);
    values.bytes.resize(static_cast<std::size_t>(*length));
    MDFS_TRY(bytes.read_at(place, values.bytes));
    constexpr std::uint64_t kRational = 5, kSignedRational = 10;  // two numbers of four bytes
    const std::uint64_t element = type == kRational || type == kSignedRational ? 4 : kTypeBytes[type];
    if (file.big_endian)
      for (auto one = values.bytes.begin(); one != values.bytes.end(); one += static_cast<std::ptrdiff_t>(element))
        std::reverse(one, one + static_cast<std::ptrdiff_t>(element));
    found.push_back(std::move(values));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; });
  return found;
}

}  // namespace

Result<std::vector<TiffValues>> read_tiff_values(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                                 std::span<const std::uint16_t> tags) {
  return read_values(bytes, file, page, [&](std::uint64_t tag, std::uint64_t) {
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  });
}

Result<std::vector<TiffValues>> read_all_tiff_values(ByteSource& bytes, const TiffFile& file, std::uint64_t page,
                                                     std::uint64_t most) {
  return read_values(bytes, file, page, [&](std::uint64_t, std::uint64_t length) { return length <= most; });
}

}  // namespace mdfs::imagefile
