// Valid structures made from a seed, and ways to damage them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "format/cell_copies.h"
#include "format/commit.h"
#include "format/dirent.h"
#include "format/extent_copies.h"
#include "format/extents.h"
#include "format/file_cell.h"
#include "format/geometry_item.h"
#include "format/inode.h"
#include "format/label.h"
#include "format/layout.h"
#include "format/node.h"
#include "format/operation.h"
#include "format/space.h"
#include "format/strip.h"

namespace mdfs::format {

// A source of seeded values.
class Samples {
 public:
  explicit Samples(std::uint64_t seed) : generator_(seed) {}

  std::uint64_t number(std::uint64_t first, std::uint64_t last) {
    return std::uniform_int_distribution<std::uint64_t>(first, last)(generator_);
  }
  bool coin() { return number(0, 1) == 1; }
  Uuid uuid();
  ByteVector bytes(std::size_t size);
  void fill(std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(number(0, 255));
  }
  std::string name(std::size_t largest = MDFS_MAX_NAME);
  Address address() { return {static_cast<std::uint16_t>(number(0, 63)), number(0, Address::kMaxBlock)}; }
  Pointer pointer(std::uint64_t youngest);
  Label label();
  CommitSlot commit_slot();
  Node leaf();
  Node interior();
  Inode inode();
  geometry::Geometry geometry();
  geometry::Placement placement();
  OperationRecord operation();
  ExtentTableShape table_shape();
  CopyPage copies(const ExtentTableShape& shape);
  ExtentRecord record_in_one_run(const ExtentTableShape& shape);
  ExtentRecord record(const ExtentTableShape& shape);
  Strip strip(const ExtentTableShape& shape, std::uint32_t block_size);
  FileRun run(unsigned cell, unsigned first);
  // A cell with copies of some blocks, of one at least. No copy is a stray.
  CellPieces cell_pieces(std::uint32_t block_size);

 private:
  Node node();
  std::mt19937_64 generator_;
};

// What decoding accepts is written again as it was, so that a program that rewrites a structure keeps the bytes that a
// newer one may have put there. `rewrite(bytes)` gets the first `end` bytes changed one at a time, may seal them, and
// returns them decoded and encoded again; nothing if decoding refuses them.
struct Rewritten {
  std::size_t accepted = 0;
  std::vector<std::size_t> lost;  // offsets of bytes that came back different
};
template <typename Rewrite>
Rewritten change_each_byte(const ByteVector& original, std::size_t end, const Rewrite& rewrite) {
  Rewritten result;
  for (std::size_t i = 0; i < std::min(end, original.size()); ++i) {
    for (const unsigned bit : {0u, 7u}) {
      ByteVector bytes = original;
      bytes[i] ^= std::byte{1} << bit;
      const std::optional<ByteVector> again = rewrite(bytes);
      if (!again) continue;
      ++result.accepted;
      if (*again != bytes) result.lost.push_back(i);
    }
  }
  return result;
}

// What the parent of this node, encoded as `bytes`, would say.
NodeExpectation expectation_of(const Node& node, ConstBytes bytes);

// The name of the check that failed, or "" if none did.
template <typename T>
std::string check_name(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().where;
}

}  // namespace mdfs::format
