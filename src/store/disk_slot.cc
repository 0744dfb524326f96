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
};

DiskSlot::DiskSlot(std::string name, std::unique_ptr<device::Disk> disk) {
  name_ = &names_.emplace_back(std::move(name));
  if (disk) attach(std::move(disk));
}

void DiskSlot::attach(std::unique_ptr<device::Disk> disk) {
  MDFS_CHECK(disk_ == nullptr);
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
  if (io.op == device::Op::kRead)
    pending->slot->counters_.pace.end(device::ReadPace::now_ns(), io.bytes(), io.status.ok());
  pending->slot->counters_.waiting.fetch_sub(1, std::memory_order_relaxed);
  pending->slot->counters_.waiting_bytes.fetch_sub(io.bytes(), std::memory_order_relaxed);
  --pending->slot->users_;
  io.done(io);
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
  const std::int64_t now_ns = device::ReadPace::now_ns();
  for (device::Io* io : batch) {
    MDFS_CHECK(!forbidden || io->op == device::Op::kRead || io->op == device::Op::kFlush);
    const bool remembered = writes == Writes::kRemembered && io->op == device::Op::kWrite;
    auto* const pending = new Pending{this, io->done, io->context, remembered, std::nullopt};
    if (remembered) pending->crc32c = unflushed_.checksum(*io);
    io->context = pending;
    io->counters = &counters_;
    io->done = ended;
    if (io->op == device::Op::kRead) counters_.pace.begin(now_ns);
    counters_.waiting.fetch_add(1, std::memory_order_relaxed);
    counters_.waiting_bytes.fetch_add(io->bytes(), std::memory_order_relaxed);
  }
  disk->submit(batch);
  --users_;
}

}  // namespace mdfs::store
