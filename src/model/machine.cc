// Machines once they are read: topology, canonical text, hash.
// SPDX-License-Identifier: Apache-2.0
#include "model/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace mdfs::model {

double Head::seek_s(double distance_bytes) const {
  const double share = std::clamp(std::fabs(distance_bytes) / capacity_bytes, 0.0, 1.0);
  return track_s + (stroke_s - track_s) * std::sqrt(share);
}

double Head::place_of(double address_bytes) const { return std::clamp(address_bytes / capacity_bytes, 0.0, 1.0); }

double head_capacity(const Machine& machine) {
  double capacity = 0;
  for (const Resource& resource : machine.resources)
    if (resource.head) capacity = std::max(capacity, resource.head->capacity_bytes);
  return capacity;
}

double head_scale(const Machine& machine, double disk_bytes) {
  return std::max(1.0, std::floor(head_capacity(machine) / std::max(disk_bytes, 1.0)));
}

Machine as_disks(Machine machine) {
  std::erase_if(machine.stages, [](const Stage& stage) { return stage.per_window; });
  machine.outstanding = 0;
  return machine;
}

std::string canonical_text(const Machine& machine) {
  std::string text = fmt::format("name={};disks={};outstanding={};hit_ratio={}\n", machine.name, machine.disks,
                                 machine.outstanding, machine.hit_ratio);
  const Layout& layout = machine.layout;
  text += fmt::format("layout={};unit={};width={};parity={};group={};row_offset=", static_cast<int>(layout.kind),
                      layout.unit_bytes, layout.width, layout.parity, layout.group_bytes);
  for (const unsigned offset : layout.row_offset) text += fmt::format("{},", offset);
  if (layout.requests == Layout::Requests::kExtents) text += ";requests=extents";
  if (layout.filled > 0) text += fmt::format(";filled={}", layout.filled);
  text +=
      fmt::format("\nshape={};extent={};bytes_per_pixel={}\n", machine.shape, machine.extent, machine.bytes_per_pixel);
  for (const Resource& resource : machine.resources) {
    text += fmt::format("resource {};per_disk={};count={};shared_by={};servers={}", resource.name, resource.per_disk,
                        resource.count, resource.shared_by ? static_cast<long>(*resource.shared_by) : -1L,
                        resource.servers);
    if (const auto& head = resource.head; head)
      text += fmt::format(";head={},{},{},{}", head->track_s, head->stroke_s, head->rotation_s, head->capacity_bytes);
    text += '\n';
  }
  for (const Stage& stage : machine.stages) {
    text += fmt::format("stage {};resource={};per_window={};when={}", stage.name, stage.resource, stage.per_window,
                        static_cast<int>(stage.when));
    for (const Cost& cost : stage.costs) text += ";" + cost_text(cost);
    text += '\n';
  }
  return text;
}

std::string hash_text(const Machine& machine) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : canonical_text(machine)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

Topology topology(const Machine& machine, unsigned disks) {
  MDFS_CHECK(disks >= 1);
  Topology result;
  for (const Resource& resource : machine.resources) {
    std::vector<unsigned> of_disk(disks);
    unsigned users = disks;  // how many components share these
    if (resource.shared_by) {
      users = result.count[*resource.shared_by];
      of_disk = result.of_disk[*resource.shared_by];
    } else {
      for (unsigned disk = 0; disk < disks; ++disk) of_disk[disk] = disk;
    }
    const unsigned count = resource.per_disk ? users : std::min(resource.count, users);
    for (unsigned& index : of_disk) index = static_cast<unsigned>(static_cast<std::uint64_t>(index) * count / users);
    result.count.push_back(count);
    result.of_disk.push_back(std::move(of_disk));
  }
  return result;
}

std::optional<unsigned> row_offset(const Machine& machine, unsigned disks) {
  const auto& table = machine.layout.row_offset;
  if (table.size() == 1) return table[0];
  if (disks >= 1 && disks <= table.size()) return table[disks - 1];
  return std::nullopt;
}

}  // namespace mdfs::model
