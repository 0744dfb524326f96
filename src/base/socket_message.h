// Messages of Unix sockets, with the descriptors that go along.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace mdfs {

// Sends all bytes at once, as sendmsg(2) with these flags; a socket that has gone raises no signal. False: errno says
// why, or a part was sent. The descriptors stay those of the caller.
bool send_message(int socket, ConstBytes bytes, std::span<const int> descriptors, int flags = 0);

struct ReceivedMessage {
  ssize_t bytes = -1;            // as of recvmsg(2): 0 at the end, -1 with errno
  bool is_cut = false;           // there were more descriptors, or this process may not open so many
  std::vector<int> descriptors;  // of the caller from now on; closed by exec(3)
};
// As recvmsg(2) with these flags. At most `most_descriptors` are taken.
ReceivedMessage receive_message(int socket, MutableBytes into, std::size_t most_descriptors, int flags = 0);

}  // namespace mdfs
