// Bounds of the channels of one mount: clients and memory, buffers included, in all and of one user. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "channel/layout.h"

namespace mdfs::fuse {

// One thread. A user gets at most half of the clients and of the memory, so that another one finds some.
class ChannelBudget {
 public:
  static constexpr unsigned kMostClients = 512;
  static constexpr unsigned kMostClientsOfUser = kMostClients / 2;
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{128} << 20;
  static constexpr std::uint64_t kPageBytes = 4096;

  // An eighth of the cache's budget, at least kLeastBytes.
  explicit ChannelBudget(std::uint64_t cache_bytes) : bytes_(std::max(cache_bytes / 8, kLeastBytes)) {}

  // The data area for a new client of this user, in whole pages: at most `asked`, and at most a quarter of what the
  // user has left beside the least area for each further client, but at least kLeastAreaBytes. 0: there is no room.
  std::uint64_t take(uid_t user, std::uint64_t asked) {
    const Used own = of(user);
    if (all_.clients >= kMostClients || own.clients >= kMostClientsOfUser) return 0;
    if (left(own) < channel::kLeastAreaBytes) return 0;
    const std::uint64_t more = left_beside_clients(own) / 4;
    const std::uint64_t most = std::clamp(more, channel::kLeastAreaBytes, channel::kMostAreaBytes);
    const std::uint64_t area = std::clamp(asked, channel::kLeastAreaBytes, most) / kPageBytes * kPageBytes;
    users_[user] = {own.clients + 1, own.bytes + area};
    all_ = {all_.clients + 1, all_.bytes + area};
    return area;
  }

  // A buffer of a client of this user. False: there is no room beside the least area for each further client.
  bool take_buffer(uid_t user, std::uint64_t bytes) {
    const Used own = of(user);
    if (bytes > left_beside_clients(own)) return false;
    users_[user].bytes += bytes;
    all_.bytes += bytes;
    return true;
  }

  void give_back_buffers(uid_t user, std::uint64_t bytes) {
    users_[user].bytes -= bytes;
    all_.bytes -= bytes;
  }

  // A client with its area; its buffers were given back before.
  void give_back(uid_t user, std::uint64_t area) {
    const auto own = users_.find(user);
    if (own == users_.end()) return;
    own->second = {own->second.clients - 1, own->second.bytes - area};
    all_ = {all_.clients - 1, all_.bytes - area};
    if (own->second.clients == 0) users_.erase(own);
  }

  std::uint64_t used_bytes() const { return all_.bytes; }

 private:
  struct Used {
    unsigned clients = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t left(const Used& own) const { return std::min(bytes_ - all_.bytes, bytes_ / 2 - own.bytes); }
  std::uint64_t left_beside_clients(const Used& own) const {
    const std::uint64_t kept = (kMostClientsOfUser - own.clients) * channel::kLeastAreaBytes;
    return left(own) > kept ? left(own) - kept : 0;
  }
  Used of(uid_t user) const {
    const auto own = users_.find(user);
    return own == users_.end() ? Used{} : own->second;
  }

  const std::uint64_t bytes_;
  Used all_;
  std::map<uid_t, Used> users_;
};

}  // namespace mdfs::fuse
