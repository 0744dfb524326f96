// Loading tree nodes.
// SPDX-License-Identifier: Apache-2.0
#include "store/node_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/disk_counters.h"

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

bool NodeIo::is_late(const format::Address& address, std::int64_t now_ns) const {
  return address.disk < MDFS_MAX_DISKS && late_until_ns_[address.disk].load(std::memory_order_relaxed) > now_ns;
}

std::size_t NodeIo::first_choice(const format::Pointer& pointer, std::int64_t now_ns) const {
  const auto first = static_cast<std::size_t>((pointer.crc32c ^ salt_) % pointer.copies);
  const std::uint64_t preferred = preferred_.load(std::memory_order_relaxed);
  std::optional<std::size_t> other;
  for (std::size_t step = 0; step < pointer.copies; ++step) {
    const std::size_t copy = (first + step) % pointer.copies;
    const format::Address& address = pointer.address[copy];
    if (is_late(address, now_ns)) continue;
    if (preferred == 0 || (address.disk < MDFS_MAX_DISKS && (preferred >> address.disk & 1) != 0)) return copy;
    if (!other) other = copy;
  }
  return other.value_or(first);
}

std::optional<std::chrono::nanoseconds> NodeIo::patience(std::span<const format::Address> addresses,
                                                         std::int64_t now_ns) const {
  if (!hedges_.has_any()) return std::nullopt;
  std::vector<std::optional<double>> paces(disks_.size());
  std::vector<double> queued_bytes(disks_.size());
  for (std::size_t disk = 0; disk < disks_.size(); ++disk) {
    const device::DiskCounters* const counters = disks_[disk]->counters();
    if (counters == nullptr) continue;
    paces[disk] = counters->pace.ns_per_byte(now_ns);
    queued_bytes[disk] = static_cast<double>(counters->queued_bytes());
  }
  const std::vector<std::optional<double>> usual = device::usual_paces(paces);
  std::int64_t longest_ns = 0;
  for (const format::Address& address : addresses) {
    const std::uint16_t disk = address.disk;
    if (disk >= disks_.size()) continue;
    queued_bytes[disk] += static_cast<double>(MDFS_NODE_SIZE + device::kRequestBytes);
    longest_ns = std::max(longest_ns, device::late_after_ns(queued_bytes[disk], usual[disk]));
  }
  return std::chrono::nanoseconds(longest_ns);
}

std::vector<Result<ConstNodePtr>> NodeIo::load(std::span<const NodeWanted> wanted) {
  const std::int64_t now_ns = device::ReadPace::now_ns();
  std::vector<device::StoppableReads::Wanted> reads;
  std::vector<std::size_t> choices;
  std::vector<format::Address> addresses;
  for (const NodeWanted& one : wanted) {
    choices.push_back(first_choice(one.pointer, now_ns));
    const format::Address& address = addresses.emplace_back(one.pointer.address[choices.back()]);
    if (device::Disk* disk = disk_of(address)) reads.push_back({disk, byte_offset(address), MDFS_NODE_SIZE});
  }
  hedges_.earn(reads.size());
  const device::StoppableReads::Done done = reads_.read(reads, patience(addresses, now_ns));

  std::vector<Result<ConstNodePtr>> nodes;
  auto read = done.reads.begin();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const NodeWanted& one = wanted[i];
    const format::Address& address = one.pointer.address[choices[i]];
    Result<ConstNodePtr> node =
        Error{Errc::kCorrupt, fmt::format("a pointer to disk {}, which the volume does not have", address.disk)};
    if (disk_of(address) != nullptr) {
      node = check(one, read->status, read->bytes);
      ++read;
    }
    if (node.ok() || node.error().code == Errc::kCancelled)
      nodes.push_back(std::move(node));
    else
      nodes.push_back(load_from_others(one, choices[i], node.error()));
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
  std::optional<std::size_t> late;  // a copy
  Errc code = first_error.code;
  const auto note = [&](std::size_t copy, const Error& error) {
    if (error.code == Errc::kBusy) {
      const std::uint16_t disk = wanted.pointer.address[copy].disk;
      if (disk < MDFS_MAX_DISKS) late_until_ns_[disk] = device::ReadPace::now_ns() + kPassedByNs;
      (void)hedges_.spend();
      if (!late) late = copy;
      return;
    }
    if (code == Errc::kBusy) code = error.code;
    text += (text.empty() ? "" : "; ") + place(copy) + ": " + error.within(code);
    // A rewrite cannot repair a copy on a missing disk.
    if (error.code != Errc::kMissingDisk)
      bad.push_back({wanted.pointer, copy, wanted.lower, wanted.level, error.message(), error.code == Errc::kIo});
  };
  // Absent: the copy is not good.
  const auto try_copy = [&](std::size_t copy, bool waits) -> std::optional<Result<ConstNodePtr>> {
    const format::Address& address = wanted.pointer.address[copy];
    device::Disk* disk = disk_of(address);
    if (disk == nullptr) return std::nullopt;
    const device::StoppableReads::Wanted read{disk, byte_offset(address), MDFS_NODE_SIZE};
    const auto patient = waits ? std::nullopt : patience({&address, 1}, device::ReadPace::now_ns());
    const device::StoppableReads::Done done = reads_.read({&read, 1}, patient);
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
    return std::nullopt;
  };
  note(tried, first_error);
  for (std::size_t step = 1; step < wanted.pointer.copies; ++step)
    if (auto node = try_copy((tried + step) % wanted.pointer.copies, false)) return std::move(*node);
  if (late)  // no other copy is good
    if (auto node = try_copy(*late, true)) return std::move(*node);
  return {code, fmt::format("no good copy of a tree node ({})", text)};
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
