// The client's side of a channel.
// SPDX-License-Identifier: Apache-2.0
#include "channel.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/socket_message.h"
#include "channel/address.h"
#include "channel/wait.h"

namespace mdfs::client {
namespace {

constexpr std::uint64_t kWantedAreaBytes = 16u << 20;
constexpr timeval kMostForAnswer{2, 0};
constexpr std::int64_t kBetweenLooksNs = 200'000'000;  // whether the daemon is still there
constexpr std::uint64_t kBytesOfNs = 4;                // that the daemon copies at least

// The channels of this process. Never destroyed: threads may read while the process ends.
struct Registry {
  std::mutex mutex;  // guards all below
  std::map<std::string, std::weak_ptr<Channel>> channels;
  std::vector<Channel*> all;
  bool has_handlers = false;
};

Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

void handle_forks() {
  if (std::exchange(registry().has_handlers, true)) return;
  pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                 [] {
                   for (Channel* channel : registry().all) channel->abandon();
                   registry().all.clear();
                   registry().channels.clear();
                   registry().mutex.unlock();
                 });
}

bool is_switched_off() {
  const char* const value = std::getenv("MDFS_CHANNEL");
  return value != nullptr && std::string_view(value) == "off";
}

}  // namespace

std::shared_ptr<Channel> Channel::connect(const std::string& name) {
  sockaddr_un address;
  const socklen_t length = channel::fill_address(name, address);
  if (length == 0) return nullptr;
  // Without waiting for room in the queue of the socket.
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return nullptr;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    ::close(socket);
    return nullptr;
  }
  return std::shared_ptr<Channel>(new Channel(name, socket));
}

std::shared_ptr<Channel> Channel::attach(int fd, std::uint32_t& image) {
  if (is_switched_off()) return nullptr;
  mdfs_ioc_channel ticket{};
  ticket.struct_bytes = sizeof ticket;
  if (::ioctl(fd, MDFS_IOC_CHANNEL, &ticket) != 0) return nullptr;
  const std::string name(ticket.socket, ::strnlen(ticket.socket, sizeof ticket.socket));
  Registry& known = registry();
  std::shared_ptr<Channel> old, channel;  // end outside of the lock, which their destructor takes
  const std::lock_guard lock(known.mutex);
  handle_forks();
  std::erase_if(known.channels, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = known.channels.find(name); found != known.channels.end()) old = found->second.lock();
  if (old != nullptr && old->is_usable()) return old->add_image(ticket.token, image) ? old : nullptr;
  channel = connect(name);
  if (channel == nullptr) return nullptr;
  known.all.push_back(channel.get());
  if (!channel->add_image(ticket.token, image)) return nullptr;
  known.channels[name] = channel;
  return channel;
}

Channel::~Channel() {
  {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().all, this);
  }
  if (socket_ >= 0) ::close(socket_);
  if (start_ != nullptr) ::munmap(start_, channel::kAreaOffset + area_bytes_);
}

void Channel::abandon() {
  ended_ = true;
  ::close(std::exchange(socket_, -1));
  start_ = nullptr;
}

bool Channel::map(int descriptor, std::uint64_t area_bytes) {
  const std::size_t bytes = channel::kAreaOffset + area_bytes;
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (start == MAP_FAILED) return false;
  ::madvise(start, bytes, MADV_DONTFORK);
  start_ = static_cast<std::byte*>(start);
  area_bytes_ = area_bytes;
  area_ = AreaAllocator(area_bytes);
  return true;
}

std::optional<channel::Answer> Channel::ask(const channel::Message& message, std::vector<int>& descriptors) {
  if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof message))
    return std::nullopt;
  pollfd answered{socket_, POLLIN, 0};
  channel::Answer answer{};
  ReceivedMessage received;
  if (::poll(&answered, 1, static_cast<int>(kMostForAnswer.tv_sec) * 1000) == 1)
    received = receive_message(socket_, std::as_writable_bytes(std::span(&answer, 1)), 1);
  descriptors = std::move(received.descriptors);
  if (received.bytes == static_cast<ssize_t>(sizeof answer)) return answer;
  ended_ = true;  // a late answer would be taken for the next one
  return std::nullopt;
}

