// A connection of the web server.
// SPDX-License-Identifier: Apache-2.0
#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "serve/http_head.h"
#include "serve/web_text.h"

namespace mdfs::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLingerMilliseconds = 500;           // for what a client still sends when its connection ends
constexpr std::size_t kMostLingering = 256 << 10;  // bytes

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

// True if the socket is ready in time; errors count as ready.
bool wait_for(int socket, short events, int milliseconds) {
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, milliseconds_until(end));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Connection::~Connection() {
  // Bytes that were not read would make the kernel reset the connection, and the client lose the answer.
  ::shutdown(socket_.get(), SHUT_WR);
  const auto end = Clock::now() + std::chrono::milliseconds(kLingerMilliseconds);
  for (std::size_t count = 0; count < kMostLingering; count += input_.size()) {
    input_.clear();
    if (!receive(milliseconds_until(end))) break;
  }
}

bool Connection::receive(int milliseconds) {
  std::array<char, 16 << 10> piece;
  if (!wait_for(socket_.get(), POLLIN, milliseconds)) return false;
  const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  input_.append(piece.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::string Connection::next_head(int& refused) {
  refused = 0;
  const auto idle = Clock::now() + std::chrono::seconds(kIdleSeconds);
  for (;;) {  // empty lines before a request do not count (RFC 9112, 2.2)
    input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
    if (!input_.empty()) break;
    if (!receive(milliseconds_until(idle))) return {};
  }
  const auto end = Clock::now() + std::chrono::seconds(kTimeoutSeconds);
  for (;;) {
    if (const std::size_t count = head_bytes(input_); count > 0) {
      std::string head = input_.substr(0, count);
      input_.erase(0, count);
      return head;
    }
    if ((refused = refuse_unfinished(input_)) != 0) return {};
    if (!receive(milliseconds_until(end))) {
      if (Clock::now() >= end) refused = 408;
      return {};
    }
  }
}

void Connection::give(std::string text) {
  given_ = std::move(text);
  at_ = 0;
  answer_.clear();
  head_is_sent_ = false;
}

bool Connection::skip(std::uint64_t count) {
  const auto end = Clock::now() + std::chrono::seconds(kTimeoutSeconds);
  for (;;) {
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(count, input_.size()));
    input_.erase(0, here);
    count -= here;
    if (count == 0) return true;
    if (!receive(milliseconds_until(end))) return false;
  }
}

bool Connection::send(std::string_view text) {
  while (!text.empty()) {
    if (!is_writable()) return false;
    const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      return false;
    }
  }
  return true;
}

bool Connection::is_writable() const { return wait_for(socket_.get(), POLLOUT, kTimeoutSeconds * 1000); }

ssize_t Connection::read(char* to, std::size_t size) {
  const std::size_t count = given_.copy(to, size, at_);
  at_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  const std::string_view bytes(from, size);
  const auto all = static_cast<ssize_t>(size);
  if (head_is_sent_) return send(bytes) ? all : -1;
  answer_ += bytes;
  const std::size_t end = answer_.find("\r\n\r\n");
  if (end == std::string::npos) return all;
  head_is_sent_ = true;
  const std::string head =
      completed_answer(std::string_view(answer_).substr(0, end + 4), http_date(std::time(nullptr)));
  return send(head) && send(std::string_view(answer_).substr(end + 4)) ? all : -1;
}

// Nothing is decided by addresses.
void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}
void Connection::get_local_ip_and_port(std::string& ip, int& port) const { get_remote_ip_and_port(ip, port); }

}  // namespace mdfs::serve
