// Operations on objects, their queue and their ends.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_disk.h"

#include <fmt/format.h>
#include <rados/librados.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

constexpr std::chrono::milliseconds kPatience(1000);  // of those who ask for the condition of a disk

// A full pool answers with an error; without this flag librados would wait until there is room.
constexpr int kFlags = librados::OPERATION_FULL_TRY;

// Calls `part` with each piece of memory of the request from `within` on, `length` bytes in all.
template <typename Part>
void for_memory(const Io& io, std::uint64_t within, std::uint64_t length, Part part) {
  for (const MutableBytes& buffer : io.buffers) {
    if (length == 0) return;
    if (within >= buffer.size()) {
      within -= buffer.size();
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(length, buffer.size() - within);
    part(buffer.subspan(within, bytes));
    within = 0;
    length -= bytes;
  }
  MDFS_CHECK(length == 0);
}

}  // namespace

// A request on its way. Deleted before `done` is called.
struct RadosDisk::Transfer {
  Io* io = nullptr;
  std::atomic<std::uint64_t> left{0};  // parts without an answer
  std::atomic<int> result{0};          // the first error
};

struct RadosDisk::Operation {
  RadosDisk* disk = nullptr;
  Op op = Op::kRead;
  ObjectOperation plan;              // reads and writes
  std::vector<Transfer*> transfers;  // of plan's pieces, by request; discards: one
  ObjectDiscard discard;
  std::vector<librados::bufferlist> data;  // of reads, by extent
  std::vector<int> results;                // of reads, by extent
};

RadosDisk::RadosDisk(std::shared_ptr<RadosConnection> connection, librados::IoCtx io,
                     const RadosDescription& description, RadosName name, RadosHeader header)
    : connection_(std::move(connection)),
      io_(std::move(io)),
      disk_(description.disk),
      name_(std::move(name)),
      object_bytes_(header.object_bytes),
      writable_(description.mode == OpenMode::kReadWrite),
      size_bytes_(header.size_bytes) {}

Result<std::unique_ptr<RadosDisk>> RadosDisk::open(const RadosDescription& description) {
  MDFS_TRY_ASSIGN(const RadosName name, RadosName::parse(description.disk));
  MDFS_TRY_ASSIGN(auto connection, RadosConnection::get(description));
  MDFS_TRY_ASSIGN(librados::IoCtx io, connection->pool(description.disk, name));
  MDFS_TRY_ASSIGN(const RadosHeader header, read_rados_header(io, description.disk, name));
  std::unique_ptr<RadosDisk> disk(new RadosDisk(connection, io, description, name, header));
  if (description.mode == OpenMode::kLook) return disk;
  MDFS_TRY_ASSIGN(disk->guard_,
                  RadosGuard::take(std::move(connection), std::move(io), description.disk, name.header_object(),
                                   description.mode, [self = disk.get()] { self->measure_room(); }));
  MDFS_TRY(disk->measure());  // it may have changed before it was locked
  disk->look_ = std::make_unique<SharedLook>([self = disk.get()] { return self->look(); },
                                             Condition{disk->size_bytes_, false}, kPatience);
  return disk;
}

RadosDisk::~RadosDisk() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return pumping_ == 0; });
  MDFS_CHECK(waiting_.empty() && operations_ == 0);
}

Result<std::uint64_t> RadosDisk::measure() {
  MDFS_TRY_ASSIGN(const RadosHeader header, read_rados_header(io_, disk_, name_));
  if (header.object_bytes != object_bytes_)
    return Error{Errc::kCorrupt, fmt::format("{}: its objects had {} bytes, its header now says {}", disk_,
                                             object_bytes_, header.object_bytes)};
  size_bytes_ = header.size_bytes;
  return header.size_bytes;
}

// Every write asks before it is made. One that waits for an OSD waits in the write, not here.
Result<Condition> RadosDisk::condition() { return look_ ? look_->condition() : look(); }

Result<Condition> RadosDisk::look() {
  RadosHeaderQuestion question(io_, disk_, name_);  // on its way beside the one for the lock
  if (guard_ && !guard_->holds_lock())
    return Error{Errc::kIo, disk_ + ": its lock was broken by somebody else; nothing more is written to it"};
  const auto header = question.answer();
  if (header.ok()) return Condition{header->size_bytes, false};
  if (header.error().code == Errc::kNotFound) return Condition{size_bytes_, true};
  return header.error();
}

