// The text format of Prometheus: families of samples.
// SPDX-License-Identifier: Apache-2.0
#include "volume_metrics.h"

#include <fmt/format.h>

#include <functional>
#include <string_view>

#include "volume_errors.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

// A label's value: backslash, quote and line feed are escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class Families {
 public:
  Families(const mdfs_ioc_volume& volume, std::string& text) : volume_(volume), text_(text) {}

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP mdfs_{0} {1}\n# TYPE mdfs_{0} {2}\n", name, help, type);
  }
  void of_volume(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
    begin(name, type, help);
    text_ += fmt::format("mdfs_{}{{volume=\"{}\"}} {}\n", name, uuid_text(volume_.uuid), value);
  }
  void of_disks(std::string_view name, std::string_view type, std::string_view help,
                const std::function<std::uint64_t(std::uint32_t)>& value) {
    begin(name, type, help);
    for (const std::uint32_t i : disk_numbers(volume_)) sample(name, i, "", value(i));
  }
  void sample(std::string_view name, std::uint32_t disk, std::string_view more, std::uint64_t value) {
    text_ += fmt::format("mdfs_{}{{volume=\"{}\",disk=\"{}\",uuid=\"{}\",path=\"{}\"{}}} {}\n", name,
                         uuid_text(volume_.uuid), disk, uuid_text(volume_.disks[disk].uuid),
                         escaped(text_of(volume_.disks[disk].name)), more, value);
  }

 private:
  const mdfs_ioc_volume& volume_;
  std::string& text_;
};

}  // namespace

std::string metrics_text(const mdfs_ioc_volume& volume, const mdfs_ioc_disks& counted) {
  std::string text;
  Families out(volume, text);
  const std::uint64_t block = volume.block_size;
  const std::size_t wrong = volume_errors(volume).size() + disk_errors(volume, counted).size();
  out.of_volume("volume_read_only", "gauge", "1 when nothing can be written.", volume.read_only != 0 ? 1 : 0);
  out.of_volume("volume_errors", "gauge", "What mdfs volume status names as wrong; 0 is healthy.", wrong);
  out.of_volume("volume_generation", "counter", "Number of the newest commit.", volume.generation);
  out.of_volume("volume_size_bytes", "gauge", "Size of all disks.", volume.total_blocks * block);
  out.of_volume("volume_free_bytes", "gauge", "Free on all disks.", volume.free_blocks * block);
  out.of_volume("volume_available_bytes", "gauge", "What can still be stored.", volume.available_blocks * block);
  out.of_volume("volume_objects", "gauge", "Files and directories.", volume.objects);
  out.of_volume("cache_budget_bytes", "gauge", "Most that the cache takes.", volume.cache_budget_bytes);
  out.of_volume("cache_used_bytes", "gauge", "What the cache takes.", volume.cache_bytes);
  out.of_volume("cache_dirty_bytes", "gauge", "Written, not yet on the disks.", volume.cache_dirty_bytes);
  out.of_volume("cache_hits_total", "counter", "Extents found in the cache since the mount.", volume.cache_hits);
  out.of_volume("cache_misses_total", "counter", "Extents not found in the cache.", volume.cache_misses);
  out.of_disks("disk_healthy", "gauge", "1 when the disk is there and up to date.",
               [&](std::uint32_t i) { return state_name(volume.disks[i].state) == "healthy" ? 1u : 0u; });
  out.begin("disk_state", "gauge", "1, with the state of the disk as a label.");
  for (const std::uint32_t i : disk_numbers(volume))
    out.sample("disk_state", i, fmt::format(",state=\"{}\"", escaped(state_name(volume.disks[i].state))), 1);
  out.of_disks("disk_out", "gauge", "1 when the disk failed, and commits continue without it.",
               [&](std::uint32_t i) { return is_out(volume, i) ? 1u : 0u; });
  out.of_disks("disk_size_bytes", "gauge", "Size of the disk.",
               [&](std::uint32_t i) { return volume.disks[i].blocks * block; });
  out.of_disks("disk_free_bytes", "gauge", "Free on the disk.",
               [&](std::uint32_t i) { return volume.disks[i].free_blocks * block; });
  out.of_disks("disk_read_slowness_percent", "gauge",
               "Time of reads over the median of the other disks; 100 below 300.",
               [&](std::uint32_t i) { return counted.disks[i].slowness_percent; });
  struct Counter {
    std::string_view name, help;
    std::function<std::uint64_t(std::uint32_t)> value;
  };
  const auto& disks = counted.disks;
  const Counter counters[] = {
      {"disk_reads_total", "Reads since the mount.", [&](std::uint32_t i) { return disks[i].reads; }},
      {"disk_writes_total", "Writes since the mount.", [&](std::uint32_t i) { return disks[i].writes; }},
      {"disk_flushes_total", "Flushes since the mount.", [&](std::uint32_t i) { return disks[i].flushes; }},
      {"disk_read_bytes_total", "Bytes read since the mount.", [&](std::uint32_t i) { return disks[i].read_bytes; }},
      {"disk_written_bytes_total", "Bytes written since the mount.",
       [&](std::uint32_t i) { return disks[i].written_bytes; }},
      {"disk_read_errors_total", "Reads that failed, over all mounts.",
       [&](std::uint32_t i) { return disks[i].read_errors; }},
      {"disk_write_errors_total", "Writes that failed, over all mounts.",
       [&](std::uint32_t i) { return disks[i].write_errors; }},
      {"disk_flush_errors_total", "Flushes that failed, over all mounts.",
       [&](std::uint32_t i) { return disks[i].flush_errors; }},
      {"disk_checksum_errors_total", "Pieces that did not match their checksum, over all mounts.",
       [&](std::uint32_t i) { return disks[i].checksum_errors; }},
      {"disk_repaired_total", "Copies of metadata that were repaired, over all mounts.",
       [&](std::uint32_t i) { return disks[i].repaired; }},
  };
  for (const Counter& counter : counters) out.of_disks(counter.name, "counter", counter.help, counter.value);
  return text;
}

}  // namespace mdfs::tools
