// Changes of a volume's disks that come over the control socket.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/disk_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "device/open.h"

namespace mdfs::fuse {
namespace {

Error nonsense() { return {Errc::kInvalidArgument, "the request is invalid"}; }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

Result<std::uint16_t> small_number(std::string_view text, std::string_view what) {
  MDFS_TRY_ASSIGN(const std::uint64_t number, parse_number(text, what));
  if (number > UINT16_MAX) return Error{Errc::kInvalidArgument, fmt::format("{} {}: too large", what, number)};
  return static_cast<std::uint16_t>(number);
}

Result<std::string> add_disks(volume::Volume& volume, const std::shared_ptr<device::UringContext>& context,
                              ControlRequest& request) {
  if (context == nullptr) return Error{Errc::kNotSupported, "the disks of this mount are modelled"};
  if (request.descriptors.empty() || request.lines.size() != request.descriptors.size() + 1) return nonsense();
  std::vector<store::JoiningDisk> disks;
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    const std::string& line = request.lines[i + 1];
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) return nonsense();
    store::JoiningDisk& disk = disks.emplace_back();
    MDFS_TRY_ASSIGN(disk.weight, small_number(std::string_view(line).substr(0, space), "weight"));
    MDFS_TRY_ASSIGN(disk.disk, device::adopt_disk(line.substr(space + 1), std::move(request.descriptors[i]), context));
  }
  MDFS_TRY_ASSIGN(const std::vector<unsigned> indexes, volume.add_disks(std::move(disks)));
  return fmt::format("{}", fmt::join(indexes, " "));
}

}  // namespace

Result<std::string> change_disks(volume::Volume& volume, const std::shared_ptr<device::UringContext>& context,
                                 ControlRequest request) {
  const std::vector<std::string_view> words = words_of(request.lines.front());
  if (words.empty()) return nonsense();
  if (words[0] == "add-disks" && words.size() == 1) return add_disks(volume, context, request);
  if (words[0] == "weight" && words.size() == 3) {
    MDFS_TRY_ASSIGN(const std::uint16_t disk, small_number(words[1], "disk"));
    MDFS_TRY_ASSIGN(const std::uint16_t weight, small_number(words[2], "weight"));
    MDFS_TRY(volume.set_disk_weight(disk, weight));
    return std::string();
  }
  if (words[0] == "discard" && words.size() == 2 && (words[1] == "on" || words[1] == "off")) {
    volume.store().set_discard(words[1] == "on");
    return std::string();
  }
  if (words[0] == "spare" && words.size() == 2) {
    MDFS_TRY_ASSIGN(const std::uint16_t disks, small_number(words[1], "spare"));
    MDFS_TRY(volume.set_spare_disks(disks));
    return std::string();
  }
  if (words[0] == "keep" && words.size() == 2) {
    MDFS_TRY_ASSIGN(const std::uint16_t disk, small_number(words[1], "disk"));
    MDFS_TRY(volume.keep_disk(disk));
    return std::string();
  }
  return nonsense();
}

}  // namespace mdfs::fuse
