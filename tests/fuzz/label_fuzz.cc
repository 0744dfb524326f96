// Fuzz target: labels. The checksum is made right, so that what lies behind it is reached.
// SPDX-License-Identifier: Apache-2.0
#include "format/label.h"
#include "format/sealed.h"
#include "fuzz.h"
#include "store/labels.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBytes bytes = fuzz::input(data, size);
  (void)format::decode_label(bytes).ok();
  ByteVector sector = fuzz::padded(bytes, MDFS_SECTOR);
  format::seal(sector, offsetof(mdfs_label, crc32c));
  const auto label = format::decode_label(sector);
  if (!label.ok()) return 0;
  (void)format::access_allowed(label->features).ok();

  ByteVector again(MDFS_SECTOR);
  format::encode(*label, again);
  const auto decoded = format::decode_label(again);
  MDFS_CHECK(decoded.ok() && *decoded == *label);

  const format::DiskLayout layout = store::layout_of(*label);
  MDFS_CHECK(layout.consistent() && layout.first_usable() < layout.end_usable());
  MDFS_CHECK(layout.metadata_end() <= layout.end_usable() && layout.end_usable() <= layout.blocks());
  for (unsigned number = 0; number < MDFS_LABELS_PER_DISK; ++number)
    MDFS_CHECK(layout.slot_offset(number, MDFS_RING_SLOTS - 1) + MDFS_SLOT_SIZE <= layout.bytes());
  const unsigned top = layout.space_levels() - 1;
  MDFS_CHECK(layout.space_pages(top) == 1 &&
             layout.space_offset({top, 0}, 1) + MDFS_SECTOR <= layout.first_usable() * layout.block_size());
  return 0;
}
