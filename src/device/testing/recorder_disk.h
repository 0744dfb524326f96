// A decorator that records the requests to the disks of a volume, in one order, to replay power cuts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {

enum class EventKind : std::uint8_t {
  kStart,  // a write, flush or discard was handed to the disk
  kEnd,    // it completed; logged before the submitter's `done` is called
  kMark,   // of the test: "operation i returned"
};

// One line of the log. Its position in the log is its time.
struct Event {
  EventKind kind = EventKind::kMark;
  Op op = Op::kWrite;
  std::uint32_t disk = 0;
  std::uint64_t request = 0;               // kStart and kEnd of one request share it; unique in the log
  std::uint64_t offset = 0;                // kStart of write and discard
  std::uint64_t length = 0;                // bytes; kStart of write and discard
  std::shared_ptr<const ByteVector> data;  // kStart of a write
  bool ok = true;                          // kEnd: whether it succeeded
  std::string mark;                        // kMark
  std::uint64_t value = 0;                 // kMark
};

// The log shared by all recorders of a volume. Any thread may call any method.
// If one request ended before another was started by a thread that knew it, the log has them in that order.
class RecorderLog {
 public:
  RecorderLog() = default;
  // Continues `events`: writes that an earlier daemon has left in the caches of the disks.
  explicit RecorderLog(std::vector<Event> events);
  void mark(std::string text, std::uint64_t value = 0);
  // A copy of the present log; written data are shared, not copied.
  std::vector<Event> events() const;
  std::size_t size() const;
  void clear();

 private:
  friend class RecorderDisk;
  std::uint64_t start(std::uint32_t disk, const Io& io);
  void end(std::uint32_t disk, Op op, std::uint64_t request, bool ok);

  mutable std::mutex mutex_;  // guards all below
  std::vector<Event> events_;
  std::uint64_t next_request_ = 1;
};

// Passes everything on to `inner`. Does not log reads, and requests that a disk refuses before it starts them. Borrows
// the disk and the log; all requests must have ended before it is destroyed.
class RecorderDisk final : public Disk {
 public:
  // `index` is the number of the disk in the log and in the replayer.
  RecorderDisk(Disk& inner, RecorderLog& log, std::uint32_t index) : inner_(inner), log_(log), index_(index) {}

  const std::string& name() const override { return inner_.name(); }
  std::uint64_t size_bytes() const override { return inner_.size_bytes(); }
  Result<std::uint64_t> measure() override { return inner_.measure(); }
  Result<Condition> condition() override { return inner_.condition(); }
  std::uint64_t room_bytes() override { return inner_.room_bytes(); }
  bool writable() const override { return inner_.writable(); }
  void submit(std::span<Io* const> batch) override;

 private:
  struct Pending;
  static void ended(Io& io);

  Disk& inner_;
  RecorderLog& log_;
  const std::uint32_t index_;
};

}  // namespace mdfs::device
