// The control socket.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/socket_message.h"
#include "base/text.h"

namespace mdfs::fuse {
namespace {

constexpr std::string_view kWaitEnd = "wait-end\n";
constexpr std::string_view kState = "state\n";
constexpr std::string_view kMounted = "mounted";
constexpr std::string_view kEnding = "ending";
constexpr std::string_view kOk = "ok";
constexpr std::string_view kNote = "note ";
constexpr std::string_view kDone = "done ";
constexpr std::string_view kFailed = "failed ";
constexpr const char* kSocketName = "control";
constexpr std::size_t kMaxLineBytes = 4096;
constexpr std::size_t kMaxRequestBytes = 16384;
constexpr std::size_t kMaxDescriptors = 64;
constexpr int kTriesToBind = 10;
constexpr int kPatienceMs = 15'000;  // of a client, for the answer to "state"
constexpr int kLastRequestMs = 100;  // at the end, for the request of a connected client

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return from_errno(errno, path);
}

// The directory of one volume, in the hands of its owner. Those above are the caller's.
Result<device::UniqueFd> make_directory_for(const std::string& path, const Identity& owner) {
  MDFS_TRY(make_directory(path));
  device::UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.open() || (owner.uid != geteuid() && fchown(fd.get(), owner.uid, owner.gid) != 0))
    return from_errno(errno, path);
  return fd;
}

Result<sockaddr_un> address_in(const std::string& directory) {
  const std::string path = directory + '/' + kSocketName;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{Errc::kNameTooLong, path};
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

void send_line(int fd, std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  // A short line into an empty socket: it fits, or the client is gone.
  if (send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) spdlog::debug("a control client has gone");
}

// What there is to read, with the descriptors that came along. Nothing if the client has gone. kTooManyFiles: this
// process may not open so many.
Result<std::string> receive(int fd, std::vector<device::UniqueFd>& descriptors) {
  std::string text(kMaxRequestBytes, '\0');
  const ReceivedMessage received =
      receive_message(fd, std::as_writable_bytes(std::span(text)), kMaxDescriptors, MSG_DONTWAIT);
  for (const int descriptor : received.descriptors) descriptors.emplace_back(descriptor);
  if (received.is_cut)
    return Error{Errc::kTooManyFiles, "the daemon cannot take another file; mount again with a higher limit"};
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(received.bytes, 0)));
  return text;
}

std::string failure(const Error& error) {
  return fmt::format("{}{}{}", kFailed, static_cast<char>('A' + static_cast<int>(error.code)),
                     shortened(error.where, kMaxLineBytes / 2));
}

// The error of a line from failure(); of any other line, the line.
Error to_error(const std::string& line) {
  const std::size_t at = kFailed.size();
  const auto code = line.size() > at ? static_cast<std::size_t>(line[at] - 'A') : error_table().size();
  if (!line.starts_with(kFailed) || code >= error_table().size()) return {Errc::kIo, line};
  return {static_cast<Errc>(code), line.substr(at + 1)};
}

}  // namespace

Result<std::string> runtime_directory(const Uuid& volume) {
  std::string base = "/run";
  if (geteuid() != 0) {
    const char* const own = getenv("XDG_RUNTIME_DIR");
    if (own == nullptr || own[0] != '/') return Error{Errc::kNotFound, "XDG_RUNTIME_DIR is not set"};
    base = own;
  }
  return base + "/mdfs/" + volume.to_string();
}

void remove_runtime_directory(const Uuid& volume) {
  const auto path = runtime_directory(volume);
  if (path.ok()) rmdir(path->c_str());
}

