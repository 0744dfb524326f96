// The socket of channels.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/checked.h"
#include "base/log.h"
#include "base/socket_message.h"
#include "channel/address.h"

namespace mdfs::fuse {
namespace {

constexpr unsigned kQueueThreads = 2, kMostQueueThreads = 16;  // each waits for disks
constexpr int kBacklog = 64;
constexpr int kLeavingMs = 10;        // between two looks at clients that end
constexpr int kIntroductionMs = 200;  // between two looks at those without a token
constexpr int kOutOfDescriptorsMs = 100;

// With the descriptor of the memory, which this process does not need any more. Without waiting: an answer that does
// not fit means a client that does not read.
bool send_answer(const device::UniqueFd& socket, const channel::Answer& answer, SharedMemory* memory) {
  std::vector<int> descriptors;
  if (memory != nullptr) descriptors.push_back(memory->descriptor().get());
  const bool sent = send_message(socket.get(), std::as_bytes(std::span(&answer, 1)), descriptors, MSG_DONTWAIT);
  if (memory != nullptr) memory->close_descriptor();
  return sent;
}

}  // namespace

Result<std::unique_ptr<ChannelServer>> ChannelServer::listen(Environment& environment, std::uint64_t cache_bytes) {
  const std::string name = fmt::format("mdfs-channel-{:016x}{:016x}", environment.random(), environment.random());
  sockaddr_un address;
  const socklen_t length = channel::fill_address(name, address);
  device::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  device::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener.open() || !wake.open() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), kBacklog) != 0)
    return from_errno(errno, "socket of channels");
  return std::unique_ptr<ChannelServer>(
      new ChannelServer(name, std::move(listener), std::move(wake), environment, cache_bytes));
}

void ChannelServer::start(volume::Volume& volume, FairQueue& level_queue, views::StagingPool& staging,
                          TraceRecorder* trace) {
  queue_ = std::make_unique<WorkQueue>(kQueueThreads, kMostQueueThreads);
  context_.emplace(ChannelContext{volume, *queue_, level_queue, staging, trace});
  thread_ = std::thread([this] { run(); });
}

void ChannelServer::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) != sizeof one) spdlog::error("waking the channels: errno {}", errno);
  thread_.join();
  queue_.reset();
  grants_.withdraw_all();
}

Result<ChannelToken> ChannelServer::grant(volume::Volume& volume, const void* holder, volume::Ino ino, uid_t user) {
  MDFS_TRY_ASSIGN(auto grant, ChannelGrant::make(volume, ino, user));
  return grants_.add(holder, std::move(grant), environment_);
}

void ChannelServer::close(const void* holder) {
  if (!grants_.withdraw(holder)) return;
  std::vector<std::shared_ptr<ChannelClient>> clients;  // the end of a grant may wait for disks
  {
    const std::lock_guard lock(mutex_);
    clients = clients_;
  }
  for (const auto& client : clients) client->remove_withdrawn();
}