bool Channel::add_image(const std::uint8_t (&token)[16], std::uint32_t& image) {
  const std::lock_guard lock(talk_);
  channel::Message message{};
  message.operation = channel::kAttach;
  message.bytes = kWantedAreaBytes;
  std::copy(std::begin(token), std::end(token), message.token);
  std::vector<int> descriptors;
  const auto answer = ask(message, descriptors);
  bool good = answer && answer->error == 0;
  if (good && start_ == nullptr) good = !descriptors.empty() && map(descriptors.front(), answer->bytes);
  for (const int descriptor : descriptors) ::close(descriptor);
  if (good) image = answer->number;
  return good;
}

MutableBytes Channel::new_buffer(std::uint64_t bytes) {
  const std::lock_guard lock(talk_);
  if (!is_usable()) return {};
  channel::Message message{};
  message.operation = channel::kNewBuffer;
  message.bytes = bytes;
  std::vector<int> descriptors;
  const auto answer = ask(message, descriptors);
  void* start = MAP_FAILED;
  // Touched here first, so that the pages are charged to this process.
  if (answer && answer->error == 0 && answer->bytes >= bytes && !descriptors.empty())
    start = ::mmap(nullptr, answer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptors.front(), 0);
  for (const int descriptor : descriptors) ::close(descriptor);
  if (start == MAP_FAILED) return {};
  const MutableBytes buffer(static_cast<std::byte*>(start), answer->bytes);
  const std::lock_guard table(mutex_);
  buffers_.add(buffer, answer->number);
  return buffer;
}

void Channel::free_buffer(MutableBytes buffer) {
  if (is_usable()) {  // no lock in the child of a fork: a thread of the parent may hold it
    channel::Message message{};
    message.operation = channel::kFreeBuffer;
    {
      const std::lock_guard table(mutex_);
      message.number = buffers_.remove(buffer.data());
    }
    const std::lock_guard lock(talk_);
    (void)::send(socket_, &message, sizeof message, MSG_NOSIGNAL);
  }
  ::munmap(buffer.data(), buffer.size());
}

// Without an answer. The daemon also sees the close of the image.
void Channel::detach(std::uint32_t image) {
  const std::lock_guard lock(talk_);
  channel::Message message{};
  message.operation = channel::kDetach;
  message.number = image;
  (void)::send(socket_, &message, sizeof message, MSG_NOSIGNAL);
}

std::optional<Channel::Pending> Channel::take_slot(std::uint64_t bytes, const std::byte* packed) {
  const std::lock_guard lock(mutex_);
  if (free_slots_ == 0) return std::nullopt;
  Pending taken{static_cast<unsigned>(std::countr_zero(free_slots_)), channel::kArea, 0, bytes};
  if (const auto place = buffers_.find(packed, bytes); place) {
    taken.buffer = place->buffer;
    taken.offset = place->offset;
  } else {
    const std::int64_t offset = bytes > area_bytes_ ? -1 : area_.take(bytes);
    if (offset < 0) return std::nullopt;
    taken.offset = static_cast<std::uint64_t>(offset);
  }
  free_slots_ &= free_slots_ - 1;
  return taken;
}

void Channel::give_back(const Pending& pending) {
  const std::lock_guard lock(mutex_);
  if (pending.buffer == channel::kArea) area_.give_back(pending.offset, pending.bytes);
  free_slots_ |= std::uint64_t{1} << pending.slot;
}

void Channel::submit(unsigned index) {
  channel::Header& shared = header();
  slot(index).state.store(channel::kSubmitted, std::memory_order_release);
  shared.submitted.fetch_or(std::uint64_t{1} << index, std::memory_order_seq_cst);
  if (shared.sleeping.load(std::memory_order_seq_cst) == 0) return;
  shared.doorbell.fetch_add(1, std::memory_order_seq_cst);
  channel::futex_wake(shared.doorbell);
}

