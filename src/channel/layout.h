// The shared memory of a channel between libmdfs and the daemon, and the messages of its socket.
//
// The daemon makes the memory, seals its size and trusts nothing in it. The memory begins with a Header and kSlots
// slots; the data area follows at kAreaOffset. A slot is one request. The client fills it, sets its bit in `submitted`,
// and wakes the daemon if that sleeps. The daemon copies the slot, checks the copy, puts the samples into the data area
// and sets the state to kDone. Requests end in any order. Samples of large windows can be taken while more come.
//
// A buffer is further memory of the client, made and sealed like this one: the samples of a request can go there
// instead, and then lie where the client wants them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mdfs/ioctl.h"

namespace mdfs::channel {

inline constexpr unsigned kSlots = 64;  // requests in flight: one bit each of Header::submitted
inline constexpr std::size_t kAreaOffset = 32u << 10;
inline constexpr std::uint64_t kLeastAreaBytes = 128u << 10;
inline constexpr std::uint64_t kMostAreaBytes = 64u << 20;
inline constexpr std::uint32_t kMostBuffers = 32;  // of a client; their numbers are 1 and up
inline constexpr std::uint32_t kArea = 0;          // the data area, in place of the number of a buffer

struct Header {
  alignas(64) std::atomic<std::uint64_t> submitted;  // a bit for each slot with a new request
  alignas(64) std::atomic<std::uint32_t> doorbell;   // futex on which the daemon waits
  std::atomic<std::uint32_t> sleeping;               // the daemon waits, or is about to
  std::atomic<std::uint32_t> alive;                  // 1 until the daemon frees the pages, which then read as zeros
};

// State of a slot, a futex on which the client waits.
enum State : std::uint32_t { kIdle, kSubmitted, kAwaited, kDone };  // kAwaited: submitted, and the client sleeps

struct Request {
  mdfs_ioc_window window;
  std::uint32_t image;   // number from the answer to kAttach
  std::uint32_t buffer;  // where the samples go: kArea, or the number from the answer to kNewBuffer
  std::uint64_t offset;  // of the samples there
  std::uint64_t bytes;   // of the window
};

struct Slot {
  alignas(128) std::atomic<std::uint32_t> state;
  std::int32_t error;  // errno, 0: the samples are there
  Request request;
  std::atomic<std::uint64_t> ready;  // bytes from the window's first on that are there before the state is kDone
  std::uint32_t changed;             // once done. 1: the window was read again, and what was ready before is void
};

// In the memory of a channel.
inline Header& header_in(std::byte* memory) { return *reinterpret_cast<Header*>(memory); }
inline Slot& slot_in(std::byte* memory, unsigned index) {
  return reinterpret_cast<Slot*>(memory + sizeof(Header))[index];
}

static_assert(sizeof(Header) % alignof(Slot) == 0 && kAreaOffset % alignof(Slot) == 0);
static_assert(sizeof(Slot) == 256 && std::is_trivially_copyable_v<Request>);
static_assert(sizeof(Header) + kSlots * sizeof(Slot) <= kAreaOffset);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

// ---- the socket, SOCK_SEQPACKET

enum Operation : std::uint32_t {
  kAttach = 1,      // redeems a token; answered
  kDetach = 2,      // gives an image back; not answered
  kNewBuffer = 3,   // answered
  kFreeBuffer = 4,  // not answered
};

struct Message {
  std::uint32_t operation;
  std::uint32_t number;    // kDetach: of the image; kFreeBuffer: of the buffer
  std::uint8_t token[16];  // kAttach
  std::uint64_t bytes;  // first kAttach of a connection: the data area that the client would like; kNewBuffer: its size
};

// Carries the descriptor of the memory (first kAttach) or of the buffer.
struct Answer {
  std::int32_t error;    // errno
  std::uint32_t number;  // of the image or of the buffer
  std::uint64_t bytes;   // of the data area or of the buffer
};

}  // namespace mdfs::channel
