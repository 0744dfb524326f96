// The pages that browsers show: a directory, and an image to zoom into; and what IIIF clients read first. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mdfs::serve {

struct Entry {
  std::string name;
  bool is_directory = false;
  bool is_image = false;  // NAME@ is there
};

// The page of a directory. `path`: decoded, from the root of the server, with a slash at both ends.
std::string directory_page(std::string_view path, const std::vector<Entry>& entries, bool more);
// The page of NAME@/, which is the last part of `path` (is_of_views); `info` is the text of its info.json.
std::string image_page(std::string_view path, std::string_view info, const std::vector<Entry>& entries);
// True if the name of a directory is that of the views of an image.
bool is_of_views(std::string_view path);

// True for the description of an IIIF service of an image.
bool is_iiif_info(std::string_view path);
// The text of such a description, a JSON object, with the address `base` + path of the service; the same text if it is
// no object. `base`: "http://host:8080".
std::string iiif_info_at(std::string_view base, std::string_view path, std::string text);
// "a folder/scan" as in a URL.
std::string url_path(std::string_view path);

// A file that pages load, such as a script, by its path in a URL; nothing if it is none of them. They lie where a
// volume has no names of its own.
struct Asset {
  std::string_view type;
  std::string_view text;
};
std::optional<Asset> find_asset(std::string_view path);
// False in a build without OpenSeadragon: an image has the page of a directory.
bool can_zoom();

}  // namespace mdfs::serve
