// A disk in a RADOS cluster: numbered objects of one size, and a header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <rados/librados.hpp>
#include <string>
#include <variant>
#include <vector>

#include "device/disk.h"
#include "device/rados/object_plan.h"
#include "device/rados/pool_room.h"
#include "device/rados/rados_cluster.h"
#include "device/rados/rados_guard.h"
#include "device/rados/rados_header.h"
#include "device/rados/shared_look.h"

namespace mdfs::device {

// Objects that do not exist, and bytes behind the end of an object, read as zeros. A write is on stable storage of all
// replicas when it completes, so a flush has nothing to wait for. Requests of a batch to one object become one
// operation; at most kMaxOperations and about kMaxBytesInFlight are under way, the others wait here. Bytes are copied
// once: an operation that was given up may still refer to its own, never to those of the request.
class RadosDisk final : public Disk {
 public:
  static constexpr std::size_t kMaxOperations = 64;
  static constexpr std::uint64_t kMaxBytesInFlight = std::uint64_t{32} << 20;

  static Result<std::unique_ptr<RadosDisk>> open(const RadosDescription& description);
  // All requests must have completed.
  ~RadosDisk() override;
  RadosDisk(const RadosDisk&) = delete;
  RadosDisk& operator=(const RadosDisk&) = delete;

  const std::string& name() const override { return disk_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  Result<std::uint64_t> measure() override;
  Result<Condition> condition() override;
  std::uint64_t room_bytes() override { return room_.bytes(); }
  bool writable() const override { return writable_; }
  void submit(std::span<Io* const> batch) override;

 private:
  struct Transfer;
  struct Operation;
  // A discard makes its operations one after another: there may be millions.
  struct Discard {
    Transfer* transfer;
    DiskRange range;
  };
  using Waiting = std::variant<std::unique_ptr<Operation>, Discard>;

  RadosDisk(std::shared_ptr<RadosConnection> connection, librados::IoCtx io, const RadosDescription& description,
            RadosName name, RadosHeader header);
  void plan(const std::vector<Io*>& ios, bool write, std::deque<Waiting>& waiting);
  void pump();
  // The caller holds mutex_. Null: nothing may start now.
  std::unique_ptr<Operation> take_next();
  // Zero, or the error with which it did not start.
  int start(Operation& operation);
  static void answered(librados::completion_t completion, void* argument);
  void end_flight(const Operation& operation);
  void finish(std::unique_ptr<Operation> operation, int result);
  static int scatter(Operation& operation, int result);
  void end_part(Transfer& transfer, int result);
  void measure_room();
  // Asks the cluster.
  Result<Condition> look();

  const std::shared_ptr<RadosConnection> connection_;
  librados::IoCtx io_;
  const std::string disk_;
  const RadosName name_;
  const std::uint64_t object_bytes_;
  const bool writable_;
  std::atomic<std::uint64_t> size_bytes_;
  RoomEstimate room_;

  std::mutex mutex_;  // guards all below
  std::condition_variable idle_;
  std::deque<Waiting> waiting_;
  std::size_t operations_ = 0;  // in flight
  std::uint64_t bytes_ = 0;     // in flight
  unsigned pumping_ = 0;        // threads in pump()

  std::unique_ptr<RadosGuard> guard_;  // ends before the above; null: opened to look
  std::unique_ptr<SharedLook> look_;   // ends first; null likewise
};

// The header of a disk, asked for at once, so that other questions can be asked meanwhile.
class RadosHeaderQuestion {
 public:
  RadosHeaderQuestion(librados::IoCtx& io, std::string disk, const RadosName& name);
  // Waits for the answer.
  ~RadosHeaderQuestion();
  RadosHeaderQuestion(const RadosHeaderQuestion&) = delete;
  RadosHeaderQuestion& operator=(const RadosHeaderQuestion&) = delete;
  // Likewise. kNotFound: there is no such object; else as decode_rados_header().
  Result<RadosHeader> answer();

 private:
  const std::string disk_;
  librados::AioCompletion* const completion_;
  librados::bufferlist bytes_;
  int result_ = 0;  // of asking
};
inline Result<RadosHeader> read_rados_header(librados::IoCtx& io, const std::string& disk, const RadosName& name) {
  return RadosHeaderQuestion(io, disk, name).answer();
}

// As in RadosModule.
Status create_rados_disk(const RadosDescription& description, std::uint64_t size_bytes, bool replace);
Status grow_rados_disk(const RadosDescription& description, std::uint64_t size_bytes);
Status remove_rados_disk(const RadosDescription& description);
Result<std::vector<std::string>> take_over_rados_disk(const RadosDescription& description);

}  // namespace mdfs::device
