// Loading tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store/node_io.h"

#include <fmt/format.h>

#include <utility>

namespace mdfs::store {
namespace {

ConstNodePtr make_node(format::Node&& body) {
  auto node = std::make_shared<TreeNode>();
  node->body = std::move(body);
  node->changed.resize(node->body.branches.size());
  if (node->is_leaf()) node->item_bytes = format::leaf_bytes(node->body);
  return node;
}

}  // namespace

device::Disk* NodeIo::disk_of(const format::Address& address) const {
  return address.disk < disks_.size() ? disks_[address.disk] : nullptr;
}

Result<ConstNodePtr> NodeIo::check(const NodeWanted& wanted, const Status& read, ConstBytes bytes) const {
  if (!read.ok()) return read.error();
  format::NodeExpectation expectation;
  expectation.volume_uuid = volume_uuid_;
  expectation.pointer = wanted.pointer;
  expectation.level = wanted.level;
  expectation.lower = wanted.lower;
  expectation.upper = wanted.upper;
  auto node = format::decode_node(bytes, expectation);
  if (!node.ok()) return node.error();
  return make_node(std::move(*node));
}

std::vector<Result<ConstNodePtr>> NodeIo::load(std::span<const NodeWanted> wanted) {
  std::vector<device::StoppableReads::Wanted> reads;
  for (const NodeWanted& one : wanted) {
    const format::Address& address = one.pointer.address[first_choice(one.pointer)];
    if (device::Disk* disk = disk_of(address)) reads.push_back({disk, byte_offset(address), MDFS_NODE_SIZE});
  }
  const device::StoppableReads::Done done = reads_.read(reads);

  std::vector<Result<ConstNodePtr>> nodes;
  auto read = done.reads.begin();
  for (const NodeWanted& one : wanted) {
    const std::size_t choice = first_choice(one.pointer);
    const format::Address& address = one.pointer.address[choice];
    Result<ConstNodePtr> node =
        Error{Errc::kCorrupt, fmt::format("a pointer to disk {}, which the volume does not have", address.disk)};
    if (disk_of(address) != nullptr) {
      node = check(one, read->status, read->bytes);
      ++read;
    }
    if (node.ok() || node.error().code == Errc::kCancelled)
      nodes.push_back(std::move(node));
    else
      nodes.push_back(load_from_others(one, choice, node.error()));
  }
  return nodes;
}

Result<ConstNodePtr> NodeIo::load_from_others(const NodeWanted& wanted, std::size_t tried, const Error& first_error) {
  const auto place = [&](std::size_t copy) {
    const format::Address& address = wanted.pointer.address[copy];
    return fmt::format("disk {} block {}", address.disk, address.block);
  };
  std::vector<BadCopy> bad;
  std::string text;
  const auto note = [&](std::size_t copy, const Error& error) {
    text += (text.empty() ? "" : "; ") + place(copy) + ": " + error.within(first_error.code);
    // A rewrite cannot repair a copy on a missing disk.
    if (error.code != Errc::kMissingDisk)
      bad.push_back({wanted.pointer, copy, wanted.lower, wanted.level, error.message(), error.code == Errc::kIo});
  };
  note(tried, first_error);
  for (std::size_t step = 1; step < wanted.pointer.copies; ++step) {
    const std::size_t copy = (tried + step) % wanted.pointer.copies;
    const format::Address& address = wanted.pointer.address[copy];
    device::Disk* disk = disk_of(address);
    if (disk == nullptr) continue;
    const device::StoppableReads::Wanted read{disk, byte_offset(address), MDFS_NODE_SIZE};
    const device::StoppableReads::Done done = reads_.read({&read, 1});
    auto node = check(wanted, done.reads[0].status, done.reads[0].bytes);
    if (!node.ok() && node.error().code == Errc::kCancelled) return node;
    if (node.ok()) {
      const std::lock_guard lock(mutex_);
      for (BadCopy& copy_found : bad)
        if (bad_copies_.size() < kMaxBadCopies) bad_copies_.push_back(std::move(copy_found));
      has_bad_copies_ = !bad_copies_.empty();
      return node;
    }
    note(copy, node.error());
  }
  return {first_error.code, fmt::format("no good copy of a tree node ({})", text)};
}

Status NodeIo::check_copy(const NodeWanted& wanted, ConstBytes bytes) const {
  const auto node = check(wanted, {}, bytes);
  return node.ok() ? Status() : Status(node.error());
}

bool NodeIo::note_bad(BadCopy bad) {
  const std::lock_guard lock(mutex_);
  if (bad_copies_.size() >= kMaxBadCopies) return false;
  bad_copies_.push_back(std::move(bad));
  has_bad_copies_ = true;
  return true;
}

std::vector<BadCopy> NodeIo::take_bad_copies() {
  const std::lock_guard lock(mutex_);
  has_bad_copies_ = false;
  return std::exchange(bad_copies_, {});
}

}  // namespace mdfs::store
