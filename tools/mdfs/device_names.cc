// Names of disks that stay.
// SPDX-License-Identifier: Apache-2.0
#include "device_names.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace mdfs::tools {
namespace {

namespace fs = std::filesystem;

std::string trimmed_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\n") - first + 1);
}

// Bare numbers come after names with maker and model, which can be read off a disk.
bool is_number_only(const std::string& name) {
  return name.starts_with("wwn-") || name.starts_with("nvme-eui.") || name.starts_with("nvme-nvme.") ||
         name.starts_with("dm-uuid-") || name.starts_with("lvm-pv-uuid-");
}

// Pages of vital product data begin with four bytes.
std::string serial_of_page(const fs::path& page) {
  std::ifstream in(page, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.size() <= 4) return {};
  bytes.erase(0, 4);
  std::erase_if(bytes, [](char c) { return c <= ' ' || c > '~'; });
  return bytes;
}

std::string serial_of(const fs::path& device) {
  std::error_code error;
  fs::path disk = fs::canonical(device, error);
  if (error) return {};
  if (fs::exists(disk / "partition", error)) disk = disk.parent_path();
  for (const char* place : {"serial", "device/serial"})
    if (std::string serial = trimmed_line(disk / place); !serial.empty()) return serial;
  return serial_of_page(disk / "device" / "vpd_pg80");
}

}  // namespace

DeviceNames device_names(const std::string& path, const std::string& links, const std::string& devices) {
  std::error_code error;
  const fs::path device = fs::canonical(path, error);
  struct stat st {};
  if (error || ::stat(device.c_str(), &st) != 0 || S_ISREG(st.st_mode)) return {};
  std::vector<std::string> names;
  for (fs::directory_iterator it(links, error), end; !error && it != end; it.increment(error)) {
    std::error_code broken;
    if (fs::canonical(it->path(), broken) == device && !broken) names.push_back(it->path().filename().string());
  }
  DeviceNames found;
  const auto best = std::min_element(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(is_number_only(a), a) < std::pair(is_number_only(b), b);
  });
  if (best != names.end()) found.by_id = links + "/" + *best;
  found.serial = serial_of(fs::path(devices) / device.filename());
  return found;
}

}  // namespace mdfs::tools
