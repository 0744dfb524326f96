// Fuzz target: the reader of PNM headers.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "imagefile/header.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto header = imagefile::parse_pnm(fuzz::input(data, size), "input");
  if (!header.ok()) return 0;
  MDFS_CHECK(header->data_offset <= size && header->array.lengths.size() == header->array.axes.size());
  const auto text = imagefile::pnm_header(header->array, "output.pnm");
  MDFS_CHECK(text.ok());
  const auto again = imagefile::parse_pnm(as_bytes(*text), "output");
  MDFS_CHECK(again.ok() && again->array == header->array);
  if (imagefile::array_bytes(header->array).ok()) (void)imagefile::choose_geometry(header->array, "").ok();
  return 0;
}