Result<std::unique_ptr<ControlServer>> ControlServer::listen(const Uuid& volume, const Identity& owner) {
  MDFS_TRY_ASSIGN(const std::string path, runtime_directory(volume));
  MDFS_TRY(make_directory(path.substr(0, path.rfind('/'))));
  MDFS_TRY_ASSIGN(const sockaddr_un address, address_in(path));
  if (ControlClient::connect(volume).ok())
    return Error{Errc::kBusy, "volume " + volume.to_string() + " is mounted already, from other disks: one is a copy"};
  device::UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  device::UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  // The socket gets its mode before it has a name, so that no other process can open it.
  if (!listener.open() || !wake.open() || fchmod(listener.get(), 0600) != 0) return from_errno(errno, address.sun_path);
  device::UniqueFd directory;
  for (int tries = 1;; ++tries) {
    MDFS_TRY_ASSIGN(directory, make_directory_for(path, owner));
    unlink(address.sun_path);  // of a daemon that died
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) break;
    // An `mdfs umount` of the mount before may have just removed the directory.
    if (errno != ENOENT || tries == kTriesToBind) return from_errno(errno, address.sun_path);
  }
  if (::listen(listener.get(), 16) != 0) return from_errno(errno, address.sun_path);
  return std::unique_ptr<ControlServer>(
      new ControlServer(path, std::move(directory), std::move(listener), std::move(wake)));
}

void ControlServer::serve(ControlHandler handler) {
  handler_ = std::move(handler);
  if (handler_) changes_ = std::make_unique<WorkQueue>(1);
  thread_ = std::thread([this] { serve_clients(); });
}

ControlServer::~ControlServer() { finish(Error{Errc::kCancelled, "the daemon ends"}); }

void ControlServer::stop_changes() {
  std::unique_ptr<WorkQueue> changes;
  {
    const std::lock_guard lock(changes_mutex_);
    changes = std::move(changes_);
  }
}

ControlServer::Client ControlServer::hand_on(int client, ControlRequest request) {
  const std::lock_guard lock(changes_mutex_);
  if (!changes_ || ending_) {
    send_line(client, failure({Errc::kBusy, "the volume is being unmounted"}));
    return Client::kGoes;
  }
  changes_->post([this, client, request = std::make_shared<ControlRequest>(std::move(request))] {
    const auto answer = handler_(std::move(*request));
    send_line(client, answer.ok() ? std::string(kDone) + *answer : failure(answer.error()));
    close(client);
  });
  return Client::kHanded;
}

void ControlServer::finish(const Status& outcome, const std::string& notes) {
  stop_changes();
  if (!listener_.open()) return;
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) != sizeof one) spdlog::error("waking the control thread: errno {}", errno);
    thread_.join();
  } else {
    unlinkat(directory_.get(), kSocketName, 0);
  }
  // Before clients are told: the next daemon of this volume may begin at once, in the same directory.
  listener_.reset();
  unlinkat(AT_FDCWD, path_.c_str(), AT_REMOVEDIR);
  const std::string answer = outcome.ok() ? std::string(kOk) : failure(outcome.error());
  for (const int client : std::exchange(waiting_, {})) {
    for (const std::string& line : lines_of(notes)) send_line(client, std::string(kNote) + line);
    send_line(client, answer);
    close(client);
  }
}

