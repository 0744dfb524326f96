// Shared by all disks, before and after a transfer: check a request, name its errors, complete it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/disk.h"

namespace mdfs::device {

const char* op_name(Op op);

// Aborts if the submitter violated the rules of disk.h: alignment, number of buffers, bytes, missing `done`.
void check_shape(const Io& io);

// Checks that the request may start. kReadOnly for a change of a read-only disk, kIo past the end of the disk.
// Calls check_shape().
Status check_request(const Disk& disk, const Io& io);

// An error that names disk, operation, offset and length: "disk0: read of 4096 bytes at 8192: why".
Error io_error(const std::string& disk, const Io& io, const std::string& why, Errc code = Errc::kIo);

// Sets the status and calls `done`. The Io must not be touched afterwards.
void complete(Io& io, Status status);

}  // namespace mdfs::device
