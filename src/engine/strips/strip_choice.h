// Decides whether the changed bytes of an extent are written as a strip or with the whole extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::engine {

// Facts about one extent whose changes are to be written.
struct StripFacts {
  std::uint64_t extent_blocks = 0;   // of the whole extent, uncompressed
  std::uint64_t changed_blocks = 0;  // of its changed bytes, from the first to the last
  bool has_record = false;           // it has been written whole before
  bool appends = false;              // the changed bytes lie behind the published size of the image
  bool overlaps = false;             // some of them lie in a strip already
  std::uint64_t strip_blocks = 0;    // of its strips
  std::uint64_t strips_in_page = 0;  // of all extents of its page
};

// A strip costs its own blocks now and the whole extent once, later. Without it the whole extent is written now, and
// again with each further piece. Strips therefore pay for pieces of at most half of an extent that is being filled.
// Bytes that replace stored ones are written with their extent, because no further pieces are expected. Pieces are
// rounded up to whole blocks; strips of an extent never take more blocks than the whole extent. One item holds the
// checksums of all blocks of a strip; a longer piece is written with its extent. Pure.
bool worth_a_strip(const StripFacts& facts);

}  // namespace mdfs::engine
