// Tokens of channels.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/channel_grants.h"

#include <cstring>
#include <utility>

namespace mdfs::fuse {

Result<std::shared_ptr<ChannelGrant>> ChannelGrant::make(volume::Volume& volume, volume::Ino ino, uid_t user) {
  MDFS_TRY(volume.open_file(ino, false));
  return std::shared_ptr<ChannelGrant>(new ChannelGrant(volume, ino, user));
}

Result<ChannelToken> ChannelGrants::add(const void* holder, std::shared_ptr<ChannelGrant> grant,
                                        Environment& environment) {
  const std::uint64_t words[2] = {environment.random(), environment.random()};
  ChannelToken token;
  static_assert(sizeof words == sizeof token);
  std::memcpy(token.data(), words, sizeof token);
  const std::lock_guard lock(mutex_);
  std::vector<Held>& held = held_[holder];
  std::erase_if(held, [](const Held& old) { return old.grant.expired(); });
  if (held.size() >= kMostOfHolder) return Error{Errc::kBusy, "too many channels of one open file"};
  held.push_back({grant, token});
  pending_.emplace(token, std::move(grant));
  return token;
}

std::shared_ptr<ChannelGrant> ChannelGrants::redeem(const ChannelToken& token, uid_t user) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(token);
  if (found == pending_.end() || found->second->user() != user) return nullptr;
  auto grant = std::move(found->second);
  pending_.erase(found);
  return grant;
}

bool ChannelGrants::withdraw(const void* holder) {
  std::vector<std::shared_ptr<ChannelGrant>> released;  // outside of the lock
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(holder);
  if (found == held_.end()) return false;
  for (const Held& held : found->second) {
    if (auto grant = held.grant.lock(); grant != nullptr) {
      grant->withdraw();
      released.push_back(std::move(grant));
    }
    pending_.erase(held.token);
  }
  held_.erase(found);
  return true;
}

void ChannelGrants::withdraw_all() {
  std::map<ChannelToken, std::shared_ptr<ChannelGrant>> released;  // outside of the lock
  const std::lock_guard lock(mutex_);
  for (const auto& [holder, all] : held_)
    for (const Held& held : all)
      if (const auto grant = held.grant.lock(); grant != nullptr) grant->withdraw();
  held_.clear();
  released.swap(pending_);
}

}  // namespace mdfs::fuse
