// Rights to read windows of an image through a channel, and the tokens that stand for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.h"
#include "base/result.h"
#include "volume/volume.h"

namespace mdfs::fuse {

using ChannelToken = std::array<std::uint8_t, 16>;

// The right of one open file description. Holds the inode open, so that requests under way survive the last close.
class ChannelGrant {
 public:
  static Result<std::shared_ptr<ChannelGrant>> make(volume::Volume& volume, volume::Ino ino, uid_t user);
  ~ChannelGrant() { volume_.release_file(ino_); }
  ChannelGrant(const ChannelGrant&) = delete;
  ChannelGrant& operator=(const ChannelGrant&) = delete;

  volume::Ino ino() const { return ino_; }
  uid_t user() const { return user_; }
  bool withdrawn() const { return withdrawn_.load(std::memory_order_acquire); }
  void withdraw() { withdrawn_.store(true, std::memory_order_release); }

 private:
  ChannelGrant(volume::Volume& volume, volume::Ino ino, uid_t user) : volume_(volume), ino_(ino), user_(user) {}

  volume::Volume& volume_;
  const volume::Ino ino_;
  const uid_t user_;
  std::atomic<bool> withdrawn_{false};
};

// Any thread. A holder is the address of an open file description; it has at most kMostOfHolder live grants.
class ChannelGrants {
 public:
  static constexpr std::size_t kMostOfHolder = 64;

  // kBusy: the holder has too many.
  Result<ChannelToken> add(const void* holder, std::shared_ptr<ChannelGrant> grant, Environment& environment);
  // The grant of a token that this user asked for; once. Null: there is none.
  std::shared_ptr<ChannelGrant> redeem(const ChannelToken& token, uid_t user);
  // The description is closed. False: it had no grant.
  bool withdraw(const void* holder);
  void withdraw_all();

 private:
  struct Held {
    std::weak_ptr<ChannelGrant> grant;
    ChannelToken token;
  };
  std::mutex mutex_;  // guards all below
  std::map<ChannelToken, std::shared_ptr<ChannelGrant>> pending_;
  std::map<const void*, std::vector<Held>> held_;
};

}  // namespace mdfs::fuse
