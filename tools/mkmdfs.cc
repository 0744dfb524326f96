// mkmdfs: makes a volume on block devices or files.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "alloc/policy.h"
#include "base/checked.h"
#include "base/environment.h"
#include "device/open.h"
#include "device/probe.h"
#include "device/same_disk.h"
#include "store/format_volume.h"
#include "support/cluster_options.h"
#include "support/command.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/new_disks.h"
#include "support/parity_options.h"
#include "support/ranges.h"
#include "support/read_rate.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

struct Options {
  std::string block_size = "4K", label, weights = "auto";
  std::optional<std::string> grow_to, zone_size, policy;
  NewDiskOptions made;
  unsigned copies = 1, spare = 0;
  ParityOptions parity;
  bool json = false;
  std::vector<std::string> disks, metadata;  // for data and tree nodes, and for tree nodes alone
};

Status check_names(const std::vector<std::string>& disks) {
  for (std::size_t i = 0; i < disks.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (device::is_same_disk(disks[before], disks[i]))
        return {Errc::kUsage, disks[i] + ": the same disk is given twice"};
  return {};
}

// The error names the option that is at fault: the sizes are checked alone first, then with the room to grow.
Status check_sizes(const Options& options, std::vector<store::DiskSize> disks, const store::FormatOptions& format) {
  store::FormatOptions without_room = format;
  without_room.room_bytes = 0;
  const auto check = [&](const std::optional<std::string>& value, const char* option, const store::FormatOptions& of) {
    std::vector<store::DiskSize> named = disks;
    if (value)
      for (store::DiskSize& disk : named) disk.name = fmt::format("{} {}: {}", option, *value, disk.name);
    return store::check_format(named, of);
  };
  MDFS_TRY(check(options.made.size, "--size", without_room));
  return check(options.grow_to, "--grow-to", format);
}

Status refuse_contents(const std::string& path) {
  MDFS_TRY_ASSIGN(const auto found, device::find_contents(path));
  if (!found) return {};
  return {Errc::kExists, fmt::format("{}: holds {}; give --force to overwrite it", path, *found)};
}

std::string json_text(const Options& options, unsigned width, const store::FormattedVolume& volume,
                      const DiskWeights& weights) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = volume.uuid.to_string();
  json["label"] = options.label;
  json["block_size"] = volume.block_size;
  json["policy"] = options.policy.value_or("scatter");
  json["copies"] = options.copies;
  json["parity"] = options.parity.parity;
  json["width"] = width;
  json["spare"] = options.spare;
  json["disks"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < volume.disks.size(); ++i) {
    const store::FormattedDisk& disk = volume.disks[i];
    json["disks"].push_back({{"path", options.disks[i]},
                             {"uuid", disk.uuid.to_string()},
                             {"blocks", disk.blocks},
                             {"zone_blocks", disk.zone_blocks},
                             {"metadata_blocks", disk.metadata_blocks},
                             {"room_blocks", disk.room_blocks},
                             {"free_blocks", disk.free_blocks},
                             {"weight", weights.weights[i]}});
    if (i < weights.rates.size()) json["disks"].back()["read_mb_s"] = weights.rates[i].bytes_per_second / 1e6;
  }
  return dump_json(json) + "\n";
}

