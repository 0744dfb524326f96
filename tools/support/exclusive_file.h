// A file under an exclusive hidden name, until it gets its final name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "support/file.h"
#include "support/leftovers.h"

namespace mdfs::tools {

// The open folder of a future file, and the name of the file there.
struct FilePlace {
  static Result<FilePlace> of(const std::string& path);

  File folder;
  std::string prefix;  // of paths in the folder: empty, or ending in '/'
  std::string base;
};

// A new file of the caller under a hidden name (.part-UID-NUMBER). An existing file, link or pipe is never opened: the
// program takes another name. The file is removed by the destructor and by SIGINT, SIGTERM and SIGHUP, unless commit()
// gave it its own name. A lock of flock(2) tells living programs' files from those of killed ones; create() removes
// the caller's files of killed programs in that folder. One owner; not thread-safe.
class ExclusiveFile {
 public:
  // Makes a new file of that path with O_EXCL, or an error of code kExists.
  using Maker = std::function<Status(const std::string& path)>;

  static Result<ExclusiveFile> create(const FilePlace& place, const Maker& make);
  // An empty file, as open(2) makes it.
  static Result<ExclusiveFile> create(const FilePlace& place);

  ExclusiveFile(ExclusiveFile&& other) noexcept;
  ExclusiveFile& operator=(ExclusiveFile&&) = delete;
  ~ExclusiveFile();

  // Open for reading and writing.
  File& file() { return file_; }
  const std::string& path() const { return path_; }
  // In the folder it was made in.
  Status commit(const FilePlace& place, bool replace);

 private:
  ExclusiveFile(File file, std::string path, std::unique_ptr<Leftover> leftover)
      : file_(std::move(file)), path_(std::move(path)), leftover_(std::move(leftover)) {}

  File file_;
  std::string path_;  // empty: it has its own name
  std::unique_ptr<Leftover> leftover_;
};

// The path of a descriptor, for libraries that open files by their names.
std::string path_of_descriptor(int fd);

// A temporary name in the folder, for a file that will replace another.
Result<std::string> random_hidden_name();

}  // namespace mdfs::tools
