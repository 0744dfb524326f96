// Fuzz target: tree nodes, as their parent would point to them; the checksum is made right.
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "format/fields.h"
#include "format/node.h"
#include "fuzz.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteVector bytes = fuzz::padded(fuzz::input(data, size), MDFS_NODE_SIZE);
  format::NodeExpectation expected;
  expected.volume_uuid = format::get_uuid(bytes, offsetof(mdfs_node_header, volume_uuid));
  expected.owner = MDFS_GET(bytes, 0, mdfs_node_header, owner);
  expected.pointer = {crc32c(bytes), MDFS_NODE_SIZE, MDFS_GET(bytes, 0, mdfs_node_header, generation), 0, {}};
  for (std::size_t i = 0; i < MDFS_MAX_COPIES; ++i) {
    const auto packed = load_le<std::uint64_t>(bytes, offsetof(mdfs_node_header, address) + 8 * i);
    expected.pointer.address[i] = format::Address::unpack(packed);
    if (packed != 0) expected.pointer.copies = static_cast<std::uint8_t>(i + 1);
  }
  const auto node = format::decode_node(bytes, expected);
  if (!node.ok()) return 0;

  MDFS_CHECK(format::fits(*node));
  for (const format::LeafItem& item : node->items) MDFS_CHECK(item.value.size() <= MDFS_MAX_ITEM);
  ByteVector again(MDFS_NODE_SIZE);
  format::encode(*node, again);
  expected.pointer.crc32c = crc32c(again);
  const auto decoded = format::decode_node(again, expected);
  MDFS_CHECK(decoded.ok() && *decoded == *node);
  return 0;
}
