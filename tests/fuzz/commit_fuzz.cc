// Fuzz target: commit slots, their checksum made right.
// SPDX-License-Identifier: Apache-2.0
#include "format/commit.h"
#include "format/fields.h"
#include "format/sealed.h"
#include "fuzz.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ConstBytes bytes = fuzz::input(data, size);
  ByteVector sector = fuzz::padded(bytes, MDFS_SLOT_SIZE);
  const Uuid volume = format::get_uuid(sector, offsetof(mdfs_commit_slot, volume_uuid));
  (void)format::decode_commit_slot(bytes, volume).ok();
  format::seal(sector, offsetof(mdfs_commit_slot, crc32c));
  const auto slot = format::decode_commit_slot(sector, volume);
  if (!slot.ok()) return 0;
  MDFS_CHECK(slot->root(MDFS_ROOT_MAIN) != nullptr && !slot->root(MDFS_ROOT_MAIN)->pointer.is_null());

  ByteVector again(MDFS_SLOT_SIZE);
  format::encode(*slot, again);
  const auto decoded = format::decode_commit_slot(again, volume);
  MDFS_CHECK(decoded.ok() && *decoded == *slot);
  return 0;
}
