// The descriptor of a disk in RADOS: a sealed file in memory with all that a connection needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "device/open_mode.h"
#include "device/unique_fd.h"

namespace mdfs::device {

// The process that opens a disk may read configuration and keyring; the daemon, which connects, may not.
struct RadosDescription {
  std::string disk;  // rados:POOL[/NAMESPACE]/NAME
  OpenMode mode = OpenMode::kLook;
  std::string user;  // "client.admin"
  std::string key;   // secret of the user; empty: none
  std::string conf;  // text of ceph.conf
  bool operator==(const RadosDescription&) const = default;
};

// At most this many bytes of configuration.
inline constexpr std::size_t kMaxCephConfBytes = std::size_t{1} << 20;

Result<UniqueFd> make_rados_descriptor(const RadosDescription& description);
// True for descriptors of the function above: only memory that was made so can be sealed.
bool is_rados_descriptor(int fd);
Result<RadosDescription> read_rados_descriptor(int fd);

// The secret of a user in the text of a keyring: the value of "key" in the section of this name. Empty: it has none.
std::string key_in_keyring(std::string_view keyring, std::string_view user);

}  // namespace mdfs::device
