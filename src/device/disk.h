// The only interface to a disk: asynchronous reads, writes and flushes with the rules of O_DIRECT.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace mdfs::device {

// Offsets, lengths and buffer addresses of reads and writes must be multiples of this.
inline constexpr std::size_t kAlignment = 4096;
// A read or write covers at most this many buffers and bytes.
inline constexpr std::size_t kMaxIoVectors = 512;
inline constexpr std::size_t kMaxIoBytes = 16u << 20;

enum class Op : std::uint8_t { kRead, kWrite, kFlush, kDiscard };

// One request. The submitter owns it and its buffers, and keeps both alive until `done` has been called.
struct Io {
  Op op = Op::kRead;
  std::uint64_t offset = 0;           // bytes from the start of the disk
  std::vector<MutableBytes> buffers;  // read into / written from, in order; empty for flush
  std::uint64_t discard_bytes = 0;    // kDiscard only
  // Called exactly once, from any thread, possibly before submit() returns; it must not block on other requests.
  // By then `status` is set. After the call the disk does not touch the Io again.
  void (*done)(Io&) = nullptr;
  void* context = nullptr;                  // for the submitter
  struct DiskCounters* counters = nullptr;  // set by the disk that counts it
  Status status;

  std::uint64_t bytes() const;
};

struct Condition {
  std::uint64_t size_bytes = 0;
  bool deleted = false;  // a file that has lost its last name since it was opened
};

// A disk of a volume. Any thread may call any method at any time.
// A flush covers every write that had completed (done called) before its submission. There is no other order.
// A failed or short transfer is an error (Errc::kIo naming disk, offset and length); reads then leave the buffers
// in an unknown state.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual const std::string& name() const = 0;  // for messages: path of the device or file
  virtual std::uint64_t size_bytes() const = 0;
  // Reads the current size of the device or file; size_bytes() then returns it. One thread at a time.
  virtual Result<std::uint64_t> measure() { return size_bytes(); }
  // The present condition of the device or file, from the system. Any thread.
  virtual Result<Condition> condition() { return Condition{size_bytes(), false}; }
  // Free bytes for new blocks below: in the filesystem of a file with holes, or the pool of a disk in a cluster; else
  // without bound. Any thread.
  virtual std::uint64_t room_bytes() { return UINT64_MAX; }
  virtual bool writable() const = 0;
  // Starts all requests at once. The call never fails: a request that cannot be started completes with an error.
  virtual void submit(std::span<Io* const> batch) = 0;
  // Its counters; null: none.
  virtual DiskCounters* counters() { return nullptr; }
};

// A request addressed to a disk, for run().
struct Addressed {
  Disk* disk;
  Io* io;
};

// Starts all requests on all their disks at once.
void submit(std::span<const Addressed> requests);
// The same, then waits for all, and returns the first error, if any, in order of
// the list. Each Io has its own status. The function overwrites `done` and `context` of the Ios.
Status run(std::span<const Addressed> requests);

// Runs one request and waits for it.
Status read(Disk& disk, std::uint64_t offset, MutableBytes buffer);
Status write(Disk& disk, std::uint64_t offset, ConstBytes buffer);
Status flush(Disk& disk);

}  // namespace mdfs::device