void ChannelServer::run() {
  bool accepts = true;
  for (;;) {
    std::vector<pollfd> all = {{wake_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
    bool introductions = false, leaving = !leaving_.empty();
    for (const Peer& peer : peers_) {
      all.push_back({peer.socket.get(), POLLIN, 0});
      introductions |= peer.client == nullptr;
      leaving |= peer.client != nullptr && peer.client->buffers().has_removed();
    }
    const int wait = leaving ? kLeavingMs : introductions ? kIntroductionMs : accepts ? -1 : kOutOfDescriptorsMs;
    accepts = true;
    const int ready = ::poll(all.data(), all.size(), wait);
    if (ready > 0 && all[0].revents != 0) break;
    const auto now = std::chrono::steady_clock::now();
    std::vector<Peer> staying;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      const bool heard = ready > 0 && all[i + 2].revents != 0;
      const bool late = peer.client == nullptr && now - peer.since > kMostIntroduction;
      if ((heard && !hear(peer)) || (late && peer.client == nullptr)) {
        drop(std::move(peer));
      } else {
        staying.push_back(std::move(peer));
      }
    }
    peers_ = std::move(staying);
    if (ready > 0 && all[1].revents != 0) {
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      accepts = socket >= 0;
      if (accepts) accept_peer(device::UniqueFd(socket));
    }
    reap();
  }
  for (Peer& peer : std::exchange(peers_, {})) drop(std::move(peer));
  while (!leaving_.empty()) {
    reap();
    if (!leaving_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(kLeavingMs));
  }
}

void ChannelServer::accept_peer(device::UniqueFd socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (peers_.size() >= kMostSockets || ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return;
  peers_.push_back({std::move(socket), who.uid, who.pid, std::chrono::steady_clock::now(), nullptr, 0});
}

bool ChannelServer::hear(Peer& peer) {
  channel::Message message{};
  const ssize_t count = ::recv(peer.socket.get(), &message, sizeof message, MSG_DONTWAIT | MSG_TRUNC);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count != static_cast<ssize_t>(sizeof message)) return false;  // gone, or of another protocol
  switch (message.operation) {
    case channel::kAttach:
      return attach(peer, message);
    case channel::kDetach:
      if (peer.client == nullptr) return false;
      peer.client->remove_image(message.number);
      return true;
    case channel::kNewBuffer:
      return peer.client != nullptr && add_buffer(peer, message.bytes);
    case channel::kFreeBuffer:
      if (peer.client == nullptr) return false;
      peer.client->buffers().remove(message.number);
      reap_buffers(peer);
      return true;
    default:
      return false;
  }
}

// A wrong token ends the connection.
bool ChannelServer::attach(Peer& peer, const channel::Message& message) {
  ChannelToken token;
  std::copy(std::begin(message.token), std::end(message.token), token.begin());
  auto grant = grants_.redeem(token, peer.user);
  if (grant == nullptr) return false;
  const bool is_first = peer.client == nullptr;
  Status status = is_first ? make_client(peer, message.bytes) : Status{};
  channel::Answer answer{};
  if (status.ok()) {
    const auto image = peer.client->add_image(std::move(grant));
    if (image.ok()) {
      answer.number = *image;
    } else {
      status = image.error();
    }
  }
  answer.error = status.ok() ? 0 : status.error().posix_errno();
  answer.bytes = peer.area_bytes;
  const bool shares = is_first && peer.client != nullptr;
  return send_answer(peer.socket, answer, shares ? &peer.client->memory().shared() : nullptr) && peer.client != nullptr;
}

bool ChannelServer::add_buffer(Peer& peer, std::uint64_t bytes) {
  channel::Answer answer{};
  const auto memory = make_buffer(peer, bytes);
  const auto number = memory.ok() ? peer.client->buffers().add(*memory) : memory.error();
  if (memory.ok() && !number.ok()) budget_.give_back_buffers(peer.user, (*memory)->bytes().size());
  if (!number.ok()) {
    answer.error = number.error().posix_errno();
    return send_answer(peer.socket, answer, nullptr);
  }
  answer.number = *number;
  answer.bytes = (*memory)->bytes().size();
  return send_answer(peer.socket, answer, memory->get());
}

Result<std::shared_ptr<SharedMemory>> ChannelServer::make_buffer(const Peer& peer, std::uint64_t bytes) {
  if (bytes == 0) return Error{Errc::kInvalidArgument, "a buffer without bytes"};
  const auto whole = checked_mul(ceil_div(bytes, ChannelBudget::kPageBytes), ChannelBudget::kPageBytes);
  if (!whole || !budget_.take_buffer(peer.user, *whole)) return Error{Errc::kBusy, "memory of channels"};
  auto memory = SharedMemory::make("mdfs-buffer", *whole);
  if (memory.ok()) return std::make_shared<SharedMemory>(std::move(memory).value());
  budget_.give_back_buffers(peer.user, *whole);
  return std::move(memory).error();
}

void ChannelServer::reap_buffers(const Peer& peer) {
  if (peer.client == nullptr) return;
  if (const std::uint64_t freed = peer.client->buffers().reap(); freed > 0) budget_.give_back_buffers(peer.user, freed);
}

Status ChannelServer::make_client(Peer& peer, std::uint64_t asked_bytes) {
  const std::uint64_t area = budget_.take(peer.user, asked_bytes);
  if (area == 0) return Error{Errc::kBusy, "memory of channels"};
  auto memory = ChannelMemory::make(area);
  if (!memory.ok()) {
    budget_.give_back(peer.user, area);
    return memory.error();
  }
  auto client = std::make_shared<ChannelClient>(*context_, std::move(memory).value(), peer.process);
  if (Status status = client->start(); !status.ok()) {
    budget_.give_back(peer.user, area);
    return status;
  }
  peer.client = std::move(client);
  peer.area_bytes = area;
  const std::lock_guard lock(mutex_);
  clients_.push_back(peer.client);
  return {};
}

void ChannelServer::drop(Peer peer) {
  if (peer.client == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    std::erase(clients_, peer.client);
  }
  peer.client->end();
  leaving_.push_back(std::move(peer));
}

// Frees clients whose last request has ended, and buffers that no request holds any more.
void ChannelServer::reap() {
  for (const Peer& peer : peers_) reap_buffers(peer);
  std::erase_if(leaving_, [this](const Peer& peer) {
    if (peer.client->has_ended() && peer.client.use_count() == 1) {
      budget_.give_back_buffers(peer.user, peer.client->buffers().bytes());
      budget_.give_back(peer.user, peer.area_bytes);
      return true;
    }
    peer.client->end();
    return false;
  });
}

}  // namespace mdfs::fuse