void print_text(const Options& options, unsigned width, const store::FormattedVolume& volume,
                const DiskWeights& weights) {
  print_out("volume {}{}: {} disk{}, blocks of {}\n", volume.uuid.to_string(),
            options.label.empty() ? "" : " '" + options.label + "'", volume.disks.size(),
            volume.disks.size() == 1 ? "" : "s", format_size(volume.block_size));
  if (width > 1)
    print_out("  new images get a parity for {} extents each, new other files two copies\n", width);
  else if (options.copies == 2)
    print_out("  new files have two copies\n");
  if (options.spare > 0)
    print_out("  room for the rebuild of {} lost disk{} stays free\n", options.spare, options.spare == 1 ? "" : "s");
  const bool equal = std::all_of(weights.weights.begin(), weights.weights.end(), [&](std::uint16_t weight) {
    return weight == 0 || weight == weights.weights.front();
  });
  for (std::size_t i = 0; i < volume.disks.size(); ++i) {
    const store::FormattedDisk& disk = volume.disks[i];
    print_out("  {}: {}, {} free, zones of {}", options.disks[i], format_size(disk.blocks * volume.block_size),
              format_size(disk.free_blocks * volume.block_size), format_size(disk.zone_blocks * volume.block_size));
    const std::uint16_t weight = weights.weights[i];
    print_out("{}\n", weight == 0 ? ", metadata alone" : equal ? "" : fmt::format(", weight {}", weight));
  }
}

Status make_volume(Options options) {
  const std::size_t data_disks = options.disks.size();
  options.disks.insert(options.disks.end(), options.metadata.begin(), options.metadata.end());
  store::FormatOptions format;
  MDFS_TRY_ASSIGN(const std::uint64_t block_size, parse_size(options.block_size, "--block-size"));
  if (block_size > UINT32_MAX) return {Errc::kUsage, "--block-size " + options.block_size + ": too large"};
  format.block_size = static_cast<std::uint32_t>(block_size);
  if (options.zone_size) {
    MDFS_TRY_ASSIGN(format.zone_bytes, parse_size(*options.zone_size, "--zone-size"));
    if (format.zone_bytes == 0) return {Errc::kUsage, "--zone-size 0: must be at least one block"};
  }
  if (options.grow_to) {
    MDFS_TRY_ASSIGN(format.room_bytes, parse_size(*options.grow_to, "--grow-to"));
    if (format.room_bytes == 0) return {Errc::kUsage, "--grow-to 0: must be at least the size of the disks"};
  }
  format.name = options.label;
  if (options.policy) {
    const auto policy = alloc::parse_policy(*options.policy);
    if (!policy.ok())
      return {Errc::kUsage, fmt::format("--policy {}: must be {}", *options.policy, alloc::policy_names())};
    format.policy = *policy;
  }
  if (options.copies == 2 && data_disks < 2)
    return {Errc::kUsage, "--copies 2: second copies lie on other disks: give two disks or more for data"};
  MDFS_TRY_ASSIGN(const unsigned width, options.parity.width_for(data_disks));
  format.copies = options.copies == 2 || width > 1;
  if (width > 1) format.group_members = static_cast<std::uint8_t>(width);
  if (options.spare > 0 && options.spare + 2 > data_disks)
    return {Errc::kUsage, fmt::format("--spare {}: second copies need two disks beside those that may be lost: at most "
                                      "the number of disks less two ({})",
                                      options.spare, std::max<std::size_t>(data_disks, 2) - 2)};
  format.spare_disks = options.spare;
  if (const Status sound = store::check_options(format); !sound.ok()) return {Errc::kUsage, "--" + sound.error().where};
  MDFS_TRY(check_new_disk_options(options.made));
  MDFS_TRY(check_names(options.disks));
  MDFS_TRY(check_weights(options.weights, data_disks));

  MDFS_TRY_ASSIGN(const std::shared_ptr<device::UringContext> ring, device::UringContext::create());
  NewDisks made;
  if (options.made.size) {
    MDFS_TRY_ASSIGN(const std::uint64_t bytes, bytes_of_new_disks(options.made));
    std::vector<store::DiskSize> planned;
    for (const std::string& path : options.disks) planned.push_back({path, bytes});
    MDFS_TRY(check_sizes(options, planned, format));
    MDFS_TRY(made.make(options.disks, options.made, ring));
  }
  std::vector<std::unique_ptr<device::Disk>> disks;
  std::vector<device::Disk*> borrowed;
  std::vector<store::DiskSize> sizes;
  for (const std::string& path : options.disks) {
    MDFS_TRY_ASSIGN(auto disk, device::open_disk(path, device::OpenMode::kReadWrite, ring));
    borrowed.push_back(disk.get());
    sizes.push_back({path, size_of_file(path, disk->size_bytes())});
    disks.push_back(std::move(disk));
  }
  MDFS_TRY(check_sizes(options, sizes, format));
  // With --size they have just been made.
  if (!options.made.force && !options.made.size)
    for (const std::string& path : options.disks) MDFS_TRY(refuse_contents(path));
  const std::vector<device::Disk*> for_data(borrowed.begin(),
                                            borrowed.begin() + static_cast<std::ptrdiff_t>(data_disks));
  MDFS_TRY_ASSIGN(DiskWeights weights, weigh_disks(options.weights, for_data));
  if (!options.json) print_out("{}", explain(weights, for_data, options.weights));
  weights.weights.resize(borrowed.size(), 0);
  format.weights = weights.weights;
  for (std::size_t i = 0; i < borrowed.size(); ++i) MDFS_TRY(device::wipe_signatures(options.disks[i], borrowed[i]));
  SystemEnvironment environment;
  MDFS_TRY_ASSIGN(const store::FormattedVolume volume, store::format_volume(borrowed, format, environment));
  made.keep();
  if (options.json)
    print_out("{}", json_text(options, width, volume, weights));
  else
    print_text(options, width, volume, weights);
  return {};
}

}  // namespace
}  // namespace mdfs::tools

