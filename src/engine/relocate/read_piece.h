// Stored bytes that are read to be written elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/bytes.h"
#include "engine/core.h"
#include "engine/requests.h"
#include "format/stored_extent.h"

namespace mdfs::engine {

// True if whole blocks hold the stored bytes of an extent. The rest of the last block has no meaning, and becomes zero.
bool holds(const format::StoredExtent& extent, MutableBytes blocks);
// Reads the runs of an extent into whole blocks. kCorrupt: they do not hold its bytes.
Status read_piece(Core& core, const format::StoredExtent& extent, MutableBytes blocks);

// The other pieces of the group of an extent, to be read with other segments.
class OtherBytes {
 public:
  OtherBytes() = default;
  OtherBytes(Core& core, const format::StoredExtent& extent, std::vector<Segment>& segments);
  bool empty() const { return buffers_.empty(); }
  // Makes the bytes of the extent from what has been read, in whole blocks. False: these are not its bytes.
  bool make(const format::StoredExtent& extent, MutableBytes blocks) const;

 private:
  std::vector<BufferRef> buffers_;
};

// Makes the bytes of an extent from the other pieces of its group. kCorrupt: it has none, or they do not give the
// bytes.
Status read_from_others(Core& core, const format::StoredExtent& extent, MutableBytes blocks);
// From its runs, its copy or the other pieces of its group, whichever has it first.
Status read_any_piece(Core& core, const format::StoredExtent& extent, MutableBytes blocks);

}  // namespace mdfs::engine
