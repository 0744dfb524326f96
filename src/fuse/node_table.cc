// The table of virtual nodes.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/node_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mdfs::fuse {

NodeSpec window_spec(volume::Ino image, const views::WindowName& window) {
  return {.kind = NodeKind::kWindow,
          .ino = image,
          .parent = 0,
          .name = {},
          .window = window,
          .canonical = views::to_key(window)};
}

std::string NodeTable::key_of(const NodeSpec& spec) {
  return fmt::format("{}:{}:{}:{}", static_cast<unsigned>(spec.kind), spec.ino, spec.parent,
                     spec.canonical.empty() ? spec.name : spec.canonical);
}

std::shared_ptr<const Node> NodeTable::look_up(NodeSpec spec) {
  std::string key = key_of(spec);
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    Entry& entry = entries_.at(found->second);
    ++entry.lookups;
    return entry.node;
  }
  const NodeId id = next_++;
  const volume::Ino ino = spec.ino;
  auto node = std::make_shared<const Node>(Node{id, std::move(spec)});
  Entry& entry = entries_[id];
  entry.node = node;
  entry.lookups = 1;
  entry.age = by_age_.insert(by_age_.end(), id);
  by_key_.emplace(std::move(key), id);
  images_[ino].nodes.push_back(id);
  return node;
}

std::shared_ptr<const Node> NodeTable::find(NodeId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.node;
}

void NodeTable::forget(NodeId id, std::uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  MDFS_CHECK(lookups <= entry.lookups);
  entry.lookups -= lookups;
  if (entry.lookups != 0) return;
  const std::shared_ptr<const Node> node = std::move(entry.node);
  by_age_.erase(entry.age);
  by_key_.erase(key_of(node->spec));
  const auto image = images_.find(node->spec.ino);
  std::erase(image->second.nodes, id);
  std::erase(image->second.fresh, id);
  if (image->second.nodes.empty()) images_.erase(image);
  entries_.erase(found);
}

bool NodeTable::remember_name(NodeId id, NodeId parent, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  auto& names = found->second.names;
  const auto same = [&](const CachedName& known) { return known.parent == parent && known.name == name; };
  if (std::any_of(names.begin(), names.end(), same)) return true;
  if (names.size() == kMaxNames) return false;
  names.push_back({parent, name});
  return true;
}

void NodeTable::mark_fresh(NodeId id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.fresh) return;
  found->second.fresh = true;
  images_.at(found->second.node->spec.ino).fresh.push_back(id);
}

std::vector<NodeId> NodeTable::take_fresh(volume::Ino image) {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(image);
  if (found == images_.end()) return {};
  for (const NodeId id : found->second.fresh) entries_.at(id).fresh = false;
  return std::exchange(found->second.fresh, {});
}

bool NodeTable::has_nodes(volume::Ino image) const {
  const std::lock_guard lock(mutex_);
  return images_.contains(image);
}

void NodeTable::note_open(NodeId id, const std::shared_ptr<const views::View>& view) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  auto& open = found->second.open;
  std::erase_if(open, [](const auto& one) { return one.expired(); });
  open.push_back(view);
}

std::optional<std::uint64_t> NodeTable::open_size(NodeId id) const {
  std::vector<std::shared_ptr<const views::View>> open;  // the last holder of a view must not end it under the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return {};
    for (const auto& one : found->second.open)
      if (auto view = one.lock()) open.push_back(std::move(view));
  }
  std::optional<std::uint64_t> largest;
  for (const auto& view : open) largest = std::max(largest.value_or(0), view->size_bytes());
  return largest;
}

bool NodeTable::shows_plain(NodeId id, bool is_stored, std::uint64_t plain_bytes, Clock::time_point now) {
  if (is_stored && open_size(id) == plain_bytes) return true;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return !is_stored;
  if (!is_stored) found->second.plain_until = now + kPlainTime;
  return now < found->second.plain_until;
}

void NodeTable::note_size(volume::Ino image, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(image);
  if (found != images_.end() && !found->second.size_bytes) found->second.size_bytes = size_bytes;
}

std::vector<CachedName> NodeTable::take_names_if_size_changed(volume::Ino image, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(image);
  if (found == images_.end() || !found->second.size_bytes || *found->second.size_bytes == size_bytes) return {};
  found->second.size_bytes = size_bytes;
  std::vector<CachedName> names;
  for (const NodeId id : found->second.nodes) {
    Entry& entry = entries_.at(id);
    if (entry.node->spec.kind != NodeKind::kWindow) continue;
    std::move(entry.names.begin(), entry.names.end(), std::back_inserter(names));
    entry.names.clear();
  }
  return names;
}

std::size_t NodeTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::vector<CachedName> NodeTable::take_oldest_names(std::size_t nodes) {
  const std::lock_guard lock(mutex_);
  std::vector<CachedName> names;
  auto it = by_age_.begin();
  for (std::size_t i = 0; i < nodes && it != by_age_.end(); ++i) {
    Entry& entry = entries_.at(*it);
    std::move(entry.names.begin(), entry.names.end(), std::back_inserter(names));
    entry.names.clear();
    // To the back: a node that stays in use is not asked for again and again.
    by_age_.splice(by_age_.end(), by_age_, it++);
  }
  return names;
}

}  // namespace mdfs::fuse
