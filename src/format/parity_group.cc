// Parity groups.
// SPDX-License-Identifier: Apache-2.0
#include "format/parity_group.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "format/fields.h"

namespace mdfs::format {
namespace {

void put_piece(const ExtentRecord& piece, ByteVector& out) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(mdfs_parity));
  MDFS_PUT(out, at, mdfs_parity, address, piece.address);
  MDFS_PUT(out, at, mdfs_parity, birth, piece.birth);
  MDFS_PUT(out, at, mdfs_parity, stored_bytes, piece.stored_bytes);
}

Result<ExtentRecord> get_piece(ConstBytes bytes, std::size_t at, const ExtentTableShape& shape) {
  ExtentRecord piece;
  piece.address = MDFS_GET(bytes, at, mdfs_parity, address);
  piece.birth = piece.written = MDFS_GET(bytes, at, mdfs_parity, birth);
  piece.stored_bytes = MDFS_GET(bytes, at, mdfs_parity, stored_bytes);
  MDFS_FORMAT_REQUIRE(!piece.is_scattered() && Address::unpack(piece.address).disk < MDFS_MAX_DISKS, "copies.parity");
  MDFS_FORMAT_REQUIRE(piece.birth != 0, "copies.parity");
  MDFS_FORMAT_REQUIRE(piece.stored_bytes >= 1 && piece.stored_bytes <= kMaxStoredBytes, "copies.parity");
  MDFS_FORMAT_REQUIRE(shape.codec != MDFS_CODEC_RAW || piece.stored_bytes == shape.extent_bytes, "copies.parity");
  return piece;
}

std::size_t checksum_bytes(const ExtentTableShape& shape) {
  return align_up(std::size_t{4} * shape.checksums(), std::size_t{8});
}

GroupPiece piece_of(const ExtentRecord& record, std::uint32_t block_size) {
  return {run_at(record.address, record.stored_bytes, block_size), record.stored_bytes};
}

}  // namespace

unsigned ParityGroup::lowest() const { return static_cast<unsigned>(std::countr_zero(members)); }

std::size_t ParityGroup::encoded_bytes(const ExtentTableShape& shape) const {
  return sizeof(mdfs_group) + (1 + leavers.size()) * sizeof(mdfs_parity) + checksum_bytes(shape);
}

std::optional<StoredExtent> ParityGroup::stored_parity(const ExtentPage& page, std::uint32_t block_size) const {
  std::vector<GroupPiece> pieces;
  for (unsigned place = 0; place < kMaxPlaces; ++place) {
    if (!has(place)) continue;
    const auto piece = page.piece(place, block_size);
    if (!piece) return std::nullopt;
    pieces.push_back(*piece);
  }
  for (const ExtentRecord& leaver : leavers) pieces.push_back(piece_of(leaver, block_size));
  StoredExtent stored = parity.stored(page.shape(), block_size);
  stored.others = OtherPieces(members, std::move(pieces));
  return stored;
}

OtherPieces ParityGroup::others_of(unsigned place, const ExtentPage& page, std::uint32_t block_size) const {
  std::vector<GroupPiece> pieces;
  for (unsigned other = 0; other < kMaxPlaces; ++other) {
    if (!has(other) || other == place) continue;
    const auto piece = page.piece(other, block_size);
    if (!piece) return {};
    pieces.push_back(*piece);
  }
  for (const ExtentRecord& leaver : leavers) pieces.push_back(piece_of(leaver, block_size));
  pieces.push_back(piece_of(parity, block_size));
  return {members, std::move(pieces)};
}

std::vector<Run> ParityGroup::own_runs(std::uint32_t block_size) const {
  std::vector<Run> runs{piece_of(parity, block_size).run};
  for (const ExtentRecord& leaver : leavers) runs.push_back(piece_of(leaver, block_size).run);
  return runs;
}

void encode(const ParityGroup& group, const ExtentTableShape& shape, ByteVector& out) {
  MDFS_CHECK(group.members != 0 && group.parity.crc32c.size() == shape.checksums());
  std::size_t at = out.size();
  out.resize(at + sizeof(mdfs_group));
  MDFS_PUT(out, at, mdfs_group, members, group.members);
  MDFS_PUT(out, at, mdfs_group, parity_count, std::uint8_t{1});
  MDFS_PUT(out, at, mdfs_group, leaver_count, static_cast<std::uint8_t>(group.leavers.size()));
  put_piece(group.parity, out);
  for (const ExtentRecord& leaver : group.leavers) put_piece(leaver, out);
  at = out.size();
  out.resize(at + checksum_bytes(shape));
  for (std::size_t i = 0; i < group.parity.crc32c.size(); ++i)
    store_le<std::uint32_t>(MutableBytes(out), at + 4 * i, group.parity.crc32c[i]);
}

Result<ParityGroup> decode_group(ConstBytes& bytes, const ExtentTableShape& shape) {
  MDFS_FORMAT_REQUIRE(bytes.size() >= sizeof(mdfs_group) + sizeof(mdfs_parity), "copies.length");
  ParityGroup group;
  group.members = MDFS_GET(bytes, 0, mdfs_group, members);
  const std::size_t leavers = MDFS_GET(bytes, 0, mdfs_group, leaver_count);
  const auto members = static_cast<unsigned>(std::popcount(group.members));
  MDFS_FORMAT_REQUIRE(members >= 1 && members + leavers >= 2 && members + leavers <= kMostGroupPieces, "copies.group");
  MDFS_FORMAT_REQUIRE(static_cast<unsigned>(std::bit_width(group.members)) <= shape.places(), "copies.group");
  const std::size_t checksums = sizeof(mdfs_group) + (1 + leavers) * sizeof(mdfs_parity);
  const std::size_t end = checksums + checksum_bytes(shape);
  MDFS_FORMAT_REQUIRE(bytes.size() >= end, "copies.length");
  MDFS_TRY_ASSIGN(group.parity, get_piece(bytes, sizeof(mdfs_group), shape));
  for (std::size_t i = 1; i <= leavers; ++i) {
    MDFS_TRY_ASSIGN(ExtentRecord leaver, get_piece(bytes, sizeof(mdfs_group) + i * sizeof(mdfs_parity), shape));
    group.leavers.push_back(std::move(leaver));
  }
  for (std::size_t i = 0; i < shape.checksums(); ++i)
    group.parity.crc32c.push_back(load_le<std::uint32_t>(bytes, checksums + 4 * i));
  MDFS_FORMAT_REQUIRE(
      all_zero(bytes.subspan(checksums + 4 * shape.checksums(), end - checksums - 4 * shape.checksums())),
      "copies.parity");
  bytes = bytes.subspan(end);
  return group;
}

void add_to_parity(MutableBytes sum, ConstBytes bytes) {
  MDFS_CHECK(bytes.size() <= sum.size());
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    std::uint64_t a[4], b[4];
    std::memcpy(a, sum.data() + i, 32);
    std::memcpy(b, bytes.data() + i, 32);
    for (unsigned k = 0; k < 4; ++k) a[k] ^= b[k];
    std::memcpy(sum.data() + i, a, 32);
  }
  for (; i < bytes.size(); ++i) sum[i] ^= bytes[i];
}

}  // namespace mdfs::format
