// Strips.
// SPDX-License-Identifier: Apache-2.0
#include "format/strip.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "format/fields.h"

namespace mdfs::format {

unsigned Strip::order_of(unsigned place) const {
  MDFS_CHECK(place < kMaxPlaces && ((places >> place) & 1) != 0);
  return static_cast<unsigned>(std::popcount(places & ((std::uint64_t{1} << place) - 1)));
}

Run Strip::part(unsigned place, std::uint32_t block_size) const {
  const unsigned blocks = part_blocks(block_size);
  return {address.disk, address.block + std::uint64_t{order_of(place)} * blocks, blocks};
}

std::span<const std::uint32_t> Strip::part_checksums(unsigned place, std::uint32_t block_size) const {
  const unsigned blocks = part_blocks(block_size);
  return std::span(crc32c).subspan(std::size_t{order_of(place)} * blocks, blocks);
}

StoredExtent Strip::stored_part(unsigned place, std::uint32_t block_size) const {
  const std::span<const std::uint32_t> checksums = part_checksums(place, block_size);
  return {{part(place, block_size)},           birth, written, part_blocks(block_size) * block_size, block_size,
          {checksums.begin(), checksums.end()}};
}

Strip Strip::shortened_part(unsigned place, std::uint32_t kept, std::uint32_t block_size) const {
  MDFS_CHECK(kept >= 1 && kept <= bytes);
  const Run run = part(place, block_size);
  Strip strip = *this;
  strip.address = {run.disk, run.block};
  strip.places = strip.live = std::uint64_t{1} << place;
  strip.bytes = kept;
  const auto checksums = part_checksums(place, block_size).first(strip.part_blocks(block_size));
  strip.crc32c.assign(checksums.begin(), checksums.end());
  return strip;
}

unsigned strip_parts(unsigned part_blocks) {
  return static_cast<unsigned>((MDFS_MAX_ITEM - sizeof(mdfs_strip)) / 4 / part_blocks);
}

ByteVector encode(const Strip& strip) {
  MDFS_CHECK(strip.written != 0 && strip.written <= strip.birth && strip.live != 0 &&
             (strip.live & ~strip.places) == 0);
  ByteVector out(align_up(sizeof(mdfs_strip) + 4 * strip.crc32c.size(), 8));
  MDFS_CHECK(out.size() <= MDFS_MAX_ITEM);
  MDFS_PUT(out, 0, mdfs_strip, address, strip.address.packed());
  MDFS_PUT(out, 0, mdfs_strip, birth, strip.birth);
  MDFS_PUT(out, 0, mdfs_strip, written, strip.written);
  MDFS_PUT(out, 0, mdfs_strip, places, strip.places);
  MDFS_PUT(out, 0, mdfs_strip, live, strip.live);
  MDFS_PUT(out, 0, mdfs_strip, begin, strip.begin);
  MDFS_PUT(out, 0, mdfs_strip, bytes, strip.bytes);
  MDFS_PUT(out, 0, mdfs_strip, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  put_bytes(out, offsetof(mdfs_strip, reserved), strip.reserved);
  for (std::size_t i = 0; i < strip.crc32c.size(); ++i)
    store_le<std::uint32_t>(out, sizeof(mdfs_strip) + 4 * i, strip.crc32c[i]);
  return out;
}

Result<Strip> decode_strip(ConstBytes value, const ExtentTableShape& shape, std::uint32_t block_size) {
  MDFS_FORMAT_REQUIRE(value.size() >= sizeof(mdfs_strip), "strip.length");
  if (MDFS_GET(value, 0, mdfs_strip, checksum_type) != MDFS_CHECKSUM_CRC32C)
    return {Errc::kNewerFormat, "strip.checksum-type"};
  Strip strip;
  strip.address = Address::unpack(MDFS_GET(value, 0, mdfs_strip, address));
  strip.birth = MDFS_GET(value, 0, mdfs_strip, birth);
  strip.written = MDFS_GET(value, 0, mdfs_strip, written);
  strip.places = MDFS_GET(value, 0, mdfs_strip, places);
  strip.live = MDFS_GET(value, 0, mdfs_strip, live);
  strip.begin = MDFS_GET(value, 0, mdfs_strip, begin);
  strip.bytes = MDFS_GET(value, 0, mdfs_strip, bytes);
  get_bytes(value, offsetof(mdfs_strip, reserved), strip.reserved);
  MDFS_FORMAT_REQUIRE(strip.written != 0 && strip.written <= strip.birth, "strip.record");
  MDFS_FORMAT_REQUIRE(strip.address.disk < MDFS_MAX_DISKS, "strip.record");
  const unsigned places = shape.places();
  MDFS_FORMAT_REQUIRE(strip.live != 0 && (strip.live & ~strip.places) == 0, "strip.places");
  MDFS_FORMAT_REQUIRE(places >= kMaxPlaces || (strip.places >> places) == 0, "strip.places");
  MDFS_FORMAT_REQUIRE(strip.bytes >= 1 && inside(strip.begin, strip.bytes, shape.extent_bytes), "strip.range");
  const std::size_t checksums = static_cast<std::size_t>(std::popcount(strip.places)) * strip.part_blocks(block_size);
  MDFS_FORMAT_REQUIRE(value.size() == align_up(sizeof(mdfs_strip) + 4 * checksums, 8), "strip.length");
  for (std::size_t i = 0; i < checksums; ++i)
    strip.crc32c.push_back(load_le<std::uint32_t>(value, sizeof(mdfs_strip) + 4 * i));
  MDFS_FORMAT_REQUIRE(all_zero(value.subspan(sizeof(mdfs_strip) + 4 * checksums)), "strip.record");
  return strip;
}

}  // namespace mdfs::format
