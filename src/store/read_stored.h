// Reads stored bytes from the disks and verifies them while they pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/result.h"
#include "device/disk.h"
#include "format/parity_group.h"
#include "format/stored_extent.h"

namespace mdfs::store {

// Reads the blocks of one piece, those in `runs`, in order, and hands them to sink(ConstBytes), at most 1 MiB at a time
// and aligned as disks need it. disk_of(index) is a device::Disk*, null if the disk is not there. The first error of a
// disk or of the sink ends it. kMissingDisk: no disk; kCorrupt, after the last block: the bytes do not match.
template <typename DiskOf, typename Sink>
Status read_stored(const format::StoredExtent& extent, std::uint32_t block_size, const DiskOf& disk_of,
                   const Sink& sink) {
  constexpr std::size_t kReadBytes = 1u << 20;
  format::PassingBytes passing(extent);
  AlignedBuffer buffer(kReadBytes);
  for (const format::Run& run : extent.runs) {
    device::Disk* const disk = disk_of(run.disk);
    if (disk == nullptr) return {Errc::kMissingDisk, "of a piece"};
    const std::uint64_t bytes = std::uint64_t{run.blocks} * block_size;
    for (std::uint64_t done = 0; done < bytes; done += kReadBytes) {
      const MutableBytes part = buffer.bytes().first(std::min<std::uint64_t>(kReadBytes, bytes - done));
      MDFS_TRY(device::read(*disk, run.block * block_size + done, part));
      passing.take(part);
      MDFS_TRY(sink(ConstBytes(part)));
    }
  }
  return passing.match() ? Status() : Status(Errc::kCorrupt, "data.checksum");
}

// The same where the bytes are of no interest: do they match?
template <typename DiskOf>
Status verify_stored(const format::StoredExtent& extent, std::uint32_t block_size, const DiskOf& disk_of) {
  return read_stored(extent, block_size, disk_of, [](ConstBytes) { return Status(); });
}

// The bytes of an extent of a parity group in whole blocks, made from the other pieces of the group. kMissingDisk: one
// has no disk; kCorrupt: they do not give the bytes.
template <typename DiskOf>
Result<ByteVector> read_from_others(const format::StoredExtent& extent, std::uint32_t block_size,
                                    const DiskOf& disk_of) {
  constexpr std::size_t kReadBytes = 1u << 20;
  ByteVector bytes(extent.piece_blocks() * block_size);
  AlignedBuffer buffer(kReadBytes);
  for (const format::GroupPiece& piece : extent.others.pieces()) {
    device::Disk* const disk = disk_of(piece.run.disk);
    if (disk == nullptr) return Error{Errc::kMissingDisk, "of a piece"};
    const std::uint64_t length = std::min<std::uint64_t>(bytes.size(), std::uint64_t{piece.run.blocks} * block_size);
    for (std::uint64_t done = 0; done < length; done += kReadBytes) {
      const MutableBytes part = buffer.bytes().first(std::min<std::uint64_t>(kReadBytes, length - done));
      MDFS_TRY(device::read(*disk, piece.run.block * block_size + done, part));
      const std::uint64_t valid =
          std::min<std::uint64_t>(part.size(), piece.stored_bytes - std::min<std::uint64_t>(done, piece.stored_bytes));
      format::add_to_parity(MutableBytes(bytes).subspan(done), part.first(valid));
    }
  }
  std::fill(bytes.begin() + extent.stored_bytes, bytes.end(), std::byte{0});
  if (extent.others.empty() || !extent.matches(bytes)) return Error{Errc::kCorrupt, "data.checksum"};
  return bytes;
}

}  // namespace mdfs::store
