// Interface of mdfs_rados.so: librados and its libraries are loaded only for a disk in a RADOS cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "device/open_mode.h"
#include "device/rados/rados_description.h"
#include "mdfs/version.h"

namespace mdfs::device {

// Both sides must come from one build: a module of another version is not called.
struct RadosModule {
  const char* version;
  // The secret of the user in the keyrings that this configuration names; empty if the cluster asks for none.
  Result<std::string> (*find_key)(const std::string& conf_path, const std::string& user);
  // Connects, and takes the lock of the mode. kBusy names the holder.
  Result<std::unique_ptr<Disk>> (*open)(const RadosDescription& description);
  // Makes the header of a disk. kExists if there is one, unless `replace`: then its lock is taken, and its objects go.
  Status (*create)(const RadosDescription& description, std::uint64_t size_bytes, bool replace);
  // Enlarges the header of a disk that may be in use. A size that the disk has already is left.
  Status (*grow)(const RadosDescription& description, std::uint64_t size_bytes);
  // Removes the header and all objects of a disk that is not in use.
  Status (*remove)(const RadosDescription& description);
  // Fences the writer of a disk, and breaks its lock. Returns who it was: none, or more than one after a broken lock.
  Result<std::vector<std::string>> (*take_over)(const RadosDescription& description);
};

}  // namespace mdfs::device

extern "C" __attribute__((visibility("default"))) const mdfs::device::RadosModule mdfs_rados_module;
