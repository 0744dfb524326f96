// The log of writes, flushes, discards and marks.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/recorder_disk.h"

#include <algorithm>
#include <utility>

#include "device/request.h"

namespace mdfs::device {

RecorderLog::RecorderLog(std::vector<Event> events) : events_(std::move(events)) {
  for (const Event& event : events_) next_request_ = std::max(next_request_, event.request + 1);
}

void RecorderLog::mark(std::string text, std::uint64_t value) {
  Event event;
  event.kind = EventKind::kMark;
  event.mark = std::move(text);
  event.value = value;
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<Event> RecorderLog::events() const {
  std::lock_guard lock(mutex_);
  return events_;
}

std::size_t RecorderLog::size() const {
  std::lock_guard lock(mutex_);
  return events_.size();
}

void RecorderLog::clear() {
  std::lock_guard lock(mutex_);
  events_.clear();
}

std::uint64_t RecorderLog::start(std::uint32_t disk, const Io& io) {
  Event event;
  event.kind = EventKind::kStart;
  event.op = io.op;
  event.disk = disk;
  event.offset = io.offset;
  event.length = io.bytes();
  if (io.op == Op::kWrite) {
    ByteVector data;
    data.reserve(event.length);
    for (const auto& buffer : io.buffers) data.insert(data.end(), buffer.begin(), buffer.end());
    event.data = std::make_shared<const ByteVector>(std::move(data));
  }
  std::lock_guard lock(mutex_);
  event.request = next_request_++;
  events_.push_back(std::move(event));
  return next_request_ - 1;
}

void RecorderLog::end(std::uint32_t disk, Op op, std::uint64_t request, bool ok) {
  Event event;
  event.kind = EventKind::kEnd;
  event.op = op;
  event.disk = disk;
  event.request = request;
  event.ok = ok;
  std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

// The request as the inner disk sees it; deletes itself when it has completed.
struct RecorderDisk::Pending {
  RecorderDisk* disk;
  Io* outer;
  std::uint64_t request = 0;  // 0: not logged
  Io inner;
};

void RecorderDisk::submit(std::span<Io* const> batch) {
  std::vector<Io*> inner;
  inner.reserve(batch.size());
  for (Io* io : batch) {
    if (auto status = check_request(*this, *io); !status.ok()) {
      complete(*io, std::move(status));
      continue;
    }
    auto* pending = new Pending{this, io, 0, {}};
    pending->inner.op = io->op;
    pending->inner.offset = io->offset;
    pending->inner.buffers = io->buffers;
    pending->inner.discard_bytes = io->discard_bytes;
    pending->inner.done = ended;
    pending->inner.context = pending;
    if (io->op != Op::kRead) pending->request = log_.start(index_, *io);
    inner.push_back(&pending->inner);
  }
  if (!inner.empty()) inner_.submit(inner);
}

void RecorderDisk::ended(Io& io) {
  std::unique_ptr<Pending> pending(static_cast<Pending*>(io.context));
  Io& outer = *pending->outer;
  Status status = std::move(io.status);
  if (pending->request != 0) {
    pending->disk->log_.end(pending->disk->index_, io.op, pending->request, status.ok());
  }
  pending.reset();
  complete(outer, std::move(status));
}

}  // namespace mdfs::device
