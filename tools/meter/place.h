// Where a measurement takes place: a folder of any filesystem, in which it makes its files, or a file that it reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "meter/profile.h"
#include "meter/requests.h"
#include "meter/scratch.h"
#include "support/file.h"

namespace mdfs::tools {

// Owns the files that it makes. open() may be called by any thread, all else by one.
class MeterPlace {
 public:
  // `most_bytes`: of all files together, at most. Nothing is made yet. kInvalidArgument: a file, and the profile
  // writes.
  static Result<MeterPlace> look(const std::string& path, const meter::Profile& profile, unsigned clients,
                                 std::uint64_t most_bytes, bool direct);

  // Makes the files, with random bytes if the profile wants them full. kNoSpace, before anything is written: they do
  // not fit. kCancelled soon after `interrupted` has become true.
  Status prepare(const meter::Profile& profile, const std::atomic<bool>& interrupted);
  // Before each measurement: files that begin empty are made empty, all files are flushed, and with `drop_caches` the
  // kernel forgets what it has cached. kCancelled as of prepare().
  Status begin(const meter::Profile& profile, bool drop_caches, const std::atomic<bool>& interrupted);
  // For reading, and unless the place is a file for writing.
  Result<File> open(const meter::Profile& profile, unsigned client, unsigned file) const;
  // Removes all that was made. The destructor does as well, without an error.
  Status remove();

  const std::string& path() const { return path_; }
  const std::string& filesystem() const { return filesystem_; }  // "btrfs", "fuse.mdfs"; empty: unknown
  bool is_file() const { return is_file_; }
  const meter::FileSet& files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }  // of all files

 private:
  MeterPlace() = default;
  Status fill(const meter::Profile& profile, const std::atomic<bool>& interrupted);

  std::string path_;
  std::string filesystem_;
  bool is_file_ = false;
  bool direct_ = false;
  meter::FileSet files_;
  std::uint64_t bytes_ = 0;
  std::optional<ScratchFolder> folder_;
};

// Is this process allowed to drop the caches of the kernel? kNotPermitted with the reason.
Status may_drop_caches();

}  // namespace mdfs::tools
