// A decorator that answers in the time of a modelled disk: the bytes are real, the time is modelled.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/disk.h"
#include "device/modelled_machine.h"

namespace mdfs::device {

// `inner` transfers reads and writes at once. They complete when both inner and the machine are done with them. Flushes
// and discards take no modelled time. The head of a modelled disk moves in proportion to the offsets on inner, scaled
// to the capacity of the model. Any thread may call any method.
class ModelledDisk final : public Disk {
 public:
  // index < machine->disks() (abort); one disk for each index.
  ModelledDisk(std::unique_ptr<Disk> inner, std::shared_ptr<ModelledMachine> machine, unsigned index);

  const std::string& name() const override { return inner_->name(); }
  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  Result<std::uint64_t> measure() override { return inner_->measure(); }
  Result<Condition> condition() override { return inner_->condition(); }
  std::uint64_t room_bytes() override { return inner_->room_bytes(); }
  bool writable() const override { return inner_->writable(); }
  void submit(std::span<Io* const> batch) override;

 private:
  static void transferred(Io& io);

  std::unique_ptr<Disk> inner_;
  std::shared_ptr<ModelledMachine> machine_;
  const unsigned index_;
};

}  // namespace mdfs::device
