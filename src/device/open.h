// Opens and creates the disks of a volume: kind, size, locks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/disk.h"
#include "device/disk_scheme.h"
#include "device/open_mode.h"
#include "device/unique_fd.h"
#include "device/uring_context.h"

namespace mdfs::device {

// A block device or a regular file. Opens with O_DIRECT. Where the filesystem of a file refuses it (tmpfs before
// Linux 6.6), uses the page cache and logs that. The size is rounded down to kAlignment.
// kBusy: a block device that is mounted, swapped on or held by another program (O_EXCL), or a file that is locked or
// stands behind a loop device. kNotFound, kAccessDenied; kInvalidArgument for anything that is not a disk.
// The lock lasts as long as the disk, across fork().
Result<std::unique_ptr<Disk>> open_disk(const std::string& path, OpenMode mode, std::shared_ptr<UringContext> context);
// The same, but waits up to `patience` while another program holds the disk: the locks of a killed program go
// when the kernel has destroyed its io_uring, some time after its end.
Result<std::unique_ptr<Disk>> open_disk_when_free(const std::string& path, OpenMode mode,
                                                  const std::shared_ptr<UringContext>& context,
                                                  std::chrono::steady_clock::time_point patience);

// Both parts separately, for a disk that one program opens and checks and another one uses: the locks go with
// the descriptor. adopt_disk() accepts a descriptor from any program, and checks what it is.
Result<UniqueFd> open_disk_descriptor(const std::string& path, OpenMode mode);
Result<UniqueFd> open_descriptor_when_free(const std::string& path, OpenMode mode,
                                           std::chrono::steady_clock::time_point patience);
Result<std::unique_ptr<Disk>> adopt_disk(const std::string& name, UniqueFd fd, std::shared_ptr<UringContext> context);

// False if a scheme whose names are no paths accepts the name.
bool is_path(const std::string& disk, std::span<const DiskScheme> table = scheme_table());
// True if the disk is reached over a network.
bool is_remote(const std::string& disk);
// The name of the disk for a program with another working directory: the path from /, without links, or a name that is
// no path as it is. An error if the path does not exist.
Result<std::string> full_name(const std::string& disk, std::span<const DiskScheme> table = scheme_table());

// As create, grow and remove of the disk's scheme. kNotSupported: it has no such function.
Status create_disk(const std::string& disk, std::uint64_t size_bytes, bool replace);
Status grow_disk(const std::string& disk, std::uint64_t size_bytes);
Status remove_disk(const std::string& disk);
// Makes sure that the present writer of a disk, alive or not, never writes again, and frees the disk. Returns the
// writers, for messages: none if there was none. kBusy: somebody reads the disk. kNotSupported names what to do
// instead.
Result<std::vector<std::string>> take_disk_over(const std::string& disk);

// Creates a new file of this size (a multiple of kAlignment), with all blocks allocated unless `sparse`, and makes its
// name durable. kExists if the name exists. A failure leaves nothing behind.
Status create_file_disk(const std::string& path, std::uint64_t size_bytes, bool sparse);

}  // namespace mdfs::device
