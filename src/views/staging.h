// Stages bytes written to a window until they are applied: in memory for small windows, else in an unlinked file.
// Each user but root may have half of the files that the others leave, so that no user keeps the others from writing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/aligned_buffer.h"
#include "base/bytes.h"
#include "base/result.h"
#include "views/byte_ranges.h"

namespace mdfs::views {

struct StagingLimits {
  std::uint64_t memory_bytes = 8u << 20;                // all stagings together, in memory
  std::uint64_t window_bytes = std::uint64_t{4} << 30;  // one window; more is kTooBig
  std::uint64_t file_bytes = std::uint64_t{16} << 30;   // all stagings together, in files; more is kNoSpace
  // All stagings together; each is an open file: a quarter of the 1024 that a process usually may have.
  std::uint64_t files = 256;
};

// True if a user who holds `own` of `all` may have so many more of `limit`. Root may have all that is free, every other
// user half of what the others leave.
bool may_have_more(std::uint32_t owner, std::uint64_t own, std::uint64_t all, std::uint64_t more, std::uint64_t limit);

// Shared by all stagings of a mount. Any thread.
class StagingPool {
 public:
  // `directory` takes the unlinked files (on a disk: they are as large as the windows). Fails if it cannot be opened.
  static Result<std::unique_ptr<StagingPool>> open(const std::string& directory, const StagingLimits& limits);
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  const StagingLimits& limits() const { return limits_; }
  // Fails if this user may not create files there. Where the filesystem has no unnamed files, only the windows
  // that need one fail.
  Status try_file();

 private:
  friend class Staging;
  StagingPool(std::string directory, int directory_fd, const StagingLimits& limits)
      : directory_(std::move(directory)), directory_fd_(directory_fd), limits_(limits) {}
  struct Files {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  bool take_memory(std::uint64_t bytes);
  void give_back_memory(std::uint64_t bytes);
  Status take_file(std::uint32_t owner, std::uint64_t bytes);
  void give_back_file(std::uint32_t owner, std::uint64_t bytes);
  Result<int> new_file();

  const std::string directory_;
  const int directory_fd_;
  const StagingLimits limits_;
  std::mutex mutex_;  // guards all below
  std::uint64_t memory_used_ = 0;
  Files all_;
  std::map<std::uint32_t, Files> by_owner_;  // of owners that have some
};

// `capacity` bytes, none written at first. write() and fill() by one thread at a time; read() by any number while
// no thread writes.
class Staging {
 public:
  static constexpr std::size_t kMaxPieces = 65536;  // separate ranges remembered

  // `owner`: the writing user. kNoSpace: the limits of the pool, or the owner's share of them, are reached.
  static Result<std::unique_ptr<Staging>> create(StagingPool& pool, std::uint32_t owner, std::uint64_t capacity);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::uint64_t capacity() const { return capacity_; }
  const ByteRanges& written() const { return written_; }
  // Inside the capacity (abort). kNoSpace: too many separate pieces, or the staging directory is full.
  Status write(std::uint64_t offset, ConstBytes from);
  // Bytes not written have no meaning.
  Status read(std::uint64_t offset, MutableBytes into) const;

 private:
  Staging(StagingPool& pool, std::uint32_t owner, std::uint64_t capacity, bool in_memory);

  StagingPool& pool_;
  const std::uint32_t owner_;
  const std::uint64_t capacity_;
  AlignedBuffer memory_;  // in use if not empty
  int file_ = -1;
  ByteRanges written_;
};

}  // namespace mdfs::views