void ControlServer::serve_clients() {
  std::vector<pollfd> clients;
  bool ending = false;
  for (;;) {
    std::vector<pollfd> all = {{ending ? -1 : wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    all.insert(all.end(), clients.begin(), clients.end());
    const int ready = poll(all.data(), all.size(), !ending ? -1 : clients.empty() ? 0 : kLastRequestMs);
    if (ready < 0) {
      MDFS_CHECK(errno == EINTR);
      continue;
    }
    if (ready == 0) break;
    clients.clear();
    for (std::size_t i = 2; i < all.size(); ++i) {
      if (all[i].revents == 0) {
        clients.push_back(all[i]);
        continue;
      }
      switch (read_request(all[i].fd)) {
        case Client::kStays:
          clients.push_back(all[i]);
          break;
        case Client::kHanded:
          break;
        case Client::kWaits:
          waiting_.push_back(all[i].fd);
          break;
        case Client::kGoes:
          close(all[i].fd);
          break;
      }
    }
    if (all[0].revents != 0) {
      // No new clients are accepted. Connected clients that ask now are answered.
      ending = true;
      unlinkat(directory_.get(), kSocketName, 0);
    }
    if (all[1].revents == 0) continue;
    const int client = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) continue;
    if (clients.size() + waiting_.size() >= kMaxClients) {
      send_line(client, failure({Errc::kBusy, "too many clients"}));
      close(client);
    } else {
      clients.push_back({client, POLLIN, 0});
    }
  }
  for (const pollfd& client : clients) close(client.fd);
}

ControlServer::Client ControlServer::read_request(int client) {
  ControlRequest change;
  const Result<std::string> received = receive(client, change.descriptors);
  if (!received.ok()) {
    send_line(client, failure(received.error()));
    return Client::kGoes;
  }
  const std::string& request = *received;
  if (request.empty()) return Client::kGoes;
  if (request == kState) {
    send_line(client, std::string(ending_ ? kEnding : kMounted));
    return Client::kStays;
  }
  if (request == kWaitEnd) return Client::kWaits;
  if (request.back() != '\n') {
    send_line(client, failure({Errc::kInvalidArgument, "a request without an end"}));
    return Client::kGoes;
  }
  change.lines = lines_of(request);
  return hand_on(client, std::move(change));
}

Result<ControlClient> ControlClient::connect(const Uuid& volume) {
  MDFS_TRY_ASSIGN(const std::string directory, runtime_directory(volume));
  MDFS_TRY_ASSIGN(const sockaddr_un address, address_in(directory));
  ControlClient client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.fd_ < 0 || ::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return from_errno(errno == ECONNREFUSED ? ENOENT : errno, address.sun_path);
  return client;
}

ControlClient::ControlClient(ControlClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
ControlClient::~ControlClient() {
  if (fd_ >= 0) close(fd_);
}

Status ControlClient::ask_for_end() {
  if (send(fd_, kWaitEnd.data(), kWaitEnd.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kWaitEnd.size())) return {};
  return from_errno(errno, "control socket");
}

Result<bool> ControlClient::is_ending() {
  if (send(fd_, kState.data(), kState.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(kState.size()))
    return from_errno(errno, "control socket");
  pollfd waiting{fd_, POLLIN, 0};
  if (poll(&waiting, 1, kPatienceMs) == 0) return Error{Errc::kBusy, "the daemon does not answer"};
  char buffer[kMaxLineBytes];
  const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
  if (count <= 0) return Error{Errc::kIo, "the daemon has gone"};
  return std::string_view(buffer, static_cast<std::size_t>(count)).starts_with(kEnding);
}

Result<std::string> ControlClient::change(const std::vector<std::string>& lines, const std::vector<int>& descriptors) {
  std::string text;
  for (const std::string& line : lines) {
    if (line.find('\n') != std::string::npos) return Error{Errc::kInvalidArgument, line + ": a name with a line break"};
    text += line + '\n';
  }
  if (text.size() > kMaxRequestBytes || descriptors.size() > kMaxDescriptors)
    return Error{Errc::kTooBig, "too much for one request: name fewer disks"};
  if (!send_message(fd_, as_bytes(text), descriptors)) return from_errno(errno, "control socket");
  std::string answer;
  char buffer[kMaxLineBytes];
  while (!answer.ends_with('\n')) {
    const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error{Errc::kIo, "the daemon has gone"};
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  answer.pop_back();
  if (answer.starts_with(kDone)) return answer.substr(kDone.size());
  return to_error(answer);
}

Status ControlClient::wait_for_end(const std::function<void(const std::string& line)>& note) {
  std::string received;
  char buffer[kMaxLineBytes];
  for (;;) {
    for (std::size_t end = received.find('\n'); end != std::string::npos; end = received.find('\n')) {
      const std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      if (line == kOk) return {};
      if (!line.starts_with(kNote)) return to_error(line);
      note(line.substr(kNote.size()));
    }
    if (received.size() > kMaxLineBytes) return Error{Errc::kIo, "the daemon's answer is invalid"};
    const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error{Errc::kIo, "the daemon died before everything was on the disks"};
    received.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace mdfs::fuse
