// Strikes requests by the plan; everything else passes through.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/faulty_disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/checked.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

bool matches(const Fault& fault, const Io& io) {
  switch (fault.kind) {
    case FaultKind::kPhantomWrite:
    case FaultKind::kMisdirectedWrite:
    case FaultKind::kSwappedWrites:
      if (io.op != Op::kWrite) return false;
      break;
    case FaultKind::kDroppedFlush:
      if (io.op != Op::kFlush) return false;
      break;
    case FaultKind::kShort:
    case FaultKind::kBitFlip:
      if (io.op != fault.op || (io.op != Op::kRead && io.op != Op::kWrite)) return false;
      break;
    default:
      if (io.op != fault.op) return false;
  }
  return io.op == Op::kFlush || (io.offset < fault.to && fault.from < io.offset + io.bytes());
}

// All bytes of a write, in one piece.
AlignedBuffer gather(const Io& io) {
  AlignedBuffer copy(io.bytes());
  std::size_t at = 0;
  for (const auto& buffer : io.buffers) {
    std::memcpy(copy.data() + at, buffer.data(), buffer.size());
    at += buffer.size();
  }
  return copy;
}

void flip_bit(const std::vector<MutableBytes>& buffers, std::uint64_t bit) {
  std::uint64_t byte = bit / 8;
  for (const auto& buffer : buffers) {
    if (byte < buffer.size()) {
      buffer[byte] ^= static_cast<std::byte>(1u << bit % 8);
      return;
    }
    byte -= buffer.size();
  }
}

// The first `bytes` bytes of the buffers.
std::vector<MutableBytes> head(const std::vector<MutableBytes>& buffers, std::uint64_t bytes) {
  std::vector<MutableBytes> part;
  for (const auto& buffer : buffers) {
    const auto length = std::min<std::uint64_t>(bytes, buffer.size());
    if (length > 0) part.push_back(buffer.first(length));
    bytes -= length;
  }
  return part;
}

}  // namespace

const char* fault_name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kError:
      return "error";
    case FaultKind::kShort:
      return "short transfer";
    case FaultKind::kBitFlip:
      return "bit flip";
    case FaultKind::kPhantomWrite:
      return "phantom write";
    case FaultKind::kMisdirectedWrite:
      return "misdirected write";
    case FaultKind::kSwappedWrites:
      return "swapped writes";
    case FaultKind::kDroppedFlush:
      return "dropped flush";
    case FaultKind::kStuck:
      return "stuck";
    case FaultKind::kGone:
      return "gone";
    case FaultKind::kStale:
      return "stale";
  }
  return "?";
}

std::vector<Fault> seeded_plan(std::uint64_t seed, const SeededPlan& plan, std::uint64_t disk_bytes) {
  MDFS_CHECK(!plan.kinds.empty() && plan.horizon > 0 && disk_bytes >= kAlignment);
  constexpr Op kOps[] = {Op::kRead, Op::kWrite, Op::kFlush};
  std::mt19937_64 generator(seed);
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < plan.faults; ++i) {
    Fault fault;
    fault.kind = plan.kinds[generator() % plan.kinds.size()];
    const bool transfers_only = fault.kind == FaultKind::kShort || fault.kind == FaultKind::kBitFlip;
    fault.op = kOps[generator() % (transfers_only ? 2 : 3)];
    fault.skip = generator() % plan.horizon;
    fault.times = generator() % 4 == 0 ? Fault::kSticky : 1;
    fault.target = align_down(generator() % disk_bytes, kAlignment);
    faults.push_back(fault);
  }
  return faults;
}

// The requests to the inner disk that stand for one request from above; deletes itself when all have completed.
struct FaultyDisk::Pending {
  explicit Pending(Io& io) : outer(&io) {}

  Io& add(Op op, std::uint64_t offset, std::vector<MutableBytes> buffers) {
    auto& part = *parts.emplace_back(std::make_unique<Io>());
    part.op = op;
    part.offset = offset;
    part.buffers = std::move(buffers);
    part.discard_bytes = op == Op::kDiscard ? outer->discard_bytes : 0;
    part.done = part_ended;
    part.context = this;
    return part;
  }
  // From here on the parts may complete and delete this.
  void send(std::vector<Io*>& batch) {
    left = parts.size();
    for (const auto& part : parts) batch.push_back(part.get());
  }

  Io* outer;
  std::vector<std::unique_ptr<Io>> parts;
  std::atomic<std::size_t> left{0};
  std::vector<AlignedBuffer> copies;  // what the parts write from
  std::optional<std::uint64_t> flip;  // bit of the read data
  Status then;                        // the result if all parts succeed
};

FaultyDisk::FaultyDisk(Disk& inner, std::vector<Fault> plan, std::uint64_t seed) : inner_(inner), generator_(seed) {
  for (auto& fault : plan) plan_.push_back({fault, 0});
}

FaultyDisk::~FaultyDisk() { MDFS_CHECK(stuck_.empty()); }

void FaultyDisk::add(Fault fault) {
  std::lock_guard lock(mutex_);
  plan_.push_back({fault, 0});
}

void FaultyDisk::work_again() {
  std::lock_guard lock(mutex_);
  plan_.clear();
  gone_ = stale_ = false;
}

std::size_t FaultyDisk::stuck() const {
  std::lock_guard lock(mutex_);
  return stuck_.size();
}

