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

Run Strip::part_from(const Address& first, unsigned place, std::uint32_t block_size) const {
  const unsigned blocks = part_blocks(block_size);
  return {first.disk, first.block + std::uint64_t{order_of(place)} * blocks, blocks};
}

Run Strip::part(unsigned place, std::uint32_t block_size) const { return part_from(address, place, block_size); }

std::optional<Run> Strip::copy_of_part(unsigned place, std::uint32_t block_size) const {
  if (!copy) return std::nullopt;
  return part_from(copy->address, place, block_size);
}

std::span<const std::uint32_t> Strip::part_checksums(unsigned place, std::uint32_t block_size) const {
  const unsigned blocks = part_blocks(block_size);
  return std::span(crc32c).subspan(std::size_t{order_of(place)} * blocks, blocks);
}

StoredExtent Strip::stored_part(unsigned place, std::uint32_t block_size) const {
  const std::span<const std::uint32_t> checksums = part_checksums(place, block_size);
  StoredExtent stored{
      {part(place, block_size)},           birth, written, part_blocks(block_size) * block_size, block_size,
      {checksums.begin(), checksums.end()}};
  if (copy) {
    stored.copy = {*copy_of_part(place, block_size)};
    stored.copy_birth = copy->birth;
  }
  return stored;
}

Strip Strip::shortened_part(unsigned place, std::uint32_t kept, std::uint32_t block_size) const {
  MDFS_CHECK(kept >= 1 && kept <= bytes);
  const Run run = part(place, block_size);
  Strip strip = *this;
  strip.address = {run.disk, run.block};
  if (copy) {
    const Run second = *copy_of_part(place, block_size);
    strip.copy->address = {second.disk, second.block};
  }
  strip.places = strip.live = std::uint64_t{1} << place;
  strip.bytes = kept;
  const auto checksums = part_checksums(place, block_size).first(strip.part_blocks(block_size));
  strip.crc32c.assign(checksums.begin(), checksums.end());
  return strip;
}

unsigned strip_parts(unsigned part_blocks) {
  return static_cast<unsigned>((MDFS_MAX_ITEM - sizeof(mdfs_strip) - sizeof(mdfs_strip_copy)) / 4 / part_blocks);
}

ByteVector encode(const Strip& strip) {
  MDFS_CHECK(strip.written != 0 && strip.written <= strip.birth && strip.live != 0 &&
             (strip.live & ~strip.places) == 0);
  const std::size_t checksums = sizeof(mdfs_strip) + (strip.copy ? sizeof(mdfs_strip_copy) : 0);
  ByteVector out(align_up(checksums + 4 * strip.crc32c.size(), 8));
  MDFS_CHECK(out.size() <= MDFS_MAX_ITEM);
  MDFS_PUT(out, 0, mdfs_strip, address, strip.address.packed());
  MDFS_PUT(out, 0, mdfs_strip, birth, strip.birth);
  MDFS_PUT(out, 0, mdfs_strip, written, strip.written);
  MDFS_PUT(out, 0, mdfs_strip, places, strip.places);
  MDFS_PUT(out, 0, mdfs_strip, live, strip.live);
  MDFS_PUT(out, 0, mdfs_strip, begin, strip.begin);
  MDFS_PUT(out, 0, mdfs_strip, bytes, strip.bytes);
  MDFS_PUT(out, 0, mdfs_strip, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  MDFS_PUT(out, 0, mdfs_strip, copies, static_cast<std::uint8_t>(strip.copy ? 1 : 0));
  put_bytes(out, offsetof(mdfs_strip, reserved), strip.reserved);
  if (strip.copy) {
    MDFS_PUT(out, sizeof(mdfs_strip), mdfs_strip_copy, address, strip.copy->address.packed());
    MDFS_PUT(out, sizeof(mdfs_strip), mdfs_strip_copy, birth, strip.copy->birth);
  }
  for (std::size_t i = 0; i < strip.crc32c.size(); ++i)
    store_le<std::uint32_t>(out, checksums + 4 * i, strip.crc32c[i]);
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
  const std::uint8_t copies = MDFS_GET(value, 0, mdfs_strip, copies);
  if (copies > 1) return {Errc::kNewerFormat, "strip.copies"};
  const std::size_t at = sizeof(mdfs_strip) + copies * sizeof(mdfs_strip_copy);
  MDFS_FORMAT_REQUIRE(value.size() == align_up(at + 4 * checksums, 8), "strip.length");
  if (copies == 1) {
    strip.copy = StripCopy{Address::unpack(MDFS_GET(value, sizeof(mdfs_strip), mdfs_strip_copy, address)),
                           MDFS_GET(value, sizeof(mdfs_strip), mdfs_strip_copy, birth)};
    MDFS_FORMAT_REQUIRE(strip.copy->birth >= strip.written && strip.copy->address.disk < MDFS_MAX_DISKS &&
                            strip.copy->address.disk != strip.address.disk,
                        "strip.copy");
  }
  for (std::size_t i = 0; i < checksums; ++i) strip.crc32c.push_back(load_le<std::uint32_t>(value, at + 4 * i));
  MDFS_FORMAT_REQUIRE(all_zero(value.subspan(at + 4 * checksums)), "strip.record");
  return strip;
}

}  // namespace mdfs::format
