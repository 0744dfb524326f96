// Requests whose caller does not live to see the answer.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/interrupts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <utility>

#include "fuse/server.h"

namespace mdfs::fuse {

bool is_ending(std::string_view status) {
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  for (const std::string_view name : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const std::size_t at = status.find(name);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = status.substr(at + name.size(), 16);
    std::uint64_t pending = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), pending, 16);
    if ((pending & kKill) != 0) return true;
  }
  return false;
}

engine::Stop stop_of(fuse_req_t req) {
  // The kernel sends no interrupt where the caller is killed before a ring has taken its request.
  return
      [req, caller = fuse_req_ctx(req)->pid, rings = static_cast<const Server*>(fuse_req_userdata(req))->uses_rings()] {
        const bool interrupted = fuse_req_interrupted(req) != 0;
        if (!interrupted && !rings) return false;
        std::array<char, 4096> status{};
        const int fd = ::open(fmt::format("/proc/{}/status", caller).c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return interrupted;
        const ssize_t count = ::read(fd, status.data(), status.size());
        ::close(fd);
        return count <= 0 ? interrupted : is_ending({status.data(), static_cast<std::size_t>(count)});
      };
}

FairQueue::Job job_of(fuse_req_t req, std::function<void()> work) {
  return {fuse_req_ctx(req)->uid, stop_of(req), std::move(work), [req] { fuse_reply_err(req, EINTR); }};
}

}  // namespace mdfs::fuse
