// Disks that come and go.
// SPDX-License-Identifier: Apache-2.0
#include "store/disk_slot.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"

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

void DiskSlot::ended(device::Io& io) {
  const std::unique_ptr<Pending> pending(static_cast<Pending*>(io.context));
  io.done = pending->done;
  io.context = pending->context;
  if (pending->remembered) pending->slot->unflushed_.note(io.offset, io.bytes(), io.status.ok(), pending->crc32c);
  --pending->slot->users_;
  io.done(io);
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
    auto* const pending = new Pending{this, io->done, io->context, remembered, std::nullopt};
    if (remembered) pending->crc32c = unflushed_.checksum(*io);
    io->context = pending;
    io->counters = &counters_;
    io->done = ended;
  }
  disk->submit(batch);
  --users_;
}

}  // namespace mdfs::store
