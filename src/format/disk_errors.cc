// The item that counts the errors of a disk.
// SPDX-License-Identifier: Apache-2.0
#include "format/disk_errors.h"

#include "format/fields.h"

namespace mdfs::format {

ByteVector encode(const DiskErrors& errors) {
  ByteVector out(sizeof(mdfs_disk_errors));
  put_uuid(out, offsetof(mdfs_disk_errors, disk_uuid), errors.disk_uuid);
  MDFS_PUT(out, 0, mdfs_disk_errors, since_ns, errors.since_ns);
  MDFS_PUT(out, 0, mdfs_disk_errors, read_errors, errors.read_errors);
  MDFS_PUT(out, 0, mdfs_disk_errors, write_errors, errors.write_errors);
  MDFS_PUT(out, 0, mdfs_disk_errors, flush_errors, errors.flush_errors);
  MDFS_PUT(out, 0, mdfs_disk_errors, checksum_errors, errors.checksum_errors);
  MDFS_PUT(out, 0, mdfs_disk_errors, repaired, errors.repaired);
  return out;
}

Result<DiskErrors> decode_disk_errors(ConstBytes value) {
  MDFS_FORMAT_REQUIRE(value.size() == sizeof(mdfs_disk_errors), "disk-errors.length");
  DiskErrors errors;
  errors.disk_uuid = get_uuid(value, offsetof(mdfs_disk_errors, disk_uuid));
  MDFS_FORMAT_REQUIRE(errors.disk_uuid != Uuid(), "disk-errors.uuid");
  errors.since_ns = MDFS_GET(value, 0, mdfs_disk_errors, since_ns);
  errors.read_errors = MDFS_GET(value, 0, mdfs_disk_errors, read_errors);
  errors.write_errors = MDFS_GET(value, 0, mdfs_disk_errors, write_errors);
  errors.flush_errors = MDFS_GET(value, 0, mdfs_disk_errors, flush_errors);
  errors.checksum_errors = MDFS_GET(value, 0, mdfs_disk_errors, checksum_errors);
  errors.repaired = MDFS_GET(value, 0, mdfs_disk_errors, repaired);
  return errors;
}

}  // namespace mdfs::format
