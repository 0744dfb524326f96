// SPDX-License-Identifier: Apache-2.0
#include "imagefile/tiff_directory.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <unordered_set>
#include <vector>

namespace mdfs::imagefile {
namespace {

constexpr std::uint64_t kMaxFields = 65535;
constexpr std::uint64_t kClassic = 42, kBig = 43;

enum Tag : std::uint64_t {
  kWidth = 256,
  kLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kDescription = 270,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kXResolution = 282,
  kYResolution = 283,
  kPlanarConfiguration = 284,
  kResolutionUnit = 296,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
};
constexpr std::uint64_t kUncompressed = 1, kPalette = 3, kInks = 5, kSeparatePlanes = 2, kYcbcr = 6;

// Bytes of one value by the number of its type; 0: a type that is not known, whose field is passed over.
constexpr std::array<std::uint64_t, 19> kTypeBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};

struct Field {
  std::uint64_t value_bytes = 0;  // of one value
  std::uint64_t count = 0;
  std::uint64_t at = 0;  // where the first value lies in the file
};

// What a page's samples are, as far as it says where they must lie.
struct Layout {
  std::uint64_t chunks = 0;
  std::uint64_t least_bytes = 0;       // of a chunk; 1 where the samples are compressed
  std::uint64_t least_last_bytes = 0;  // of the lowest chunk, which may be shorter
  std::uint64_t chunks_of_plane = 1;
  bool tiled = false;
};

class Walk {
 public:
  Walk(ByteSource& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<TiffFile> run() {
    MDFS_TRY_ASSIGN(std::uint64_t at, header());
    std::unordered_set<std::uint64_t> seen;
    while (at != 0) {
      if (!seen.insert(at).second) return damaged("the directory of the next page is an earlier one");
      if (file_.pages == kMaxPages)
        return Error{Errc::kTooBig, fmt::format("{}: more than {} pages", name_, kMaxPages)};
      MDFS_TRY_ASSIGN(at, page(at));
      ++file_.pages;
    }
    if (file_.pages == 0) return Error{Errc::kBadData, name_ + ": TIFF without a page"};
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
    const std::uint64_t before = wide_ ? 8 : 2, each = wide_ ? 20 : 12, behind = wide_ ? 8 : 4;
    if (!inside(at, before, bytes_.size())) return cut_short("its directory", at + before);
    MDFS_TRY_ASSIGN(const std::uint64_t count, number_at(at, before));
    if (count == 0 || count > kMaxFields) return damaged(fmt::format("a directory of {} fields", count));
    const std::uint64_t length = before + count * each + behind;
    if (!inside(at, length, bytes_.size())) return cut_short("its directory", at + length);
    MDFS_TRY(spend(length));
    fields_.clear();
    for (std::uint64_t i = 0; i < count; ++i) MDFS_TRY(field(at + before + i * each));
    MDFS_TRY(check_page());
    return number_at(at + before + count * each, behind);
  }

  Status field(std::uint64_t at) {
    MDFS_TRY_ASSIGN(const std::uint64_t tag, number_at(at, 2));
    MDFS_TRY_ASSIGN(const std::uint64_t type, number_at(at + 2, 2));
    const std::size_t width = wide_ ? 8 : 4;
    Field field;
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
    constexpr std::array kUsed = {
        kXResolution,     kYResolution,         kResolutionUnit, kWidth,        kLength,          kBitsPerSample,
        kCompression,     kPhotometric,         kDescription,    kStripOffsets, kSamplesPerPixel, kRowsPerStrip,
        kStripByteCounts, kPlanarConfiguration, kTileWidth,      kTileLength,   kTileOffsets,     kTileByteCounts};
    return std::find(kUsed.begin(), kUsed.end(), tag) != kUsed.end();
  }

  const Field* find(std::uint64_t tag) const {
    for (const auto& [known, field] : fields_)
      if (known == tag) return &field;
    return nullptr;
  }
  // The first value of a field, or what it means that the field is not there.
  Result<std::uint64_t> value(std::uint64_t tag, std::uint64_t otherwise) {
    const Field* const field = find(tag);
    if (field == nullptr || field->count == 0) return otherwise;
    return number_at(field->at, static_cast<std::size_t>(field->value_bytes));
  }

  // 0 where there is no such number.
  Result<double> rational(std::uint64_t tag) {
    const Field* const field = find(tag);
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
    MDFS_TRY_ASSIGN(const Layout layout, layout_of(photometric));
    return check_chunks(layout);
  }

  Status read_description() {
    const Field* const field = find(kDescription);
    if (field == nullptr || field->value_bytes != 1) return {};
    ByteVector text(static_cast<std::size_t>(std::min<std::uint64_t>(field->count, kMaxDescriptionBytes)));
    MDFS_TRY(bytes_.read_at(field->at, text));
    file_.description = std::string(as_text(text).substr(0, as_text(text).find('\0')));
    return {};
  }

  Result<Layout> layout_of(std::uint64_t photometric) {
    MDFS_TRY_ASSIGN(const std::uint64_t width, value(kWidth, 0));
    MDFS_TRY_ASSIGN(const std::uint64_t length, value(kLength, 0));
    MDFS_TRY_ASSIGN(const std::uint64_t samples, value(kSamplesPerPixel, 1));
    MDFS_TRY_ASSIGN(const std::uint64_t bits, value(kBitsPerSample, 1));
    MDFS_TRY_ASSIGN(const std::uint64_t compression, value(kCompression, kUncompressed));
    MDFS_TRY_ASSIGN(const std::uint64_t planar, value(kPlanarConfiguration, 1));
    Layout layout;
    layout.tiled = find(kTileOffsets) != nullptr || find(kTileWidth) != nullptr;
    MDFS_TRY_ASSIGN(const std::uint64_t across, layout.tiled ? value(kTileWidth, 0) : Result<std::uint64_t>(width));
    MDFS_TRY_ASSIGN(std::uint64_t down, layout.tiled ? value(kTileLength, 0) : value(kRowsPerStrip, length));
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    if (width == 0 || length == 0 || across == 0 || down == 0 || samples == 0 || bits == 0 || width > kMost ||
        length > kMost || across > kMost || samples > 65535 || bits > 64)
      return damaged(
          fmt::format("{}x{} samples of {} x {} bits in pieces of {}x{}", length, width, samples, bits, down, across));
    const std::uint64_t in_chunk = planar == kSeparatePlanes ? 1 : samples;
    const std::uint64_t last_rows = layout.tiled ? down : (length - 1) % down + 1;
    if (!layout.tiled) down = std::min(down, length);
    layout.chunks_of_plane = ceil_div(width, across) * ceil_div(length, down);
    const auto chunks = checked_mul(layout.chunks_of_plane, planar == kSeparatePlanes ? samples : 1);
    if (!chunks) return damaged("too many pieces");
    layout.chunks = *chunks;
    layout.least_bytes = layout.least_last_bytes = 1;
    // Rows begin at whole bytes. Chroma may be there for fewer places than luma.
    const auto row_bytes = checked_mul(across * in_chunk, bits);
    const bool plain = compression == kUncompressed && photometric != kYcbcr;
    if (!row_bytes || !checked_mul(*row_bytes, down)) return damaged("its pieces are too large");
    if (!plain) return layout;
    layout.least_bytes = ceil_div(*row_bytes, 8) * down;
    layout.least_last_bytes = ceil_div(*row_bytes, 8) * last_rows;
    return layout;
  }

  Status check_chunks(const Layout& layout) {
    const char* const noun = layout.tiled ? "tile" : "strip";
    const Field* const offsets = find(layout.tiled ? kTileOffsets : kStripOffsets);
    const Field* const counts = find(layout.tiled ? kTileByteCounts : kStripByteCounts);
    if (offsets == nullptr || counts == nullptr || offsets->count < layout.chunks || counts->count < layout.chunks)
      return damaged(fmt::format("it has {} {}s of {}", offsets && counts ? std::min(offsets->count, counts->count) : 0,
                                 noun, layout.chunks));
    MDFS_TRY(spend(layout.chunks * (offsets->value_bytes + counts->value_bytes)));
    std::vector<std::uint64_t> starts, lengths;
    for (std::uint64_t first = 0; first < layout.chunks; first += kBatch) {
      const std::uint64_t batch = std::min(kBatch, layout.chunks - first);
      MDFS_TRY(elements(*offsets, first, batch, starts));
      MDFS_TRY(elements(*counts, first, batch, lengths));
      for (std::uint64_t i = 0; i < batch; ++i) MDFS_TRY(check_chunk(layout, noun, first + i, starts[i], lengths[i]));
    }
    return {};
  }

  Status check_chunk(const Layout& layout, const char* noun, std::uint64_t i, std::uint64_t at,
                     std::uint64_t length) const {
    const bool last = i % layout.chunks_of_plane == layout.chunks_of_plane - 1;
    const std::uint64_t least = last ? layout.least_last_bytes : layout.least_bytes;
    if (at == 0 || length < least)
      return damaged(fmt::format("{} {} has {} bytes; it must have at least {}", noun, i, at == 0 ? 0 : length, least));
    if (!inside(at, length, bytes_.size()))
      return damaged(fmt::format(
          "{} {} of {} bytes at byte {} reaches beyond the {} bytes of the file: it is truncated or damaged", noun, i,
          length, at, bytes_.size()));
    return {};
  }

  static constexpr std::uint64_t kBatch = 4096;

  Status elements(const Field& field, std::uint64_t first, std::uint64_t count, std::vector<std::uint64_t>& into) {
    const auto width = static_cast<std::size_t>(field.value_bytes);
    ByteVector bytes(static_cast<std::size_t>(count) * width);
    MDFS_TRY(bytes_.read_at(field.at + first * width, bytes));
    into.clear();
    for (std::size_t at = 0; at < bytes.size(); at += width)
      into.push_back(to_integer(ConstBytes(bytes).subspan(at, width), big_endian_));
    return {};
  }

  ByteSource& bytes_;
  const std::string& name_;
  bool big_endian_ = false;
  bool wide_ = false;
  std::vector<std::pair<std::uint64_t, Field>> fields_;  // of the page, those that are used
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

}  // namespace mdfs::imagefile
