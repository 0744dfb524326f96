// A volume made for a measurement: disks in files, an image of noise on them, mounted as a modelled machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "geometry/geometry.h"

namespace mdfs::tools {

struct MeasuredVolume {
  std::string scratch;  // where its directory is made
  unsigned disks = 1;
  geometry::Geometry image;
  std::optional<unsigned> row_offset;
  std::string model;  // name or file of the machine
  std::uint64_t seed = 1;
};

// Made by mkmdfs and mdfs, which lie beside this program or in the PATH. Unmounted and removed at the end of its life.
class TemporaryVolume {
 public:
  static Result<TemporaryVolume> make(const MeasuredVolume& wanted);
  TemporaryVolume(TemporaryVolume&& other) noexcept;
  TemporaryVolume& operator=(TemporaryVolume&&) = delete;
  ~TemporaryVolume();

  // On the mount, with cold caches.
  std::string image_path() const { return (folder_ / "mnt" / "image").string(); }

 private:
  explicit TemporaryVolume(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status build(const MeasuredVolume& wanted);
  Status run(const std::string& program, std::vector<std::string> arguments);
  Status mount(const std::string& options);
  Status unmount();
  Status fill(const MeasuredVolume& wanted);

  std::filesystem::path folder_;  // empty: nothing to remove
  bool mounted_ = false;
};

}  // namespace mdfs::tools
