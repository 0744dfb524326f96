// The place of one disk in a mounted volume. Disks may be attached, detached and replaced while the volume is in use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/disk.h"
#include "device/disk_counters.h"
#include "device/request_schedule.h"
#include "store/unflushed.h"

namespace mdfs::store {

// Counts requests. Without a disk every request ends with kMissingDisk. Any thread may call any method of Disk.
// attach() and detach() are called by one thread at a time.
//
// A device or file that was truncated or deleted while in use has failed, for as long as it is attached: before each
// write, discard and flush the slot looks at it, and requests other than reads end with kIo. A write therefore does not
// make a truncated file long again.
class DiskSlot final : public device::Disk {
 public:
  // `name` is for a place without a disk.
  explicit DiskSlot(std::string name, std::unique_ptr<device::Disk> disk = nullptr);

  const std::string& name() const override { return *name_.load(); }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  Result<std::uint64_t> measure() override;
  // A truncated disk keeps its smallest size, and a deleted file is deleted for good.
  Result<device::Condition> condition() override;
  std::uint64_t room_bytes() override;
  bool writable() const override { return writable_; }
  void submit(std::span<device::Io* const> batch) override { submit_some(batch, Writes::kRemembered); }

  // The same disk for the writes of commits, which are not remembered. The commit has their checksums or waits for a
  // flush, and no commit begins before the flush of the one before it.
  device::Disk& for_commits() { return for_commits_; }

  // Of the present disk, since it was attached.
  device::DiskCounters* counters() override { return &counters_; }
  // Writes through this slot that may not be flushed, without those of commits.
  Unflushed& unflushed() { return unflushed_; }

  // Later writes and discards are programming errors while true. Not before the first disk is attached.
  void forbid_writes(bool forbidden) { writes_forbidden_ = forbidden; }

  // From now on requests other than reads end with kMissingDisk, until another disk is attached: the disk failed, and
  // the volume continues without it.
  void leave_out() { out_ = true; }
  bool is_out() const { return out_; }

  // The volume uses so many bytes of the disk that is attached. A smaller device or file was truncated.
  void require(std::uint64_t bytes) { required_bytes_ = bytes; }
  // While true, the disk gets reads and writes in the order of a schedule, by the urgency of the threads that submit
  // them. `number` is that of the disk in its volume.
  void keep_schedule(bool wanted, unsigned number);
  void note_trial(double ns_per_byte) { trial_ns_per_byte_ = ns_per_byte; }
  // Waiting requests for bytes of this range get the urgency of a reserved one, if that is earlier.
  void hurry(std::uint64_t offset, std::uint64_t bytes, const device::Urgency& urgency);

  // Looks at the device or file. kIo: it was truncated or deleted, now or before.
  Status check_condition();
  // Found by check_condition() so far: the smallest size of a truncated disk in bytes; that the file was deleted.
  std::optional<std::uint64_t> truncated_to() const {
    const std::uint64_t least = least_bytes_;
    return least == kNeverTruncated ? std::nullopt : std::optional(least);
  }
  bool deleted() const { return deleted_; }

  // The slot must be without a disk.
  void attach(std::unique_ptr<device::Disk> disk);
  // Later requests find no disk. Returns when the present requests have ended and the disk is closed.
  void detach();

 private:
  class ForCommits final : public device::Disk {
   public:
    explicit ForCommits(DiskSlot& slot) : slot_(slot) {}
    const std::string& name() const override { return slot_.name(); }
    std::uint64_t size_bytes() const override { return slot_.size_bytes(); }
    bool writable() const override { return slot_.writable(); }
    void submit(std::span<device::Io* const> batch) override { slot_.submit_some(batch, Writes::kForgotten); }
    device::DiskCounters* counters() override { return slot_.counters(); }

   private:
    DiskSlot& slot_;
  };
  enum class Writes : std::uint8_t { kRemembered, kForgotten };
  struct Pending;
  // kIo or kMissingDisk: only reads may be passed on.
  Status check_usable();
  // Of a disk that has failed, the reads only.
  void submit_some(std::span<device::Io* const> batch, Writes writes);
  void pass_on(std::span<device::Io* const> batch, Writes writes);
  // To the disk itself, at once.
  void start(device::Disk& disk, std::span<device::Io* const> batch);
  void put_into_schedule(std::span<device::Io* const> batch);
  // Starts what the schedule lets start. One thread at a time does, for all.
  void start_scheduled();
  static void ended(device::Io& io);
  void note_size(std::uint64_t bytes);

  static constexpr std::uint64_t kNeverTruncated = UINT64_MAX;

  std::unique_ptr<device::Disk> owned_;
  std::atomic<device::Disk*> disk_{nullptr};
  std::atomic<std::uint64_t> users_{0};  // present requests, and threads inside submit()
  std::deque<std::string> names_;        // of all disks so far, because callers may hold references to them
  std::atomic<const std::string*> name_{nullptr};
  std::atomic<std::uint64_t> size_bytes_{0};
  std::atomic<bool> writable_{false};
  std::atomic<bool> writes_forbidden_{false};
  std::atomic<bool> out_{false};
  std::atomic<std::uint64_t> required_bytes_{0};
  std::atomic<std::uint64_t> least_bytes_{kNeverTruncated};
  std::atomic<bool> deleted_{false};
  device::DiskCounters counters_;
  Unflushed unflushed_;

  std::atomic<bool> keeps_schedule_{false};
  std::atomic<double> trial_ns_per_byte_{0};
  std::mutex schedule_mutex_;  // guards the four below
  device::RequestSchedule schedule_;
  unsigned number_ = 0;
  bool starting_ = false;  // a thread is in start_scheduled()
  bool more_ = false;      // that thread is to look once more

  ForCommits for_commits_{*this};
};

}  // namespace mdfs::store
