// A fresh folder for the files of a measurement, which removes what it made and nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "support/file.h"

namespace mdfs::tools {

// A folder `.mdfs-meter-XXXXXX` of the caller alone (mode 700), below a folder that is there. Its files have numbers
// from 0 on. The destructor removes the files that make() has made, and the folder; a file of another program in it
// stays, and with it the folder. A program that is killed leaves both. Any thread may call open().
class ScratchFolder {
 public:
  static Result<ScratchFolder> create(const std::string& below);
  ScratchFolder(ScratchFolder&& other) noexcept = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  // The next file, new and empty. flags and modes as open(2).
  Result<File> make(int flags);
  Result<File> open(std::size_t number, int flags) const;
  std::size_t count() const { return count_; }
  const std::string& path() const { return path_; }
  // As the destructor; an error names what stayed. Later calls do nothing.
  Status remove();

 private:
  ScratchFolder(File below, File folder, std::string name, std::string path)
      : below_(std::move(below)), folder_(std::move(folder)), name_(std::move(name)), path_(std::move(path)) {}

  File below_;
  File folder_;
  std::string name_;  // in below_
  std::string path_;  // in messages
  std::size_t count_ = 0;
};

}  // namespace mdfs::tools
