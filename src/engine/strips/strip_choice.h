// Decides whether the changed bytes of an extent are written as a strip or with the whole extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mdfs::engine {

// What is known of one extent when its changes are to be written.
struct StripFacts {
  std::uint64_t extent_blocks = 0;   // that the extent takes, uncompressed
  std::uint64_t changed_blocks = 0;  // that its changed bytes take, from the first to the last
  bool has_record = false;           // it has been written whole before
  bool appends = false;              // the changed bytes lie behind what the tree knows of the image
  bool overlaps = false;             // some of them lie in a strip already
  std::uint64_t strip_blocks = 0;    // that it takes in strips already
  std::uint64_t strips_in_page = 0;  // of all extents of its page
};

// A strip costs its own blocks now and the whole extent once, later; without it the whole extent is written now and
// again with each further piece. So strips pay for pieces of at most half of an extent that is being filled. Bytes
// that replace stored ones are written with their extent: no more pieces are to be expected. Pieces that are not whole
// blocks are rounded up; in strips an extent never takes more than it will when it is written whole. One item holds the
// checksums of all blocks of a strip: a longer piece is written with its extent. Pure.
bool worth_a_strip(const StripFacts& facts);

}  // namespace mdfs::engine
