// Pointers to blocks of metadata.
// SPDX-License-Identifier: Apache-2.0
#include "format/pointer.h"

#include "base/crc32c.h"
#include "format/fields.h"

namespace mdfs::format {

Pointer make_pointer(ConstBytes block, std::uint64_t birth, std::span<const Address> places) {
  MDFS_CHECK(birth != 0 && !places.empty() && places.size() <= MDFS_MAX_COPIES);
  Pointer pointer;
  pointer.crc32c = crc32c(block);
  pointer.length = static_cast<std::uint32_t>(block.size());
  pointer.birth = birth;
  pointer.copies = static_cast<std::uint8_t>(places.size());
  std::copy(places.begin(), places.end(), pointer.address.begin());
  return pointer;
}

void encode(const Pointer& pointer, MutableBytes out, std::size_t offset) {
  const MutableBytes field = out.subspan(offset, sizeof(mdfs_pointer));
  std::fill(field.begin(), field.end(), std::byte{0});
  if (pointer.is_null()) return;
  store_le<std::uint32_t>(field, offsetof(mdfs_pointer, checksum), pointer.crc32c);
  MDFS_PUT(field, 0, mdfs_pointer, checksum_type, std::uint8_t{MDFS_CHECKSUM_CRC32C});
  MDFS_PUT(field, 0, mdfs_pointer, length, pointer.length);
  MDFS_PUT(field, 0, mdfs_pointer, birth, pointer.birth);
  MDFS_PUT(field, 0, mdfs_pointer, copies, pointer.copies);
  for (std::size_t i = 0; i < pointer.copies; ++i)
    store_le<std::uint64_t>(field, offsetof(mdfs_pointer, address) + 8 * i, pointer.address[i].packed());
}

Result<Pointer> decode_pointer(ConstBytes bytes, std::size_t offset) {
  MDFS_FORMAT_REQUIRE(offset <= bytes.size() && bytes.size() - offset >= sizeof(mdfs_pointer), "pointer.size");
  const ConstBytes field = bytes.subspan(offset, sizeof(mdfs_pointer));
  Pointer pointer;
  pointer.birth = MDFS_GET(field, 0, mdfs_pointer, birth);
  if (pointer.birth == 0) {
    MDFS_FORMAT_REQUIRE(all_zero(field), "pointer.null");
    return pointer;
  }
  if (MDFS_GET(field, 0, mdfs_pointer, checksum_type) != MDFS_CHECKSUM_CRC32C)
    return {Errc::kNewerFormat, "pointer.checksum-type"};
  pointer.crc32c = load_le<std::uint32_t>(field, offsetof(mdfs_pointer, checksum));
  pointer.length = MDFS_GET(field, 0, mdfs_pointer, length);
  pointer.copies = MDFS_GET(field, 0, mdfs_pointer, copies);
  MDFS_FORMAT_REQUIRE(pointer.length > 0, "pointer.length");
  MDFS_FORMAT_REQUIRE(pointer.copies >= 1 && pointer.copies <= MDFS_MAX_COPIES, "pointer.copies");
  MDFS_FORMAT_REQUIRE(all_zero(field.subspan(offsetof(mdfs_pointer, reserved), sizeof(mdfs_pointer::reserved))),
                      "pointer.reserved");
  MDFS_FORMAT_REQUIRE(all_zero(field.subspan(sizeof(std::uint32_t), MDFS_CHECKSUM_ROOM - sizeof(std::uint32_t))),
                      "pointer.checksum");
  for (std::size_t i = 0; i < MDFS_MAX_COPIES; ++i) {
    const auto packed = load_le<std::uint64_t>(field, offsetof(mdfs_pointer, address) + 8 * i);
    if (i >= pointer.copies) {
      MDFS_FORMAT_REQUIRE(packed == 0, "pointer.address");
      continue;
    }
    pointer.address[i] = Address::unpack(packed);
    MDFS_FORMAT_REQUIRE(pointer.address[i].disk < MDFS_MAX_DISKS, "pointer.address");
    for (std::size_t j = 0; j < i; ++j)
      MDFS_FORMAT_REQUIRE(pointer.address[j] != pointer.address[i], "pointer.address");
  }
  return pointer;
}

Status verify(const Pointer& pointer, ConstBytes block) {
  MDFS_FORMAT_REQUIRE(block.size() == pointer.length, "block.length");
  MDFS_FORMAT_REQUIRE(crc32c(block) == pointer.crc32c, "block.checksum");
  return {};
}

}  // namespace mdfs::format
