// Making disks.
// SPDX-License-Identifier: Apache-2.0
#include "support/new_disks.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>

#include "base/checked.h"
#include "base/text.h"
#include "device/open.h"

namespace mdfs::tools {

void add_new_disk_options(CLI::App& command, NewDiskOptions& options) {
  command.add_option("--size", options.size, "Create the disks with this size");
  command.add_flag("--sparse", options.sparse, "With --size: do not allocate the files");
}

Status check_new_disk_options(const NewDiskOptions& options) {
  if (options.sparse && !options.size) return {Errc::kUsage, "--sparse requires --size"};
  return {};
}

Result<std::uint64_t> bytes_of_new_disks(const NewDiskOptions& options) {
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, parse_size(*options.size, "--size"));
  // A smaller one is named as it is.
  return bytes >= device::kAlignment ? align_down(bytes, device::kAlignment) : bytes;
}

NewDisks::~NewDisks() {
  for (const std::string& path : made_)
    if (!device::is_path(path))
      (void)device::remove_disk(path);
    else
      ::unlink(path.c_str());
}

Status NewDisks::check(const std::vector<std::string>& disks, const NewDiskOptions& options,
                       const std::shared_ptr<device::UringContext>& ring) {
  for (const std::string& path : disks) {
    if (!device::is_path(path)) continue;  // create_disk() looks
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno != ENOENT) return from_errno(errno, path);
      continue;
    }
    if (!S_ISREG(status.st_mode))
      return {Errc::kUsage, path + ": --size creates files and cannot be used with a device"};
    if (!options.force) return {Errc::kExists, path + ": leave out --size, or give --force to replace it"};
    MDFS_TRY_ASSIGN(const auto held, device::open_disk(path, device::OpenMode::kReadWrite, ring));
  }
  return {};
}

Status NewDisks::make(const std::vector<std::string>& disks, const NewDiskOptions& options,
                      const std::shared_ptr<device::UringContext>& ring) {
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, bytes_of_new_disks(options));
  MDFS_TRY(check(disks, options, ring));
  for (const std::string& path : disks) {
    if (!device::is_path(path)) {
      MDFS_TRY(device::create_disk(path, bytes, options.force));
      made_.push_back(path);
      continue;
    }
    if (options.force && ::unlink(path.c_str()) != 0 && errno != ENOENT) return from_errno(errno, path);
    if (const Status made = device::create_file_disk(path, bytes, options.sparse); !made.ok()) {
      const Error& error = made.error();
      return {error.code,
              error.code == Errc::kTooBig ? fmt::format("--size {}: {}", *options.size, error.where) : error.where};
    }
    made_.push_back(path);
  }
  return {};
}

}  // namespace mdfs::tools
