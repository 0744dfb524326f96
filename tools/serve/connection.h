// A connection of the web server: heads of requests one after another, also where several arrive at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <cstdint>
#include <string>

#include "serve/web_tree.h"

namespace mdfs::serve {

inline constexpr int kTimeoutSeconds = 10;  // for a head, and for each piece of an answer
inline constexpr int kIdleSeconds = 5;      // between two requests

// The library reads one head from it and writes one answer to it. Of one thread.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(socket_t socket) : socket_(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  // Waits for the next head, the bytes up to the empty line; empty: `refused` is the status to send, or 0 at the end of
  // the connection.
  std::string next_head(int& refused);
  // The text that the library reads next.
  void give(std::string text);
  // Skips the body of a request. False at the end of the connection.
  bool skip(std::uint64_t count);
  bool send(std::string_view text);

  bool is_readable() const override { return at_ < given_.size(); }
  bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_.get(); }

 private:
  // Adds what arrives to input_. False at the end, or when the time has passed.
  bool receive(int milliseconds);

  Descriptor socket_;
  std::string input_;   // has arrived, and is not used
  std::string given_;   // for the library
  std::size_t at_ = 0;  // of given_
  std::string answer_;  // its head, until it is complete
  bool head_is_sent_ = false;
};

}  // namespace mdfs::serve
