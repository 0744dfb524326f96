// Reads extents one by one until one of them cannot be read.
// SPDX-License-Identifier: Apache-2.0
#include "damaged_extent.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/bytes.h"
#include "convert.h"
#include "geometry/window_spec.h"
#include "parts.h"

namespace mdfs::tools {

Error with_damaged_extent(const Error& error, mdfs_image& image, const geometry::Geometry& geometry, unsigned level,
                          const geometry::Window& part, const std::string& path) {
  if (error.posix_errno() != EIO) return error;
  ByteVector samples;
  const Status damaged = for_each_extent(geometry, part, [&](const geometry::Window& box) -> Status {
    const mdfs_ioc_window window = client::from_window(geometry, geometry::LevelWindow{level, box});
    samples.resize(static_cast<std::size_t>(geometry::window_bytes(geometry, box)));
    if (mdfs_read_window(&image, &window, samples.data(), samples.size(), nullptr) != -EIO) return {};
    const std::string spec = (level > 0 ? fmt::format("l{},", level) : std::string()) + to_spec(geometry, box);
    return {Errc::kIo,
            fmt::format("{}: the extent at {} cannot be read; find all damage with 'mdfs scrub start', or 'mdfsck "
                        "--data' when unmounted, and copy the rest with 'mdfs image salvage'",
                        path, spec)};
  });
  return damaged.ok() ? error : damaged.error();
}

}  // namespace mdfs::tools
