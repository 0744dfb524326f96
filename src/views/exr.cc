// The head and the rows of an OpenEXR picture.
// SPDX-License-Identifier: Apache-2.0
#include "views/exr.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace mdfs::views {
namespace {

using geometry::ElementType;

constexpr std::uint32_t kExrMagic = 20000630, kExrVersion = 2;
constexpr std::uint64_t kRowHead = 8;              // number of the row, bytes of its samples
constexpr std::uint64_t kExrBandBytes = 4u << 20;  // of the window, read at once
constexpr std::uint64_t kTableEntryBytes = 8;      // of the place of a row
constexpr std::uint8_t kUint = 0, kHalf = 1, kFloat = 2;

// In the order of the file, which is that of their names; `place`: of the channel in a sample of the window.
struct ExrChannel {
  char name;
  unsigned place;
};
constexpr ExrChannel kGrey[] = {{'Y', 0}};
constexpr ExrChannel kColour[] = {{'B', 2}, {'G', 1}, {'R', 0}};
constexpr ExrChannel kColourAndAlpha[] = {{'A', 3}, {'B', 2}, {'G', 1}, {'R', 0}};

std::span<const ExrChannel> channels_of(const Raster& raster) {
  switch (raster.channels) {
    case 1:
      return kGrey;
    case 3:
      return kColour;
    default:
      MDFS_CHECK(raster.channels == 4);
      return kColourAndAlpha;
  }
}

// Little-endian fields, one after another.
class HeadWriter {
 public:
  template <typename Number>
  void number(Number value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_le<Number>(bytes_, at, value);
  }
  void real(float value) { number(std::bit_cast<std::uint32_t>(value)); }
  void text(std::string_view text) {
    for (const char c : text) number(static_cast<std::uint8_t>(c));
    number(std::uint8_t{0});
  }
  void attribute(std::string_view name, std::string_view type, std::uint32_t bytes) {
    text(name);
    text(type);
    number(bytes);
  }
  void box(std::string_view name, const Raster& raster) {
    attribute(name, "box2i", 16);
    for (const std::uint64_t corner : {std::uint64_t{0}, std::uint64_t{0}, raster.width - 1, raster.height - 1})
      number(static_cast<std::uint32_t>(corner));
  }
  ByteVector take() { return std::move(bytes_); }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  ByteVector bytes_;
};

std::uint8_t pixel_type(ElementType type) {
  if (type == ElementType::kF16) return kHalf;
  if (type == ElementType::kF32) return kFloat;
  MDFS_CHECK(type == ElementType::kU32);
  return kUint;
}

void put_channels(HeadWriter& head, std::span<const ExrChannel> channels, ElementType type) {
  constexpr std::uint32_t kEntryBytes = 18;  // with a name of one letter
  head.attribute("channels", "chlist", static_cast<std::uint32_t>(channels.size()) * kEntryBytes + 1);
  for (const ExrChannel& channel : channels) {
    head.text({&channel.name, 1});
    head.number(std::uint32_t{pixel_type(type)});
    head.number(std::uint32_t{0});  // not linear for perception; 3 reserved bytes
    head.number(std::uint32_t{1});  // a sample for each column
    head.number(std::uint32_t{1});  // and each row
  }
  head.number(std::uint8_t{0});
}

std::uint64_t exr_row_bytes(const Raster& raster) { return kRowHead + raster.row_bytes(); }

// One row of the file, of its row of the window.
void make_row(const Raster& raster, std::uint64_t row, ConstBytes samples, MutableBytes into) {
  store_le<std::uint32_t>(into, 0, static_cast<std::uint32_t>(row));
  store_le<std::uint32_t>(into, 4, static_cast<std::uint32_t>(raster.row_bytes()));
  std::byte* to = into.data() + kRowHead;
  const std::size_t bytes = raster.sample_bytes, step = bytes * raster.channels;
  for (const ExrChannel& channel : channels_of(raster)) {
    const std::byte* from = samples.data() + channel.place * bytes;
    for (std::uint64_t column = 0; column < raster.width; ++column, from += step, to += bytes)
      std::memcpy(to, from, bytes);
  }
}

}  // namespace

ByteVector exr_head(const Raster& raster, ElementType type) {
  MDFS_CHECK(raster.width >= 1 && raster.height >= 1 && raster.height <= kMaxExrSide);
  HeadWriter head;
  head.number(kExrMagic);
  head.number(kExrVersion);
  put_channels(head, channels_of(raster), type);
  head.attribute("compression", "compression", 1);
  head.number(std::uint8_t{0});
  head.box("dataWindow", raster);
  head.box("displayWindow", raster);
  head.attribute("lineOrder", "lineOrder", 1);
  head.number(std::uint8_t{0});
  head.attribute("pixelAspectRatio", "float", 4);
  head.real(1);
  head.attribute("screenWindowCenter", "v2f", 8);
  head.real(0);
  head.real(0);
  head.attribute("screenWindowWidth", "float", 4);
  head.real(1);
  head.number(std::uint8_t{0});
  const std::uint64_t first = head.size() + raster.height * kTableEntryBytes;
  for (std::uint64_t row = 0; row < raster.height; ++row) head.number(first + row * exr_row_bytes(raster));
  return head.take();
}

std::uint64_t exr_data_bytes(const Raster& raster) { return raster.height * exr_row_bytes(raster); }

Status read_exr(const Raster& raster, std::uint64_t offset, MutableBytes into, const WindowBytes& read) {
  const std::uint64_t row = exr_row_bytes(raster);
  const std::uint64_t rows_at_once = std::max<std::uint64_t>(1, kExrBandBytes / raster.row_bytes());
  ByteVector made(static_cast<std::size_t>(row));
  ByteVector samples;
  while (!into.empty()) {
    const std::uint64_t first = offset / row;
    const std::uint64_t last = std::min((offset + into.size() - 1) / row + 1, first + rows_at_once);
    samples.resize(static_cast<std::size_t>((last - first) * raster.row_bytes()));
    MDFS_TRY(read(first * raster.row_bytes(), samples));
    for (std::uint64_t number = first; number < last; ++number) {
      const auto at = static_cast<std::size_t>((number - first) * raster.row_bytes());
      make_row(raster, number, ConstBytes(samples).subspan(at, static_cast<std::size_t>(raster.row_bytes())), made);
      const auto skipped = static_cast<std::size_t>(offset - number * row);
      const std::size_t part = std::min<std::size_t>(into.size(), made.size() - skipped);
      std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(skipped), part, into.begin());
      into = into.subspan(part);
      offset += part;
    }
  }
  return {};
}

}  // namespace mdfs::views
