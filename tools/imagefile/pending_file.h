// A file that takes its name only when it is complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "support/leftovers.h"

namespace mdfs::imagefile {

// Lives beside its target under a hidden name with the same ending, and is removed unless commit() succeeded,
// also when a signal ends the program. A target
// that exists and is no regular file (a pipe, /dev/null) is written directly. Owned by one sink.
class PendingFile {
 public:
  // Refuses an existing file unless `overwrite`. Makes nothing yet.
  static Result<PendingFile> create(const std::string& target, bool overwrite);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  // Write here.
  const std::string& path() const { return path_; }
  const std::string& target() const { return target_; }
  Status commit();

 private:
  PendingFile(std::string target, std::string path, bool overwrite);
  bool direct() const { return path_ == target_; }

  std::string target_;
  std::string path_;
  std::unique_ptr<tools::Leftover> leftover_;  // of the hidden name
  bool overwrite_;
  bool done_ = false;
};

}  // namespace mdfs::imagefile
