// Disks that come and go.
// SPDX-License-Identifier: Apache-2.0
#include "store/disk_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace mdfs::store {
namespace {

constexpr auto kPollStep = std::chrono::milliseconds(1);

}  // namespace

// The submitter's callback and context, kept while the disk has the request.
struct DiskSlot::Pending {
  DiskSlot* slot;
  void (*done)(device::Io&);
  void* context;
  bool remembered;                      // a write
  std::optional<std::uint32_t> crc32c;  // of such a one, unless it is too much
  device::Disk* disk;
  bool scheduled = false;
  std::shared_ptr<device::BusyTime> busy = nullptr;  // of a scheduled one, unless null
};

DiskSlot::DiskSlot(std::string name, std::unique_ptr<device::Disk> disk) {
  name_ = &names_.emplace_back(std::move(name));
  if (disk) attach(std::move(disk));
}

void DiskSlot::attach(std::unique_ptr<device::Disk> disk) {
  MDFS_CHECK(disk_ == nullptr);
  trial_ns_per_byte_ = 0;
  counters_.reset();
  required_bytes_ = 0;
  least_bytes_ = kNeverTruncated;
  deleted_ = false;
  out_ = false;
  owned_ = std::move(disk);
  size_bytes_ = owned_->size_bytes();
  writable_ = owned_->writable();
  name_ = &names_.emplace_back(owned_->name());
  disk_ = owned_.get();
}

void DiskSlot::detach() {
  disk_ = nullptr;
  while (users_ != 0) std::this_thread::sleep_for(kPollStep);
  owned_.reset();
  writable_ = false;
}

Result<std::uint64_t> DiskSlot::measure() {
  ++users_;
  device::Disk* const disk = disk_;
  auto bytes = disk != nullptr ? disk->measure() : Result<std::uint64_t>(Error{Errc::kMissingDisk, name()});
  --users_;
  if (bytes.ok()) size_bytes_ = *bytes;
  return bytes;
}

void DiskSlot::note_size(std::uint64_t bytes) {
  if (bytes >= required_bytes_) return;
  for (std::uint64_t least = least_bytes_; bytes < least && !least_bytes_.compare_exchange_weak(least, bytes);) {
  }
}

Result<device::Condition> DiskSlot::condition() {
  ++users_;
  device::Disk* const disk = disk_;
  auto found = disk != nullptr ? disk->condition() : Result<device::Condition>(Error{Errc::kMissingDisk, name()});
  --users_;
  if (!found.ok()) return found;
  note_size(found->size_bytes);
  if (found->deleted) deleted_ = true;
  return device::Condition{truncated_to().value_or(found->size_bytes), deleted_};
}

std::uint64_t DiskSlot::room_bytes() {
  ++users_;
  device::Disk* const disk = disk_;
  const std::uint64_t bytes = disk != nullptr ? disk->room_bytes() : UINT64_MAX;
  --users_;
  return bytes;
}

Status DiskSlot::check_condition() {
  MDFS_TRY_ASSIGN(const device::Condition found, condition());
  if (truncated_to())
    return {Errc::kIo, fmt::format("{} was truncated while in use: {} are left of {}", name(),
                                   format_size(found.size_bytes), format_size(required_bytes_))};
  if (found.deleted) return {Errc::kIo, name() + " was deleted while in use"};
  return {};
}

void DiskSlot::ended(device::Io& io) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(io.context));
  io.done = pending->done;
  io.context = pending->context;
  if (pending->remembered) pending->slot->unflushed_.note(io.offset, io.bytes(), io.status.ok(), pending->crc32c);
  DiskSlot& slot = *pending->slot;
  if (io.op == device::Op::kRead) slot.counters_.pace.end(device::ReadPace::now_ns(), io.bytes(), io.status.ok());
  slot.counters_.waiting.fetch_sub(1, std::memory_order_relaxed);
  slot.counters_.waiting_bytes.fetch_sub(io.bytes(), std::memory_order_relaxed);
  if (pending->scheduled) {
    {
      const std::lock_guard lock(slot.schedule_mutex_);
      const std::int64_t took_ns = slot.schedule_.ended(&io, device::ReadPace::now_ns());
      if (pending->busy) pending->busy->add(slot.number_, took_ns);
    }
    slot.start_scheduled();
  }
  --slot.users_;
  io.done(io);
}

void DiskSlot::keep_schedule(bool wanted, unsigned number) {
  {
    const std::lock_guard lock(schedule_mutex_);
    number_ = number;
    keeps_schedule_ = wanted;
  }
  if (!wanted) start_scheduled();
}

