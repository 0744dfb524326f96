// Whole reads and writes on a file descriptor that closes itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::tools {

// An open file and its name in messages. Movable, closed by its owner.
class File {
 public:
  File() = default;
  File(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  File(File&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)), borrowed_(other.borrowed_) {}
  File& operator=(File&& other) noexcept;
  ~File();

  // flags and mode as open(2); O_CLOEXEC is added.
  static Result<File> open(const std::string& path, int flags, unsigned mode = 0666);
  // Standard input or output; not closed.
  static File standard_input();
  static File standard_output();

  int fd() const { return fd_; }
  const std::string& name() const { return name_; }

  Result<std::uint64_t> size_bytes() const;
  // Reads up to all of `into`; fewer bytes only at the end of the file.
  Result<std::size_t> read(MutableBytes into);
  // Reads all of `into`, or returns an error with the file and the number of missing bytes, later ones included.
  Status read_exactly(MutableBytes into, std::uint64_t behind_bytes = 0);
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into);
  Status write(ConstBytes from);
  Status write_at(std::uint64_t offset, ConstBytes from);
  // Closes the file and returns the error of close(2), which may be a late write error.
  Status close();

 private:
  int fd_ = -1;
  std::string name_;
  bool borrowed_ = false;
};

// The size of a regular file, to the byte; of anything else, `otherwise`.
std::uint64_t size_of_file(const std::string& path, std::uint64_t otherwise);

}  // namespace mdfs::tools
