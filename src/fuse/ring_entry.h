// A ring entry: one request of the kernel at a time, and its answer (FUSE over io_uring).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.h"
#include "device/command_ring.h"
#include "fuse/ring_frame.h"
#include "fuse/session.h"

namespace mdfs::fuse {

// Handles a request, as read(2) of /dev/fuse gives it. The answer may come later, from another thread.
using ServeRequest = std::function<void(MutableBytes request)>;

// Of /dev/fuse, as long as rings use it.
struct RingConnection {
  int fd = -1;
  ServeRequest serve;
  std::function<void()> fail;  // the kernel takes no ring, and no caller would ever get an answer
};

// Payloads that have once been large keep their pages for the next request, up to kMaxKeptBytes of all entries.
class KeptPayloads {
 public:
  static constexpr std::size_t kMaxKeptBytes = 8u << 20;
  void add(std::size_t bytes) { bytes_ += bytes; }
  void remove(std::size_t bytes) { bytes_ -= bytes; }
  bool too_many() const { return bytes_ > kMaxKeptBytes; }

 private:
  std::atomic<std::size_t> bytes_{0};
};

class RingEntry;

// The thread whose ring holds an entry.
class RingEntryOwner {
 public:
  // The entry's request has been answered; `in_serve`: by the thread that still is in serve() of the entry.
  virtual void deliver(RingEntry& entry, bool in_serve) = 0;

 protected:
  ~RingEntryOwner() = default;
};

// The thread whose ring holds the entry owns it while the kernel does. From the arrival of a request until its answer
// the entry belongs to the thread that handles the request. The memory has no pages before its first use.
class RingEntry {
 public:
  // kNoMemory.
  static Result<std::unique_ptr<RingEntry>> create(RingEntryOwner& owner, std::uint16_t queue, KeptPayloads& kept);
  ~RingEntry();
  RingEntry(const RingEntry&) = delete;
  RingEntry& operator=(const RingEntry&) = delete;

  std::uint16_t queue() const { return queue_; }
  // Of the request that is being handled; 0: none is. Any thread.
  std::uint64_t unique() const { return unique_.load(std::memory_order_acquire); }
  // True if the request is being handled, or lies in the entry and is about to be. Any thread.
  bool holds(std::uint64_t unique) const;
  // Both are the memory that the kernel reads and writes while it has the entry.
  RingEntryHeader& header() const { return *reinterpret_cast<RingEntryHeader*>(memory_); }
  MutableBytes payload() { return {memory_ + kHeadBytes, kMaxTransferBytes}; }

  // ---- for the thread whose ring holds the entry
  bool with_kernel() const { return with_kernel_; }
  // Of the newest request, and the inode that it is about.
  std::uint64_t request() const { return commit_id_.load(std::memory_order_relaxed); }
  std::uint64_t node() const { return node_; }
  bool reads_ahead() const { return fuse::reads_ahead(header()); }
  // Queues the command that gives the entry to the kernel, with the answer after the first time.
  bool hand_over(device::CommandRing& ring, int fd, std::uint64_t token);
  // A request has arrived.
  void note_arrival();
  // True for the request by which the daemon makes the kernel look at a queue (RingOverflow), which is answered then.
  bool answer_kick();
  // Gives large payloads back, if there are too many; the kernel must not be using the memory.
  bool keeps_too_much() const;
  void drop_payload();

  // ---- for the thread that handles the request
  // The entry whose request the calling thread is handling in serve(), and has not answered yet; null: none.
  static RingEntry* current();
  // Calls `serve` with the request; a malformed one is answered with EIO. True: answered before the return. False: the
  // answer comes from another thread, or has come, and the entry may be in use again. The request's bytes are of no use
  // after the return of `serve`.
  bool serve(const ServeRequest& serve);
  // Takes an answer as libfuse makes it.
  void answer(std::span<const iovec> parts);

 private:
  static constexpr std::size_t kHeadBytes = 4096;  // the header, and room before the payload
  static_assert(kHeadBytes >= sizeof(RingEntryHeader) + kFrameRoomBytes);

  RingEntry(RingEntryOwner& owner, std::uint16_t queue, std::byte* memory, KeptPayloads& kept);
  void write_answer(std::span<const iovec> parts);
  void note_use(std::size_t payload_bytes);

  RingEntryOwner& owner_;
  const std::uint16_t queue_;
  std::byte* const memory_;
  KeptPayloads& kept_;
  const std::array<iovec, 2> vectors_;
  bool registered_ = false, with_kernel_ = false;
  std::atomic<std::uint64_t> commit_id_{0};
  std::uint64_t node_ = 0;
  std::mutex answering_;  // an answer is written, or the payload of a request that waits for one is given back
  std::atomic<std::uint64_t> unique_{0};
  std::size_t used_bytes_ = 0;  // of the payload, since it had no pages
};

// The first `unique` of requests that the daemon asks for; the kernel counts its own from 0.
constexpr std::uint64_t kKickUnique = std::uint64_t{1} << 62;

}  // namespace mdfs::fuse