bool Channel::daemon_is_there() const {
  pollfd state{socket_, 0, 0};
  return ::poll(&state, 1, 0) == 0;
}

// False: the daemon has gone. take_more(): true if there was more to take.
template <typename TakeMore>
bool Channel::wait(channel::Slot& slot, std::int64_t spin_ns, const TakeMore& take_more) {
  const auto done = [&] { return slot.state.load(std::memory_order_acquire) == channel::kDone; };
  bool more = true;
  while (std::exchange(more, false))
    if (channel::spin([&] { return done() || (more = take_more()); }, spin_ns) && !more) return true;
  for (;;) {
    std::uint32_t expected = channel::kSubmitted;
    slot.state.compare_exchange_strong(expected, channel::kAwaited, std::memory_order_seq_cst);
    channel::futex_wait(slot.state, channel::kAwaited, kBetweenLooksNs);
    if (done()) return true;
    if (!daemon_is_there()) return done();
  }
}

std::optional<Channel::Pending> Channel::start(std::uint32_t image, const mdfs_ioc_window& window, std::uint64_t bytes,
                                               const Taker& taker) {
  if (!is_usable() || bytes == 0) return std::nullopt;
  const auto pending = take_slot(bytes, taker.packed);
  if (!pending) return std::nullopt;
  channel::Slot& own = slot(pending->slot);
  own.request = {window, image, pending->buffer, pending->offset, bytes};
  own.ready.store(0, std::memory_order_relaxed);
  submit(pending->slot);
  return pending;
}

bool Channel::finish(const Pending& pending, const Taker& taker) {
  if (!is_usable()) return false;  // in the child of a fork the memory is not there
  channel::Slot& own = slot(pending.slot);
  const bool is_there = pending.buffer != channel::kArea;  // the daemon itself puts the samples where they belong
  const std::byte* const samples = start_ + channel::kAreaOffset + pending.offset;
  std::uint64_t taken = 0;
  const auto take_until = [&](std::uint64_t end) {
    if (is_there || end <= taken) return false;
    taker.take(taken, ConstBytes(samples + taken, end - taken));
    taken = end;
    return true;
  };
  const auto take_more = [&] {
    const std::uint64_t ready = std::min(own.ready.load(std::memory_order_acquire), pending.bytes);
    return take_until(ready - ready % taker.sample_bytes);
  };
  const std::int64_t copying_ns = is_there ? static_cast<std::int64_t>(pending.bytes / kBytesOfNs) : 0;
  if (!wait(own, channel::kSpinNs + copying_ns, take_more)) {
    ended_ = true;  // the slot and its bytes stay taken
    return false;
  }
  const bool good = own.error == 0;
  if (own.changed != 0) taken = 0;
  if (good) take_until(pending.bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (header().alive.load(std::memory_order_seq_cst) != 1) {  // the daemon has ended, and freed the samples
    ended_ = true;
    return false;
  }
  give_back(pending);
  return good;
}

ImageChannel::~ImageChannel() {
  if (channel_ != nullptr && channel_->is_usable()) channel_->detach(image_);
}

std::shared_ptr<Channel> ImageChannel::current(int fd, std::uint32_t& image, std::size_t reads) {
  const std::lock_guard lock(mutex_);
  if (channel_ != nullptr && !channel_->is_usable()) {
    channel_.reset();
    reads_ = 0;
  }
  if (channel_ == nullptr) {
    if (refused_ || (reads_ += reads) <= kReadsBeforeChannel) return nullptr;
    channel_ = Channel::attach(fd, image_);
    refused_ = channel_ == nullptr;
  }
  image = image_;
  return channel_;
}

bool ImageChannel::read(int fd, const mdfs_ioc_window& window, std::uint64_t bytes, const Taker& taker) {
  std::uint32_t image = 0;
  const std::shared_ptr<Channel> channel = current(fd, image, 1);
  if (channel == nullptr) return false;
  const auto pending = channel->start(image, window, bytes, taker);
  return pending && channel->finish(*pending, taker);
}

}  // namespace mdfs::client
