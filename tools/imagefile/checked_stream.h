// A stream for libraries that overlook failed writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "support/file.h"

namespace mdfs::imagefile {

// Keeps the first error of a file. After an error the stream accepts and drops every write, because libjpeg ends the
// program when a write fails. A pipe can be written from start to end. Used by one thread at a time.
class CheckedStream {
 public:
  // `file` outlives the stream, and is written by nothing else meanwhile.
  static Result<std::unique_ptr<CheckedStream>> create(tools::File& file);

  // Changes the first bytes that leave the buffer (256 KiB, or all) on their way into the file. Before the first write.
  void change_start(std::function<std::string(ConstBytes)> change) { change_start_ = std::move(change); }

  std::FILE* stream() { return stream_.get(); }
  // The first error of what has left the stream's buffer.
  const Status& status() const { return status_; }
  // Writes the buffer out, and returns the first error of all.
  Status flush();

 private:
  struct Close {
    void operator()(std::FILE* stream) const { std::fclose(stream); }
  };

  explicit CheckedStream(tools::File& file) : file_(file) {}
  static ssize_t read(void* self, char* into, std::size_t size);
  static ssize_t write(void* self, const char* from, std::size_t size);
  static int seek(void* self, off64_t* offset, int whence);
  void put(ConstBytes bytes);

  tools::File& file_;
  Status status_;
  std::uint64_t at_ = 0;          // where the stream is
  std::uint64_t sequential_ = 0;  // where the descriptor is, without what change_start() added
  std::function<std::string(ConstBytes)> change_start_;
  std::unique_ptr<std::FILE, Close> stream_;  // closed first: closing writes
};

}  // namespace mdfs::imagefile
