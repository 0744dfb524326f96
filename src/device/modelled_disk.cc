// Passes transfers on, and enters them into the model.
// SPDX-License-Identifier: Apache-2.0
#include "device/modelled_disk.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "device/request.h"

namespace mdfs::device {

ModelledDisk::ModelledDisk(std::unique_ptr<Disk> inner, std::shared_ptr<ModelledMachine> machine, unsigned index)
    : inner_(std::move(inner)), machine_(std::move(machine)), index_(index) {
  machine_->set_disk(index_, inner_->name(), inner_->size_bytes());
}

void ModelledDisk::submit(std::span<Io* const> batch) {
  std::vector<Io*> inner;
  std::vector<std::unique_ptr<ModelledMachine::Pending>> entered;
  inner.reserve(batch.size());
  for (Io* io : batch) {
    if (auto status = check_request(*this, *io); !status.ok()) {
      complete(*io, std::move(status));
      continue;
    }
    if (io->op == Op::kFlush || io->op == Op::kDiscard) {
      inner.push_back(io);
      continue;
    }
    auto pending = std::make_unique<ModelledMachine::Pending>();
    pending->machine = machine_.get();
    pending->disk = index_;
    pending->outer = io;
    pending->inner.op = io->op;
    pending->inner.offset = io->offset;
    pending->inner.buffers = io->buffers;
    pending->inner.done = transferred;
    pending->inner.context = pending.get();
    inner.push_back(&pending->inner);
    entered.push_back(std::move(pending));
  }
  if (!entered.empty()) machine_->enter(entered);
  for (auto& pending : entered) (void)pending.release();  // finish() deletes it, after its transfer
  if (!inner.empty()) inner_->submit(inner);
}

void ModelledDisk::transferred(Io& io) {
  auto& pending = *static_cast<ModelledMachine::Pending*>(io.context);
  pending.machine->transfer_ended(pending);
}

}  // namespace mdfs::device
