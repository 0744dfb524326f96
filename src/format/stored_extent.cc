// Stored bytes of extents.
// SPDX-License-Identifier: Apache-2.0
#include "format/stored_extent.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "format/layout.h"
#include "mdfs/ondisk.h"

namespace mdfs::format {

const std::vector<GroupPiece>& OtherPieces::pieces() const {
  static const std::vector<GroupPiece> none;
  return empty() ? none : pieces_->second;
}

std::uint64_t OtherPieces::disks() const {
  std::uint64_t bits = 0;
  for (const GroupPiece& piece : pieces()) bits |= StoredExtent::disks_of({piece.run});
  return bits;
}

bool OtherPieces::operator==(const OtherPieces& other) const {
  return pieces_ == other.pieces_ || (members() == other.members() && pieces() == other.pieces());
}

void append_run(Runs& runs, const Run& run) {
  if (!runs.empty() && continues(runs.back(), run))
    runs.back().blocks += run.blocks;
  else
    runs.push_back(run);
}

PieceRuns StoredExtent::all_runs() const {
  PieceRuns all(runs.begin(), runs.end());
  all.append(copy.begin(), copy.end());
  return all;
}

std::uint64_t StoredExtent::blocks_of(const Runs& runs) {
  std::uint64_t sum = 0;
  for (const Run& run : runs) sum += run.blocks;
  return sum;
}

std::uint64_t StoredExtent::blocks() const { return blocks_of(runs) + blocks_of(copy); }

std::uint64_t StoredExtent::disks_of(const Runs& runs) {
  std::uint64_t bits = 0;
  for (const Run& run : runs)
    if (run.disk < MDFS_MAX_DISKS) bits |= std::uint64_t{1} << run.disk;
  return bits;
}

std::uint64_t StoredExtent::disks() const { return disks_of(runs) | disks_of(copy); }

bool StoredExtent::pieces_are_apart() const {
  std::uint64_t seen = disks_of(runs);
  const auto is_apart = [&](std::uint64_t disks) { return (std::exchange(seen, seen | disks) & disks) == 0; };
  return is_apart(disks_of(copy)) && std::all_of(others.pieces().begin(), others.pieces().end(),
                                                 [&](const auto& piece) { return is_apart(disks_of({piece.run})); });
}

StoredExtent StoredExtent::by_copy() const {
  MDFS_CHECK(has_copy());
  StoredExtent other = *this;
  std::swap(other.runs, other.copy);
  std::swap(other.birth, other.copy_birth);
  std::swap(other.has_runs_item, other.copy_has_runs_item);
  return other;
}

bool StoredExtent::matches_part(std::size_t number, ConstBytes bytes) const {
  return number < crc32c.size() && mdfs::crc32c(bytes) == crc32c[number];
}

bool StoredExtent::matches(ConstBytes bytes) const {
  PassingBytes passing(*this);
  passing.take(bytes);
  return passing.match();
}

void PassingBytes::take(ConstBytes bytes) {
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), extent_.stored_bytes - done_));
  while (!bytes.empty()) {
    const std::size_t in_part = done_ % extent_.part_bytes;
    const std::size_t step = std::min<std::size_t>(bytes.size(), extent_.part_bytes - in_part);
    crc_ = mdfs::crc32c(bytes.first(step), in_part == 0 ? 0 : crc_);
    done_ += static_cast<std::uint32_t>(step);
    bytes = bytes.subspan(step);
    const std::size_t part = (done_ - 1) / extent_.part_bytes;
    if (done_ % extent_.part_bytes == 0 || done_ == extent_.stored_bytes)
      match_ = match_ && part < extent_.crc32c.size() && extent_.crc32c[part] == crc_;
  }
}

}  // namespace mdfs::format
