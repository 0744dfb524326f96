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

#include "base/checked.h"
#include "base/socket_message.h"
#include "channel/address.h"
#include "channel/wait.h"

namespace mdfs::client {
namespace {

constexpr std::uint64_t kWantedAreaBytes = 16u << 20;
constexpr timeval kMostForAnswer{2, 0};
constexpr std::int64_t kBetweenLooksNs = 200'000'000;  // whether the daemon is still there
constexpr unsigned kReadsBefore = 4;                   // through the kernel, before an image is attached

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

std::int64_t AreaAllocator::take(std::uint64_t bytes) {
  const std::uint64_t whole = align_up(bytes, kPageBytes);
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    if (part->second < whole) continue;
    const auto [offset, length] = *part;
    free_.erase(part);
    if (length > whole) free_.emplace(offset + whole, length - whole);
    return static_cast<std::int64_t>(offset);
  }
  return -1;
}

void AreaAllocator::give_back(std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t length = align_up(bytes, kPageBytes);
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += length;
      return;
    }
  }
  free_.emplace_hint(next, offset, length);
}

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

bool Channel::add_image(const std::uint8_t (&token)[16], std::uint32_t& image) {
  const std::lock_guard lock(talk_);
  channel::Message message{};
  message.operation = channel::kAttach;
  message.area_bytes = kWantedAreaBytes;
  std::copy(std::begin(token), std::end(token), message.token);
  if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof message)) return false;
  pollfd answered{socket_, POLLIN, 0};
  if (::poll(&answered, 1, static_cast<int>(kMostForAnswer.tv_sec) * 1000) != 1) {
    ended_ = true;  // a late answer would be taken for the next one
    return false;
  }
  channel::Answer answer{};
  const ReceivedMessage received = receive_message(socket_, std::as_writable_bytes(std::span(&answer, 1)), 1);
  const bool whole = received.bytes == static_cast<ssize_t>(sizeof answer);
  bool good = whole && answer.error == 0;
  if (good && start_ == nullptr)
    good = !received.descriptors.empty() && map(received.descriptors.front(), answer.area_bytes);
  for (const int descriptor : received.descriptors) ::close(descriptor);
  if (!whole) ended_ = true;
  image = answer.image;
  return good;
}

// Without an answer. The daemon also sees the close of the image.
void Channel::detach(std::uint32_t image) {
  const std::lock_guard lock(talk_);
  channel::Message message{};
  message.operation = channel::kDetach;
  message.image = image;
  (void)::send(socket_, &message, sizeof message, MSG_NOSIGNAL);
}

int Channel::take_slot(std::uint64_t bytes, std::uint64_t& offset) {
  const std::lock_guard lock(mutex_);
  if (free_slots_ == 0) return -1;
  const std::int64_t place = area_.take(bytes);
  if (place < 0) return -1;
  offset = static_cast<std::uint64_t>(place);
  const int index = std::countr_zero(free_slots_);
  free_slots_ &= free_slots_ - 1;
  return index;
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
bool Channel::wait(channel::Slot& slot, const TakeMore& take_more) {
  const auto done = [&] { return slot.state.load(std::memory_order_acquire) == channel::kDone; };
  bool more = true;
  while (std::exchange(more, false))
    if (channel::spin([&] { return done() || (more = take_more()); }) && !more) return true;
  for (;;) {
    std::uint32_t expected = channel::kSubmitted;
    slot.state.compare_exchange_strong(expected, channel::kAwaited, std::memory_order_seq_cst);
    channel::futex_wait(slot.state, channel::kAwaited, kBetweenLooksNs);
    if (done()) return true;
    if (!daemon_is_there()) return done();
  }
}

std::optional<Channel::Pending> Channel::start(std::uint32_t image, const mdfs_ioc_window& window,
                                               std::uint64_t bytes) {
  if (!is_usable() || bytes == 0 || bytes > area_bytes_) return std::nullopt;
  std::uint64_t offset = 0;
  const int index = take_slot(bytes, offset);
  if (index < 0) return std::nullopt;
  const Pending pending{static_cast<unsigned>(index), offset, bytes};
  channel::Slot& own = slot(pending.slot);
  own.request = {window, image, 0, offset, bytes};
  own.ready.store(0, std::memory_order_relaxed);
  submit(pending.slot);
  return pending;
}

bool Channel::finish(const Pending& pending, const Taker& taker) {
  if (!is_usable()) return false;  // in the child of a fork the memory is not there
  channel::Slot& own = slot(pending.slot);
  const ConstBytes samples(start_ + channel::kAreaOffset + pending.offset, pending.bytes);
  std::uint64_t taken = 0;
  const auto take_until = [&](std::uint64_t end) {
    if (end <= taken) return false;
    taker.take(taken, samples.subspan(taken, end - taken));
    taken = end;
    return true;
  };
  const auto take_more = [&] {
    const std::uint64_t ready = std::min(own.ready.load(std::memory_order_acquire), pending.bytes);
    return take_until(ready - ready % taker.sample_bytes);
  };
  if (!wait(own, take_more)) {
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
  const std::lock_guard lock(mutex_);
  area_.give_back(pending.offset, pending.bytes);
  free_slots_ |= std::uint64_t{1} << pending.slot;
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
    if (refused_ || (reads_ += reads) <= kReadsBefore) return nullptr;
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
  const auto pending = channel->start(image, window, bytes);
  return pending && channel->finish(*pending, taker);
}

}  // namespace mdfs::client