void RadosDisk::measure_room() {
  if (!writable_) return;
  if (const auto room = connection_->room(name_.pool, object_bytes_)) room_.measured(*room);
}

void RadosDisk::submit(std::span<Io* const> batch) {
  std::vector<Io*> reads, writes;
  std::deque<Waiting> waiting;
  for (Io* io : batch) {
    // What has completed is on the stable storage of all replicas.
    if (auto status = check_request(*this, *io); !status.ok() || io->op == Op::kFlush) {
      complete(*io, std::move(status));
      continue;
    }
    if (io->op == Op::kDiscard) {
      auto transfer = std::make_unique<Transfer>();
      transfer->io = io;
      transfer->left = 1;  // for the steps that are still to be made
      waiting.emplace_back(Discard{transfer.release(), {io->offset, io->discard_bytes}});
    } else {
      (io->op == Op::kRead ? reads : writes).push_back(io);
    }
  }
  plan(reads, false, waiting);
  plan(writes, true, waiting);
  {
    std::lock_guard lock(mutex_);
    std::move(waiting.begin(), waiting.end(), std::back_inserter(waiting_));
  }
  pump();
}

void RadosDisk::plan(const std::vector<Io*>& ios, bool write, std::deque<Waiting>& waiting) {
  if (ios.empty()) return;
  std::vector<DiskRange> ranges;
  std::vector<Transfer*> transfers;
  for (Io* io : ios) {
    ranges.push_back({io->offset, io->bytes()});
    auto transfer = std::make_unique<Transfer>();
    transfer->io = io;
    transfers.push_back(transfer.release());  // end_part() deletes it
  }
  std::vector<ObjectOperation> operations = plan_objects(ranges, object_bytes_);
  for (const ObjectOperation& one : operations)
    for (const ObjectExtent& extent : one.extents)
      for (const ObjectPiece& piece : extent.pieces) ++transfers[piece.request]->left;
  for (ObjectOperation& one : operations) {
    auto operation = std::make_unique<Operation>();
    operation->disk = this;
    operation->op = write ? Op::kWrite : Op::kRead;
    operation->plan = std::move(one);
    for (ObjectExtent& extent : operation->plan.extents)
      for (ObjectPiece& piece : extent.pieces) {
        operation->transfers.push_back(transfers[piece.request]);
        piece.request = operation->transfers.size() - 1;
      }
    waiting.emplace_back(std::move(operation));
  }
}

std::unique_ptr<RadosDisk::Operation> RadosDisk::take_next() {
  if (waiting_.empty() || operations_ == kMaxOperations) return nullptr;
  if (auto* const discard = std::get_if<Discard>(&waiting_.front())) {
    auto operation = std::make_unique<Operation>();
    operation->disk = this;
    operation->op = Op::kDiscard;
    operation->transfers.push_back(discard->transfer);
    operation->discard = next_discard(discard->range, object_bytes_, size_bytes_);
    // The last step takes over the part that stands for those to be made.
    if (discard->range.length == 0)
      waiting_.pop_front();
    else
      ++discard->transfer->left;
    ++operations_;
    return operation;
  }
  auto& first = std::get<std::unique_ptr<Operation>>(waiting_.front());
  const std::uint64_t bytes = first->plan.bytes();
  if (bytes_ > 0 && bytes_ + bytes > kMaxBytesInFlight) return nullptr;
  bytes_ += bytes;
  ++operations_;
  auto operation = std::move(first);
  waiting_.pop_front();
  return operation;
}

void RadosDisk::pump() {
  std::unique_lock lock(mutex_);
  ++pumping_;
  while (auto operation = take_next()) {
    lock.unlock();
    const int result = start(*operation);
    if (result < 0) {
      end_flight(*operation);
      finish(std::move(operation), result);
    }
    (void)operation.release();  // answered() deletes it
    lock.lock();
  }
  if (--pumping_ == 0) idle_.notify_all();
}

