// Sockets of a wall.
// SPDX-License-Identifier: Apache-2.0
#include "line_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

namespace mdfs::film {
namespace {

constexpr int kWaiting = 64;  // connections that are not accepted yet

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::string name_of(const std::string& host, int port) { return fmt::format("{} port {}", host, port); }

Result<Addresses> addresses_of(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) return Error{Errc::kNotFound, fmt::format("{}: {}", host, ::gai_strerror(failure))};
  return Addresses(found);
}

}  // namespace

Result<LineSocket> LineSocket::connect(const std::string& host, int port) {
  MDFS_TRY_ASSIGN(const Addresses addresses, addresses_of(host, port, 0));
  int failure = ENOENT;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    tools::File socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol),
                       name_of(host, port));
    if (socket.fd() >= 0 && ::connect(socket.fd(), one->ai_addr, one->ai_addrlen) == 0)
      return LineSocket(std::move(socket));
    failure = errno;
  }
  return from_errno(failure, fmt::format("the controller of the wall at {}", name_of(host, port)));
}

Result<tools::File> listen_at(const std::string& host, int port) {
  MDFS_TRY_ASSIGN(const Addresses addresses, addresses_of(host, port, AI_PASSIVE));
  int failure = ENOENT;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    tools::File socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol),
                       name_of(host, port));
    const int yes = 1;
    if (socket.fd() >= 0 && ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(socket.fd(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.fd(), kWaiting) == 0)
      return socket;
    failure = errno;
  }
  return from_errno(failure, name_of(host, port));
}

Status LineSocket::send(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  // A line fits into the buffer of a socket whose other side reads.
  if (::send(fd(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(text.size()))
    return {};
  return from_errno(errno, socket_.name());
}

std::optional<std::vector<std::string>> LineSocket::take() {
  std::array<char, kMaxLineBytes> bytes;
  const ssize_t got = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return std::nullopt;
  if (got > 0) rest_.append(bytes.data(), static_cast<std::size_t>(got));
  std::vector<std::string> lines;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
    lines.push_back(rest_.substr(0, end));
    rest_.erase(0, end + 1);
  }
  if (rest_.size() > kMaxLineBytes) return std::nullopt;
  return lines;
}

}  // namespace mdfs::film
