// Control messages of sendmsg(2) and recvmsg(2).
// SPDX-License-Identifier: Apache-2.0
#include "base/socket_message.h"

#include <sys/socket.h>

#include <cstring>

namespace mdfs {
namespace {

// Room for so many descriptors, aligned as the headers in it have to be.
std::vector<cmsghdr> control_room(std::size_t descriptors) {
  return std::vector<cmsghdr>((CMSG_SPACE(descriptors * sizeof(int)) + sizeof(cmsghdr) - 1) / sizeof(cmsghdr));
}

}  // namespace

bool send_message(int socket, ConstBytes bytes, std::span<const int> descriptors, int flags) {
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::vector<cmsghdr> control = control_room(descriptors.size());
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

ReceivedMessage receive_message(int socket, MutableBytes into, std::size_t most_descriptors, int flags) {
  iovec vector{into.data(), into.size()};
  std::vector<cmsghdr> control = control_room(most_descriptors);
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(most_descriptors * sizeof(int));
  ReceivedMessage received;
  received.bytes = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (received.bytes < 0) return received;
  received.is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      received.descriptors.push_back(descriptor);
    }
  }
  return received;
}

}  // namespace mdfs
