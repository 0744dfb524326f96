// Fuzz target: the structures of ioctl.h. A geometry, then windows for it, each as many bytes as the structure.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "fuse/ioctl_structs.h"
#include "fuzz.h"
#include "geometry/decompose.h"
#include "geometry/window_spec.h"
#include "views/view_file.h"

using namespace mdfs;

namespace {

constexpr std::uint64_t kMaxPieces = 4096;

template <typename T>
T take(fuzz::Reader& reader) {
  T value{};
  const ConstBytes bytes = reader.take_bytes(sizeof value);
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

void use(const geometry::Geometry& geometry, const geometry::Window& window) {
  MDFS_CHECK(geometry::check(geometry, window).ok());
  const std::uint64_t bytes = geometry::window_bytes(geometry, window);
  MDFS_CHECK(bytes > 0 && bytes <= geometry.size_bytes());
  const auto again = geometry::parse_window(geometry, geometry::to_spec(geometry, window));
  MDFS_CHECK(again.ok() && again->start == window.start && again->length == window.length);
  for (const auto format : {views::Format::kRaw, views::Format::kNpy, views::Format::kPgm, views::Format::kPpm})
    if (const auto file = views::view_window(geometry, {window, format}); file.ok())
      MDFS_CHECK(file->data_bytes == bytes);
  const auto byte_geometry = geometry::byte_geometry(geometry);
  const auto box = geometry::byte_box(geometry, window);
  const std::uint64_t pieces = geometry::piece_count(byte_geometry, box);
  if (pieces <= kMaxPieces) MDFS_CHECK(geometry::decompose(byte_geometry, box).size() == pieces);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Reader reader(fuzz::input(data, size));
  const auto options = fuse::to_image_options(take<mdfs_ioc_geometry>(reader));
  geometry::Geometry geometry;
  if (options.ok()) {
    geometry = options->geometry;
  } else {
    geometry.rank = 3;
    geometry.shape = {10, 200, 300};
    geometry.extent = {4, 32, 64};
    geometry.channels = 3;
    geometry.axes = "zyx";
  }
  MDFS_CHECK(geometry::check(geometry).ok());
  volume::ImageInfo info;
  info.geometry = geometry;
  const mdfs_ioc_geometry out = fuse::to_ioc_geometry(info);
  MDFS_CHECK(out.rank == geometry.rank && out.shape[0] == geometry.shape[0]);
  for (unsigned i = 0; i < 4 && !reader.empty(); ++i) {
    const auto window = fuse::to_window(geometry, take<mdfs_ioc_window>(reader));
    if (window.ok()) use(*views::level_of(geometry, *window), window->window);
  }
  const auto asked = take<mdfs_ioc_operation>(reader);
  if (const auto request = fuse::to_operation_request(asked, 17); request.ok())
    MDFS_CHECK(request->object == 0 || request->object == 17);
  return 0;
}
