// Disks that a command makes before it uses them: files, and names in a cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}
namespace mdfs::device {
class UringContext;
}

namespace mdfs::tools {

struct NewDiskOptions {
  std::optional<std::string> size;  // without it the disks exist
  bool sparse = false, force = false;
};
// --size and --sparse. --force has other meanings, too, and is the caller's.
void add_new_disk_options(CLI::App& command, NewDiskOptions& options);
// The bytes of --size, which is given: whole blocks. kUsage: not a size; --sparse without --size.
Result<std::uint64_t> bytes_of_new_disks(const NewDiskOptions& options);
Status check_new_disk_options(const NewDiskOptions& options);

// The disks made so far go away again unless all went well. It outlives what has them open.
class NewDisks {
 public:
  NewDisks() = default;
  ~NewDisks();
  NewDisks(const NewDisks&) = delete;
  NewDisks& operator=(const NewDisks&) = delete;

  // Changes nothing. kExists: a file is there, and there is no --force; kBusy: it is in use.
  static Status check(const std::vector<std::string>& disks, const NewDiskOptions& options,
                      const std::shared_ptr<device::UringContext>& ring);
  // Checks, and makes them. Replaces an existing file only with --force.
  Status make(const std::vector<std::string>& disks, const NewDiskOptions& options,
              const std::shared_ptr<device::UringContext>& ring);
  void keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

}  // namespace mdfs::tools
