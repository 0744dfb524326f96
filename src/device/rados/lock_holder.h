// Who holds the lock of a disk in RADOS: the cookie of the lock says it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs::device {

struct LockHolder {
  std::string host, boot;                // name of the machine; the kernel's boot_id
  std::uint64_t process_space = 0;       // inode of the namespace of process ids
  std::uint64_t process = 0, start = 0;  // its number; its start in clock ticks after the boot
  std::string token;                     // of this opening alone

  bool operator==(const LockHolder&) const = default;

  // The calling process.
  static LockHolder self(std::string token);
  // The text of the cookie, and back; nothing for a cookie of another program.
  std::string cookie() const;
  static std::optional<LockHolder> parse(std::string_view cookie);
  // "host alpha, process 4711"
  std::string text() const;
};

// True if `other` is a process of this machine, in sight of `here`, that has ended. Never true for another machine.
bool is_dead(const LockHolder& other, const LockHolder& here);

}  // namespace mdfs::device
