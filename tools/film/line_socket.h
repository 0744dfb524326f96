// Lines of text over TCP, between the controller of a wall and its panels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "support/file.h"

namespace mdfs::film {

inline constexpr std::size_t kMaxLineBytes = 1024;

// One thread at a time calls the methods.
class LineSocket {
 public:
  explicit LineSocket(tools::File socket) : socket_(std::move(socket)) {}
  static Result<LineSocket> connect(const std::string& host, int port);

  int fd() const { return socket_.fd(); }
  // Adds a newline.
  Status send(std::string_view line);
  // The lines that have arrived, without waiting. Nothing: the other side has closed, or has sent too long a line.
  std::optional<std::vector<std::string>> take();

 private:
  tools::File socket_;
  std::string rest_;
};

// A socket that listens at the host's address.
Result<tools::File> listen_at(const std::string& host, int port);

}  // namespace mdfs::film
