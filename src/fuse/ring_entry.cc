// Memory of ring entries, and the way of a request through one.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/ring_entry.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace mdfs::fuse {
namespace {

// Smaller payloads keep their pages.
constexpr std::size_t kSmallPayloadBytes = 64u << 10;

thread_local RingEntry* current_entry = nullptr;

// An answer comes before the requests that its caller makes next. The kernel sees to that, and ThreadSanitizer sees no
// kernel.
#ifdef __SANITIZE_THREAD__
char order;
void come_before_next_requests() { __tsan_release(&order); }
void come_after_answers() { __tsan_acquire(&order); }
#else
void come_before_next_requests() {}
void come_after_answers() {}
#endif

}  // namespace

Result<std::unique_ptr<RingEntry>> RingEntry::create(RingEntryOwner& owner, std::uint16_t queue, KeptPayloads& kept) {
  void* const memory = ::mmap(nullptr, kHeadBytes + kMaxTransferBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return from_errno(errno, "ring entry");
  return std::unique_ptr<RingEntry>(new RingEntry(owner, queue, static_cast<std::byte*>(memory), kept));
}

RingEntry::RingEntry(RingEntryOwner& owner, std::uint16_t queue, std::byte* memory, KeptPayloads& kept)
    : owner_(owner),
      queue_(queue),
      memory_(memory),
      kept_(kept),
      vectors_{{{memory, sizeof(RingEntryHeader)}, {memory + kHeadBytes, kMaxTransferBytes}}} {}

RingEntry::~RingEntry() {
  kept_.remove(used_bytes_);
  ::munmap(memory_, kHeadBytes + kMaxTransferBytes);
}

bool RingEntry::hand_over(device::CommandRing& ring, int fd, std::uint64_t token) {
  const RingCommand command{.flags = 0, .commit_id = registered_ ? request() : 0, .queue = queue_, .padding = {}};
  const ConstBytes bytes{reinterpret_cast<const std::byte*>(&command), sizeof command};
  const std::span<const iovec> vectors = registered_ ? std::span<const iovec>{} : vectors_;
  with_kernel_ = true;
  return ring.command(fd, registered_ ? kCommitAndFetch : kRegisterEntry, bytes, vectors, token);
}

void RingEntry::note_arrival() {
  registered_ = true;
  with_kernel_ = false;
  const std::uint64_t arrived = header().commit_id;
  commit_id_.store(arrived, std::memory_order_relaxed);
  fuse_in_header in{};
  std::memcpy(&in, header().in_out, sizeof in);
  node_ = in.nodeid;
  note_use(header().payload_bytes);
  unique_.store(arrived, std::memory_order_release);
}

bool RingEntry::holds(std::uint64_t unique) const {
  if (this->unique() == unique) return true;
  // The kernel alone writes this field.
  const std::uint64_t newest = std::atomic_ref(header().commit_id).load(std::memory_order_acquire);
  return newest == unique && request() != unique;
}

bool RingEntry::answer_kick() {
  if (request() < kKickUnique) return false;
  const fuse_out_header out{.len = sizeof out, .error = 0, .unique = request()};
  const iovec part{const_cast<fuse_out_header*>(&out), sizeof out};
  write_answer({&part, 1});
  return true;
}

RingEntry* RingEntry::current() { return current_entry; }

bool RingEntry::serve(const ServeRequest& serve) {
  const MutableBytes before{memory_ + sizeof(RingEntryHeader), kHeadBytes - sizeof(RingEntryHeader)};
  come_after_answers();
  const std::uint64_t served = unique();
  const Result<MutableBytes> request = frame_request(header(), before, payload());
  current_entry = this;
  if (request.ok()) {
    serve(*request);
  } else {
    spdlog::error("{}", request.error().message());
    answer({});
  }
  if (std::exchange(current_entry, nullptr) == nullptr) return true;
  const std::lock_guard lock(answering_);
  if (unique() == served && keeps_too_much()) drop_payload();
  return false;
}

void RingEntry::answer(std::span<const iovec> parts) {
  {
    const std::lock_guard lock(answering_);
    write_answer(parts);
  }
  const bool in_serve = current_entry == this;
  if (in_serve) current_entry = nullptr;
  owner_.deliver(*this, in_serve);
}

void RingEntry::write_answer(std::span<const iovec> parts) {
  come_before_next_requests();
  const std::uint64_t unique = unique_.exchange(0);
  const Status status = frame_answer(parts, unique, header(), payload());
  if (!status.ok()) spdlog::error("{}", status.error().message());
  note_use(header().payload_bytes);
}

void RingEntry::note_use(std::size_t payload_bytes) {
  payload_bytes = std::min(payload_bytes, kMaxTransferBytes);
  if (payload_bytes <= std::max(used_bytes_, kSmallPayloadBytes)) return;
  kept_.add(payload_bytes - used_bytes_);
  used_bytes_ = payload_bytes;
}

bool RingEntry::keeps_too_much() const { return used_bytes_ > 0 && kept_.too_many(); }

void RingEntry::drop_payload() {
  ::madvise(memory_ + kHeadBytes, kMaxTransferBytes, MADV_DONTNEED);
  kept_.remove(used_bytes_);
  used_bytes_ = 0;
}

}  // namespace mdfs::fuse
