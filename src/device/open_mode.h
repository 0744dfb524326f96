// How a disk is opened: for writing, for reading, or without a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mdfs::device {

enum class OpenMode {
  kReadWrite,  // excludes all other users
  kReadOnly,   // shared with other readers of a file; a block device is held alone
  kLook,       // read only, no lock: the data may change at the same time (labels of a mounted volume)
};

}  // namespace mdfs::device