std::vector<Injection> FaultyDisk::injections() const {
  std::lock_guard lock(mutex_);
  return injections_;
}

std::uint64_t FaultyDisk::random() {
  std::lock_guard lock(mutex_);
  return generator_();
}

std::optional<Fault> FaultyDisk::strike(const Io& io) {
  std::lock_guard lock(mutex_);
  std::optional<Fault> struck;
  if (gone_) {
    struck = Fault{.kind = FaultKind::kGone};
  } else if (stale_ && io.op != Op::kRead) {
    struck = Fault{.kind = FaultKind::kStale};
  }
  for (auto& [fault, seen] : plan_) {
    if (struck || !matches(fault, io)) continue;
    const std::uint64_t number = seen++;
    if (number >= fault.skip && number - fault.skip < fault.times) struck = fault;
  }
  if (!struck) return std::nullopt;
  gone_ = gone_ || struck->kind == FaultKind::kGone;
  stale_ = stale_ || struck->kind == FaultKind::kStale;
  injections_.push_back({struck->kind, io.op, io.offset, io.bytes()});
  return struck;
}

void FaultyDisk::submit(std::span<Io* const> batch) {
  std::vector<Io*> inner;
  for (Io* io : batch) {
    if (auto status = check_request(*this, *io); !status.ok()) {
      complete(*io, std::move(status));
      continue;
    }
    bool second_of_swap = false;
    {
      std::lock_guard lock(mutex_);
      second_of_swap = held_ && io->op == Op::kWrite && io->bytes() == held_->data.size();
    }
    if (second_of_swap) {
      start_swapped(*io, inner);
    } else if (const auto fault = strike(*io)) {
      start_with(*io, *fault, inner);
    } else {
      start(*io, inner);
    }
  }
  if (!inner.empty()) inner_.submit(inner);
}

void FaultyDisk::start(Io& io, std::vector<Io*>& batch) {
  auto* pending = new Pending(io);
  pending->add(io.op, io.offset, io.buffers);
  pending->send(batch);
}

void FaultyDisk::start_swapped(Io& io, std::vector<Io*>& batch) {
  Held first;
  {
    std::lock_guard lock(mutex_);
    first = std::move(*held_);
    held_.reset();
    injections_.push_back({FaultKind::kSwappedWrites, io.op, io.offset, io.bytes()});
  }
  auto* pending = new Pending(io);
  auto& copy = pending->copies.emplace_back(first.data.size());
  std::ranges::copy(first.data, copy.data());
  pending->add(Op::kWrite, io.offset, {copy.bytes()});
  pending->add(Op::kWrite, first.offset, io.buffers);
  pending->send(batch);
}

void FaultyDisk::start_with(Io& io, const Fault& fault, std::vector<Io*>& batch) {
  const auto injected = [&] { return io_error(name(), io, fmt::format("injected: {}", fault_name(fault.kind))); };
  auto pending = std::make_unique<Pending>(io);
  switch (fault.kind) {
    case FaultKind::kError:
    case FaultKind::kGone:
      complete(io, injected());
      return;
    case FaultKind::kPhantomWrite:
    case FaultKind::kDroppedFlush:
    case FaultKind::kStale:
      complete(io, {});
      return;
    case FaultKind::kStuck: {
      std::lock_guard lock(mutex_);
      stuck_.push_back(&io);
      return;
    }
    case FaultKind::kSwappedWrites: {
      {
        const AlignedBuffer data = gather(io);
        std::lock_guard lock(mutex_);
        held_ = Held{io.offset, ByteVector(data.bytes().begin(), data.bytes().end())};
      }
      complete(io, {});
      return;
    }
    case FaultKind::kShort: {
      const std::uint64_t half = align_down(io.bytes() / 2, kAlignment);
      if (half == 0) {
        complete(io, injected());
        return;
      }
      pending->add(io.op, io.offset, head(io.buffers, half));
      pending->then = injected();
      break;
    }
    case FaultKind::kBitFlip:
      if (io.op == Op::kRead) {
        pending->flip = random() % (io.bytes() * 8);
        pending->add(io.op, io.offset, io.buffers);
      } else {
        auto& copy = pending->copies.emplace_back(gather(io));
        flip_bit({copy.bytes()}, random() % (io.bytes() * 8));
        pending->add(io.op, io.offset, {copy.bytes()});
      }
      break;
    case FaultKind::kMisdirectedWrite:
      pending->add(io.op, std::min(align_down(fault.target, kAlignment), size_bytes() - io.bytes()), io.buffers);
      break;
  }
  pending.release()->send(batch);
}

void FaultyDisk::release() {
  std::vector<Io*> freed;
  {
    std::lock_guard lock(mutex_);
    freed.swap(stuck_);
  }
  std::vector<Io*> batch;
  for (Io* io : freed) start(*io, batch);
  if (!batch.empty()) inner_.submit(batch);
}

void FaultyDisk::part_ended(Io& io) {
  auto* pending = static_cast<Pending*>(io.context);
  if (pending->left.fetch_sub(1) != 1) return;
  const std::unique_ptr<Pending> owned(pending);
  Status status = std::move(pending->then);
  for (auto& part : pending->parts) {
    if (part->status.ok()) continue;
    status = std::move(part->status);
    break;
  }
  if (pending->flip && status.ok()) flip_bit(pending->outer->buffers, *pending->flip);
  complete(*pending->outer, std::move(status));
}

}  // namespace mdfs::device
