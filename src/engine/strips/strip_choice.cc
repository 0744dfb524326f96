// When strips pay.
// SPDX-License-Identifier: Apache-2.0
#include "engine/strips/strip_choice.h"

#include "format/strip.h"
#include "mdfs/ondisk.h"

namespace mdfs::engine {

namespace {

// Beyond it reading an extent takes many requests; and numbers must be left for batches at work.
constexpr std::uint64_t kMostStrips = MDFS_STRIPS_PER_PAGE * 3 / 4;

}  // namespace

bool worth_a_strip(const StripFacts& facts) {
  if (facts.overlaps || facts.strips_in_page >= kMostStrips) return false;
  if (facts.has_record && !facts.appends) return false;
  if (facts.strip_blocks + facts.changed_blocks > facts.extent_blocks) return false;
  if (facts.changed_blocks > format::strip_parts(1)) return false;
  return facts.changed_blocks > 0 && 2 * facts.changed_blocks <= facts.extent_blocks;
}

}  // namespace mdfs::engine