int RadosDisk::start(Operation& operation) {
  if (operation.op != Op::kRead && guard_ && guard_->has_lost_lock()) return -ESHUTDOWN;
  const bool is_discard = operation.op == Op::kDiscard;
  const std::string object = name_.data_object(is_discard ? operation.discard.object : operation.plan.object);
  librados::AioCompletion* const completion = librados::Rados::aio_create_completion(&operation, answered);
  int result = 0;
  if (operation.op == Op::kRead) {
    librados::ObjectReadOperation reads;
    operation.data.resize(operation.plan.extents.size());
    operation.results.resize(operation.plan.extents.size());
    for (std::size_t i = 0; i < operation.plan.extents.size(); ++i) {
      const ObjectExtent& extent = operation.plan.extents[i];
      reads.read(extent.offset, extent.length, &operation.data[i], &operation.results[i]);
    }
    result = io_.aio_operate(object, completion, &reads, kFlags, nullptr);
  } else {
    librados::ObjectWriteOperation changes;
    for (const ObjectExtent& extent : operation.plan.extents) {
      librados::bufferlist bytes;
      bytes.reserve(extent.length);
      for (const ObjectPiece& piece : extent.pieces)
        for_memory(*operation.transfers[piece.request]->io, piece.within, piece.length, [&](MutableBytes part) {
          bytes.append(reinterpret_cast<const char*>(part.data()), static_cast<unsigned>(part.size()));
        });
      changes.write(extent.offset, bytes);
    }
    const ObjectDiscard& discard = operation.discard;
    if (is_discard && discard.kind == ObjectDiscard::Kind::kRemove) changes.remove();
    if (is_discard && discard.kind == ObjectDiscard::Kind::kTruncate) changes.truncate(discard.offset);
    if (is_discard && discard.kind == ObjectDiscard::Kind::kZero) changes.zero(discard.offset, discard.length);
    room_.wrote(operation.plan.bytes());
    result = io_.aio_operate(object, completion, &changes, kFlags);
  }
  completion->release();
  return result;
}

void RadosDisk::answered(librados::completion_t completion, void* argument) {
  std::unique_ptr<Operation> operation(static_cast<Operation*>(argument));
  RadosDisk& disk = *operation->disk;
  const int result = ::rados_aio_get_return_value(completion);
  disk.end_flight(*operation);
  disk.pump();
  disk.finish(std::move(operation), result);
}

void RadosDisk::end_flight(const Operation& operation) {
  std::lock_guard lock(mutex_);
  --operations_;
  bytes_ -= operation.plan.bytes();
}

// Zero for success. An object that does not exist is one of zeros.
int RadosDisk::scatter(Operation& operation, int result) {
  if (result < 0 && result != -ENOENT) return result;
  for (std::size_t i = 0; i < operation.plan.extents.size(); ++i) {
    const ObjectExtent& extent = operation.plan.extents[i];
    librados::bufferlist& data = operation.data[i];
    if (result == -ENOENT) data.clear();
    if (result != -ENOENT && operation.results[i] < 0) return operation.results[i];
    if (data.length() > extent.length) return -EBADMSG;
    std::uint64_t left = data.length();
    auto from = data.cbegin();
    for (const ObjectPiece& piece : extent.pieces)
      for_memory(*operation.transfers[piece.request]->io, piece.within, piece.length, [&](MutableBytes part) {
        const auto present = static_cast<std::size_t>(std::min<std::uint64_t>(left, part.size()));
        if (present > 0) from.copy(static_cast<unsigned>(present), reinterpret_cast<char*>(part.data()));
        if (present < part.size()) std::memset(part.data() + present, 0, part.size() - present);
        left -= present;
      });
  }
  return 0;
}

void RadosDisk::finish(std::unique_ptr<Operation> operation, int result) {
  if (operation->op == Op::kRead) result = scatter(*operation, result);
  if (operation->op == Op::kDiscard && result == -ENOENT) result = 0;
  // The submitter of the last one may destroy the disk at once.
  for (Transfer* const transfer : operation->transfers) end_part(*transfer, std::min(result, 0));
}

void RadosDisk::end_part(Transfer& transfer, int result) {
  int none = 0;
  if (result < 0) transfer.result.compare_exchange_strong(none, result);
  if (transfer.left.fetch_sub(1) > 1) return;
  const std::unique_ptr<Transfer> ended(&transfer);
  const int first = ended->result;
  complete(*ended->io, first == 0 ? Status{} : Status(io_error(disk_, *ended->io, rados_reason(first))));
}

}  // namespace mdfs::device
