// Strips: bytes appended to extents that are not full yet, until the extents are consolidated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/extents.h"
#include "format/kept.h"
#include "format/pointer.h"
#include "format/stored_extent.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

// mdfs_strip_copy.
struct StripCopy {
  Address address;
  std::uint64_t birth = 0;  // generation of the blocks
  bool operator==(const StripCopy&) const = default;
};

// mdfs_strip: bytes [begin, begin + bytes) of each extent of a page in `places`, each in whole blocks, one
// part behind the other. A value; no thread contract.
struct Strip {
  Address address;
  std::uint64_t birth = 0;            // generation of the blocks
  std::uint64_t written = 0;          // generation of the contents: a move keeps it; at most `birth`
  std::uint64_t places = 0;           // bit i: the extent at place i has a part
  std::uint64_t live = 0;             // bit i: that part counts; blocks of others are no longer the strip's
  std::uint32_t begin = 0;            // byte of each extent
  std::uint32_t bytes = 0;            // of each part
  std::vector<std::uint32_t> crc32c;  // of each block of each part
  std::optional<StripCopy> copy;      // on another disk
  Kept<sizeof(mdfs_strip::reserved)> reserved{};

  bool operator==(const Strip&) const = default;
  std::uint32_t end() const { return begin + bytes; }
  // True if the part of the extent at this place is live.
  bool has(unsigned place) const { return place < kMaxPlaces && ((live >> place) & 1) != 0; }
  // Blocks of each part. block_size in bytes, here and below.
  unsigned part_blocks(std::uint32_t block_size) const { return (bytes + block_size - 1) / block_size; }
  // The blocks of a part, of its second copy (none: absent), and their checksums. The place is one of `places` (else
  // abort).
  Run part(unsigned place, std::uint32_t block_size) const;
  std::optional<Run> copy_of_part(unsigned place, std::uint32_t block_size) const;
  std::span<const std::uint32_t> part_checksums(unsigned place, std::uint32_t block_size) const;
  // That part, in whole blocks, with its copy.
  StoredExtent stored_part(unsigned place, std::uint32_t block_size) const;
  // A strip of that part alone, in the first of its blocks. `kept`: 1 .. bytes (else abort).
  Strip shortened_part(unsigned place, std::uint32_t kept, std::uint32_t block_size) const;

 private:
  unsigned order_of(unsigned place) const;
  Run part_from(const Address& first, unsigned place, std::uint32_t block_size) const;
};

// Largest number of parts of this many blocks (1 at least) in one item.
unsigned strip_parts(unsigned part_blocks);

// The value of a strip's item. A strip without live parts has none (abort): erase the item.
ByteVector encode(const Strip& strip);
// Checks: strip.length, strip.checksum-type (kNewerFormat), strip.record (generations, a disk below 64, padding zero),
// strip.places (places within the page, `live` among them, neither 0), strip.range (at least one byte, within the
// extent), strip.copy (a generation, another disk below 64).
Result<Strip> decode_strip(ConstBytes value, const ExtentTableShape& shape, std::uint32_t block_size);

}  // namespace mdfs::format
