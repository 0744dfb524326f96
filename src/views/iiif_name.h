// Names below iiif/: the IIIF Image API 3.0, as far as a request is a window of a resolution level.
//
//   iiif/info.json                     the size, the tiles and the scales
//   iiif/REGION/SIZE/0/default.jpg     .png where JPEG cannot hold the samples
//
// REGION is full, square or X,Y,W,H; SIZE is max, W,H or W, or ,H: the region divided by a power of two, rounded up.
// A region that is divided begins and ends at multiples of that power, or at the edge of the image. Other requests
// would need samples that no level has, and do not exist (compliance level 0).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "views/view_file.h"
#include "views/zoom_name.h"

namespace mdfs::views {

inline constexpr std::string_view kIiifName = "iiif";
inline constexpr std::string_view kIiifInfoName = "info.json";

enum class IiifKind : std::uint8_t {
  kService,   // iiif/
  kRegion,    // iiif/REGION/
  kSize,      // iiif/REGION/SIZE/
  kRotation,  // iiif/REGION/SIZE/0/
  kInfo,      // iiif/info.json
};
constexpr bool is_directory(IiifKind kind) { return kind != IiifKind::kInfo; }

struct IiifName {
  IiifKind kind = IiifKind::kService;
  std::array<std::uint64_t, 4> region{};  // x, y, width, height in samples of the image, from kRegion on
  unsigned level = 0;                     // of the image, from kSize on
  bool operator==(const IiifName&) const = default;
};
// Equal for equal names.
std::string to_key(const IiifName& name);

// The entry `name` of a directory other than kRotation. kNotFound if there is none.
Result<IiifName> iiif_entry(const ZoomPicture& picture, const IiifName& directory, std::string_view name);
// The window that a file in kRotation is. kNotFound: another name than default.jpg or default.png, or the picture has
// become smaller than the region.
Result<WindowName> iiif_picture(const ZoomPicture& picture, const IiifName& directory, std::string_view name);
std::string iiif_picture_name(const ZoomPicture& picture);
// The text of info.json; `id`: the address of iiif/, absolute or from the root of a server.
std::string iiif_info(const ZoomPicture& picture, std::string_view id);

}  // namespace mdfs::views
