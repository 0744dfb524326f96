// The text that Prometheus reads.
// SPDX-License-Identifier: Apache-2.0
#include "mdfs/volume_metrics.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace mdfs::tools {
namespace {

// Sample lines by name and labels. Fails on what is not in the format, and on a family that is not announced or twice.
std::map<std::string, std::string> parse(const std::string& text) {
  static const std::regex kSample(R"re(([a-z_]+)(\{([a-z_]+="([^"\\]|\\[\\"n])*",?)*\}) ([0-9]+))re");
  std::map<std::string, std::string> samples;
  std::set<std::string> families;
  std::string family, line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << line;
      const std::string type = line.substr(line.rfind(' ') + 1);
      EXPECT_EQ(type == "counter", family.ends_with("_total") || family == "mdfs_volume_generation") << line;
      continue;
    }
    if (line.starts_with("# HELP ")) continue;
    std::smatch match;
    if (!std::regex_match(line, match, kSample)) {
      ADD_FAILURE() << line;
      continue;
    }
    EXPECT_EQ(match[1], family) << line;
    EXPECT_TRUE(samples.emplace(match[1].str() + match[2].str(), match[5].str()).second) << "twice: " << line;
  }
  return samples;
}

std::string value_of(const std::map<std::string, std::string>& samples, const std::string& name,
                     const std::string& label) {
  for (const auto& [key, value] : samples)
    if (key.starts_with(name + "{") && key.find(label) != std::string::npos) return value;
  return "none";
}

TEST(VolumeMetricsTest, EverySampleIsInTheFormatAndALostDiskShows) {
  const auto volume = std::make_unique<mdfs_ioc_volume>();
  const auto counted = std::make_unique<mdfs_ioc_disks>();
  volume->block_size = 4096;
  volume->disk_count = 2;
  volume->free_blocks = 10;
  volume->total_blocks = UINT64_C(1) << 40;
  std::strcpy(volume->disks[0].name, "/dev/a\"b\\c\nd");
  volume->disks[1].state = 1;
  counted->disks[0].checksum_errors = 7;
  const auto samples = parse(metrics_text(*volume, *counted));
  EXPECT_EQ(value_of(samples, "mdfs_volume_free_bytes", "volume="), "40960");
  EXPECT_EQ(value_of(samples, "mdfs_volume_size_bytes", "volume="), "4503599627370496");
  EXPECT_EQ(value_of(samples, "mdfs_volume_errors", "volume="), "2");
  EXPECT_EQ(value_of(samples, "mdfs_disk_healthy", "disk=\"0\""), "1");
  EXPECT_EQ(value_of(samples, "mdfs_disk_healthy", "disk=\"1\""), "0");
  EXPECT_EQ(value_of(samples, "mdfs_disk_state", "state=\"missing\""), "1");
  EXPECT_EQ(value_of(samples, "mdfs_disk_checksum_errors_total", R"(path="/dev/a\"b\\c\nd")"), "7");
}

}  // namespace
}  // namespace mdfs::tools
