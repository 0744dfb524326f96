// A file that gets its name when it is complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "support/exclusive_file.h"
#include "support/file.h"

namespace mdfs::tools {

// Has no name until commit() (O_TMPFILE), or where the filesystem cannot do that an exclusive hidden one beside its
// target (ExclusiveFile). Existing names are never opened for writing, so a planted link has no effect: a
// link under the target's name is refused or replaced. Nothing remains unless commit() succeeded.
//
// A target that is a pipe or a device is written directly. A link to one, or a pipe, that another user made in a folder
// that others may write is refused. /dev/stdout and /dev/fd/N are the descriptors of this program. Owned by one sink.
class PendingFile {
 public:
  // Refuses an existing file unless `overwrite`.
  static Result<PendingFile> create(const std::string& target, bool overwrite);
  PendingFile(PendingFile&& other) noexcept = default;
  PendingFile& operator=(PendingFile&&) = delete;

  // Write here; for reading and writing unless it is no regular file.
  File& file() { return exclusive_ ? exclusive_->file() : file_; }
  // For libraries that open files by their names: it leads to the same file.
  std::string path() { return path_of_descriptor(file().fd()); }
  const std::string& target() const { return target_; }
  // False for a pipe or a device.
  bool is_regular() const { return kind_ != Kind::kDirect; }
  // Reports every write that failed, also those that fail only when they reach the disk.
  Status commit();

 private:
  enum class Kind { kDirect, kNameless, kHidden };

  PendingFile(std::string target, FilePlace place, Kind kind, bool overwrite)
      : target_(std::move(target)), place_(std::move(place)), kind_(kind), overwrite_(overwrite) {}
  static Result<File> open_direct(const std::string& target, const FilePlace& place);
  Status link_over();

  std::string target_;
  FilePlace place_;
  Kind kind_;
  bool overwrite_;
  File file_;                               // kDirect, kNameless
  std::optional<ExclusiveFile> exclusive_;  // kHidden
};

// Creates the file. An existing one is refused, or with `overwrite` replaced as a whole.
Status write_text_file(const std::string& path, std::string_view text, bool overwrite);

}  // namespace mdfs::tools
