// A file that takes its name only when it is complete.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace mdfs::imagefile {

// Lives beside its target under a hidden name with the same ending, and is removed unless commit() succeeded. A target
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
  PendingFile(std::string target, std::string path, bool overwrite)
      : target_(std::move(target)), path_(std::move(path)), overwrite_(overwrite) {}
  bool direct() const { return path_ == target_; }

  std::string target_;
  std::string path_;
  bool overwrite_;
  bool done_ = false;
};

}  // namespace mdfs::imagefile
