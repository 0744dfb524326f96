// A volume in memory.
// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "volume/volume_impl.h"

namespace mdfs::volume {

std::string to_string(const ByteVector& bytes) { return std::string(as_text(bytes)); }

Result<bool> read_level(Volume& volume, Ino ino, unsigned level, const geometry::Window& window, ByteVector& into) {
  return volume.read_level(ino, level, window, 0, into.size(),
                           [&](std::uint64_t offset, ConstBytes bytes) -> Status {
                             std::copy(bytes.begin(), bytes.end(), into.begin() + static_cast<std::ptrdiff_t>(offset));
                             return {};
                           },
                           std::numeric_limits<unsigned>::max(), {});
}

VolumeTest::VolumeTest(std::uint64_t disk_bytes) : disks_(test::format_memory_disks(4, disk_bytes, environment_)) {
  mount();
}

VolumeTest::~VolumeTest() = default;

void VolumeTest::mount(bool grouping) {
  if (volume_) EXPECT_OK(volume_->close());
  volume_.reset();
  VolumeOptions options = test::quiet_options();
  options.atime = AtimeMode::kRelatime;
  options.engine.grouping = grouping;
  auto opened = test::open_volume(test::borrowed(disks_), options, environment_);
  if (!opened.ok()) throw std::runtime_error(opened.error().message());
  volume_ = std::move(*opened);
}

Ino VolumeTest::make_file(std::string_view name, Ino parent, mode_t mode) {
  const auto made = volume().make_node(parent, name, S_IFREG | mode, 0, root_);
  EXPECT_OK(made);
  return made.ok() ? made->ino : 0;
}

Ino VolumeTest::make_raw_image(std::string_view name, std::uint64_t side) {
  const Ino ino = make_file(name);
  ImageOptions options;
  options.geometry.rank = 2;
  options.geometry.shape = {side, side};
  options.geometry.extent = {64, 64};
  options.geometry.codec = geometry::Codec::kRaw;
  options.geometry.axes = "yx";
  EXPECT_OK(volume().make_image(ino, options));
  return ino;
}

Ino VolumeTest::make_directory(std::string_view name, Ino parent, mode_t mode) {
  const auto made = volume().make_directory(parent, name, mode, root_);
  EXPECT_OK(made);
  return made.ok() ? made->ino : 0;
}

Attributes VolumeTest::stat(Ino ino) {
  const auto attributes = volume().attributes(ino);
  EXPECT_OK(attributes);
  return attributes.ok() ? *attributes : Attributes{};
}

Attributes VolumeTest::stat(Ino parent, std::string_view name) {
  const auto found = volume().lookup(parent, name);
  EXPECT_OK(found);
  if (!found.ok()) return {};
  volume().forget(found->ino, 1);
  return *found;
}

Errc VolumeTest::lookup_error(Ino parent, std::string_view name) {
  const auto found = volume().lookup(parent, name);
  EXPECT_FALSE(found.ok()) << name;
  if (!found.ok()) return found.error().code;
  volume().forget(found->ino, 1);
  return Errc::kUsage;
}

std::vector<std::string> VolumeTest::names(Ino directory, std::size_t at_once) {
  std::vector<std::string> names;
  for (std::uint64_t cookie = 0;;) {
    const auto entries = volume().read_directory(directory, cookie, at_once);
    EXPECT_OK(entries);
    if (!entries.ok() || entries->empty()) break;
    for (const DirectoryEntry& entry : *entries)
      if (entry.name != "." && entry.name != "..") names.push_back(entry.name);
    cookie = entries->back().cookie;
  }
  std::sort(names.begin(), names.end());
  return names;
}

void VolumeTest::write(Ino ino, std::uint64_t offset, std::string_view text) {
  const auto written = volume().write(ino, offset, as_bytes(text), false);
  EXPECT_OK(written);
  EXPECT_TRUE(written.ok() && *written == text.size());
}

std::string VolumeTest::read(Ino ino, std::uint64_t offset, std::size_t length) {
  ByteVector bytes(length);
  const auto got = volume().read(ino, offset, bytes);
  EXPECT_OK(got);
  bytes.resize(got.ok() ? *got : 0);
  return to_string(bytes);
}

}  // namespace mdfs::volume
