// A Reed-Solomon code over GF(2^8): k symbols and any number of repair symbols, of which any k give all. Pure.
//
// The arithmetic is that of ISA-L (polynomial 0x11D). The code is systematic, and its matrix a Cauchy matrix: repair
// symbol i is the sum over the sources j of source j divided by (i ^ j). Symbols have one length. Any thread may call
// any function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mdfs::gst {

struct RepairSymbol {
  std::uint8_t index;  // in the block, from the number of sources on
  const std::byte* bytes;
};

// The repair symbols with the indices from sources.size() on. There are 1 to 255 symbols in all.
std::vector<std::vector<std::byte>> repair_symbols(std::span<const std::byte* const> sources, std::size_t repairs,
                                                   std::size_t bytes);
// The sources that are null, in their order, from as many repair symbols of different indices.
std::vector<std::vector<std::byte>> missing_sources(std::span<const std::byte* const> sources,
                                                    std::span<const RepairSymbol> repairs, std::size_t bytes);

}  // namespace mdfs::gst