int main(int argc, char** argv) {
  mdfs::tools::open_standard_streams();
  mdfs::tools::Options options;
  CLI::App app{
      "Make an MDFS volume on block devices, files or a RADOS cluster. Sizes take K, M, G, T (powers of 1024)."};
  app.add_option("--block-size", options.block_size, "Unit of allocation, 4K to 64K (default: 4K)");
  mdfs::tools::add_new_disk_options(app, options.made);
  app.add_option("--label", options.label, "Name of the volume, at most 63 bytes");
  CLI::Option* const copies =
      app.add_option("--copies", options.copies, "Of all data of new files, on different disks: 1 or 2 (default: 1)")
          ->check(mdfs::tools::whole_number(1, 2));
  mdfs::tools::add_parity_options(
      app, options.parity, "Of new images, when they rest: 1 for several extents in place of their copies (default: 0)",
      copies);
  app.add_option("--spare", options.spare,
                 "Keep room free to make the second copies anew that so many lost disks had (default: 0)")
      ->check(mdfs::tools::whole_number(0, MDFS_MAX_DISKS - 2));
  app.add_option("--grow-to", options.grow_to,
                 "Largest size that a disk can be resized to (default: 16 times its size)");
  app.add_option("--zone-size", options.zone_size,
                 "Size of the zones for the policy scatter (default: depends on the size of the disk)");
  app.add_option("--policy", options.policy, "Allocation policy (default: scatter)")
      ->type_name("{" + mdfs::alloc::policy_list() + "}");
  app.add_option("--weights", options.weights,
                 "Weights of the disks: auto (default), equal, by-capacity, measure, or W,W,...")
      ->type_name("{auto,equal,by-capacity,measure}");
  app.add_option("--metadata", options.metadata,
                 "A further disk, for names and maps alone: a fast one, so that they are found fast (repeatable)")
      ->type_name("DISK")
      ->take_all()
      ->allow_extra_args(false);
  mdfs::tools::add_cluster_options(app);
  app.add_flag("--force", options.made.force, "Use disks that hold data; their contents are lost");
  app.add_flag("--json", options.json, "Print the properties of the new volume as JSON");
  app.add_option("DISK", options.disks, "1 to 64 block devices, files or rados:POOL[/NAMESPACE]/NAME")->required();
  return mdfs::tools::run_program(app, "mkmdfs", argc, argv, [&] { return mdfs::tools::make_volume(options); });
}