void DiskSlot::hurry(std::uint64_t offset, std::uint64_t bytes, const device::Urgency& urgency) {
  if (!keeps_schedule_) return;
  const auto is_meant = [&](const device::Io& io) {
    return io.offset < offset + bytes && offset < io.offset + io.bytes();
  };
  {
    const std::lock_guard lock(schedule_mutex_);
    schedule_.hurry(is_meant, urgency, device::ReadPace::now_ns());
  }
  start_scheduled();
}

void DiskSlot::start(device::Disk& disk, std::span<device::Io* const> batch) {
  const std::int64_t now_ns = device::ReadPace::now_ns();
  for (const device::Io* io : batch)
    if (io->op == device::Op::kRead) counters_.pace.begin(now_ns);
  disk.submit(batch);
}

void DiskSlot::put_into_schedule(std::span<device::Io* const> batch) {
  const std::int64_t now_ns = device::ReadPace::now_ns();
  // A disk that lets a burst through, as those with a cache or a limit do, looks fast now. Of that the trial knows.
  const double ns_per_byte =
      std::max(trial_ns_per_byte_.load(), counters_.pace.ns_per_byte(now_ns).value_or(device::kUnknownNsPerByte));
  const device::Urgency& urgency = device::urgency();
  const std::lock_guard lock(schedule_mutex_);
  for (device::Io* io : batch) {
    auto* const pending = static_cast<Pending*>(io->context);
    pending->scheduled = true;
    pending->busy = urgency.busy;
    const double bytes = static_cast<double>(io->bytes() + device::kRequestBytes);
    schedule_.add(io, urgency, static_cast<std::int64_t>(bytes * ns_per_byte), now_ns);
  }
}

void DiskSlot::start_scheduled() {
  std::unique_lock lock(schedule_mutex_);
  more_ = true;
  if (starting_) return;
  starting_ = true;
  // The last request may end before the call that starts it does: detach() waits for this thread, too.
  ++users_;
  while (std::exchange(more_, false)) {
    std::vector<device::Io*> batch;
    const std::int64_t now_ns = device::ReadPace::now_ns();
    // Without a schedule all that still waits starts now, as if the disk had room for it.
    while (device::Io* const io = keeps_schedule_ ? schedule_.next(now_ns) : schedule_.next_of_all(now_ns))
      batch.push_back(io);
    if (batch.empty()) continue;
    lock.unlock();
    for (device::Io* io : batch) start(*static_cast<const Pending*>(io->context)->disk, {&io, 1});
    lock.lock();
  }
  starting_ = false;
  --users_;
}

Status DiskSlot::check_usable() {
  if (out_) return {Errc::kMissingDisk, name() + " failed, and the volume continues without it"};
  return check_condition();
}

void DiskSlot::submit_some(std::span<device::Io* const> batch, Writes writes) {
  const bool only_reads =
      std::all_of(batch.begin(), batch.end(), [](const device::Io* io) { return io->op == device::Op::kRead; });
  const Status usable = only_reads ? Status() : check_usable();
  if (usable.ok()) return pass_on(batch, writes);
  std::vector<device::Io*> reads;
  for (device::Io* io : batch)
    if (io->op == device::Op::kRead) reads.push_back(io);
  for (device::Io* io : batch) {
    if (io->op == device::Op::kRead) continue;
    io->status = usable;
    io->done(*io);
  }
  if (!reads.empty()) pass_on(reads, writes);
}

void DiskSlot::pass_on(std::span<device::Io* const> batch, Writes writes) {
  users_ += batch.size() + 1;
  device::Disk* const disk = disk_;
  if (disk == nullptr) {
    users_ -= batch.size() + 1;
    for (device::Io* io : batch) {
      io->status = Error{Errc::kMissingDisk, name()};
      io->done(*io);
    }
    return;
  }
  const bool forbidden = writes_forbidden_;
  for (device::Io* io : batch) {
    MDFS_CHECK(!forbidden || io->op == device::Op::kRead || io->op == device::Op::kFlush);
    const bool remembered = writes == Writes::kRemembered && io->op == device::Op::kWrite;
    auto* const pending = new Pending{this, io->done, io->context, remembered, std::nullopt, disk};
    if (remembered) pending->crc32c = unflushed_.checksum(*io);
    io->context = pending;
    io->counters = &counters_;
    io->done = ended;
    counters_.waiting.fetch_add(1, std::memory_order_relaxed);
    counters_.waiting_bytes.fetch_add(io->bytes(), std::memory_order_relaxed);
  }
  if (!keeps_schedule_) {
    start(*disk, batch);
  } else {
    // A flush waits for nothing: it covers the writes that have ended.
    std::vector<device::Io*> transfers, others;
    for (device::Io* io : batch)
      (io->op == device::Op::kRead || io->op == device::Op::kWrite ? transfers : others).push_back(io);
    put_into_schedule(transfers);
    start_scheduled();
    if (!others.empty()) start(*disk, others);
  }
  --users_;
}

}  // namespace mdfs::store
