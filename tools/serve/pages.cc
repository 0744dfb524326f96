// Pages of directories and images.
// SPDX-License-Identifier: Apache-2.0
#include "serve/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/web_text.h"
#include "support/json_output.h"

namespace mdfs::serve {
namespace {

// The texts of tools/serve/web/ and of OpenSeadragon, by their file names.
constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
#include "web_files.inc"
};
constexpr std::string_view kViewerName = "openseadragon.min.js";
constexpr std::string_view kAssets = "/.mdfs/web/";  // a volume keeps .mdfs for itself

// The way from a page to the root of the server, so that it works behind a prefix as well.
std::string to_root(std::string_view path) {
  std::string up;
  for (auto slashes = std::count(path.begin(), path.end(), '/'); slashes > 1; --slashes) up += "../";
  return up.empty() ? "./" : up;
}

std::string link_to_asset(std::string_view path, std::string_view name) {
  return to_root(path) + std::string(kAssets.substr(1)) + std::string(name);
}

std::string head(std::string_view path, std::string_view title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"{}\"></head>\n<body>\n<h1>{}</h1>\n",
      html_escaped(title), link_to_asset(path, "viewer.css"), html_escaped(path));
}

std::string script(std::string_view path, std::string_view name) {
  return fmt::format("<script src=\"{}\"></script>\n", link_to_asset(path, name));
}

std::string list_of(std::string_view path, const std::vector<Entry>& entries) {
  std::string list = "<ul>\n";
  if (path != "/") list += "<li><a href=\"../\">..</a></li>\n";
  for (const Entry& entry : entries) {
    const std::string url = url_escaped(entry.name), mark = entry.is_directory ? "/" : "";
    // "./": a name may look like a scheme.
    if (!entry.is_image)
      list += fmt::format("<li><a href=\"./{}{}\">{}{}</a></li>\n", url, mark, html_escaped(entry.name), mark);
  }
  return list + "</ul>\n";
}

// What follows "</" or "<!--" in a script element ends it.
std::string for_script(const nlohmann::ordered_json& value) {
  std::string text = tools::dump_json(value, -1);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

constexpr std::string_view kImageBody = R"(<div id="viewer"></div>
<div class="bar" id="planes" hidden><label>
<input type="range" id="slider" min="0" value="0"><span id="index"></span></label></div>
<div class="bar"><span><span id="length"></span><div id="bar"></div></span>
<label>brightness <input type="range" id="brightness" min="-2" max="6" step="0.1" value="0"></label>
<label>contrast <input type="range" id="contrast" min="-2" max="4" step="0.1" value="0"></label></div>
<div class="bar"><label>on the screen <input id="path" readonly></label><button data-copy="path">Copy</button></div>
<div class="bar"><label>in Python <input id="python" readonly></label><button data-copy="python">Copy</button></div>
<p><a id="neuroglancer" href="#">Open in neuroglancer</a></p>
)";

}  // namespace

bool is_of_views(std::string_view path) {
  return path.size() > 3 && path.ends_with("@/") && path[path.size() - 3] != '/';
}

std::string directory_page(std::string_view path, const std::vector<Entry>& entries, bool more) {
  std::string page = head(path, path);
  page += "<ul class=\"images\">\n";
  for (const Entry& entry : entries) {
    if (!entry.is_image) continue;
    const std::string url = url_escaped(entry.name);
    page += fmt::format(
        "<li data-views=\"./{0}@/\"><a href=\"./{0}@/\">{1}</a> (<a "
        "href=\"./{0}\">bytes</a>)<br><small></small></li>\n",
        url, html_escaped(entry.name));
  }
  page += "</ul>\n" + list_of(path, entries);
  if (more) page += "<p>There are more entries.</p>\n";
  return page + script(path, "directory.js") + "</body>\n</html>\n";
}

std::string image_page(std::string_view path, std::string_view info, const std::vector<Entry>& entries) {
  const std::string_view image = path.substr(1, path.size() - 3);
  nlohmann::ordered_json about{{"path", image}, {"name", image.substr(image.rfind('/') + 1)}};
  about["info"] = nlohmann::ordered_json::parse(info, nullptr, false);
  std::string page = head(path, std::string_view(about["name"].get_ref<const std::string&>()));
  page += kImageBody;
  page += fmt::format("<script type=\"application/json\" id=\"image\">{}</script>\n", for_script(about));
  page += script(path, kViewerName) + script(path, "viewer.js");
  return page + list_of(path, entries) + "</body>\n</html>\n";
}

bool is_iiif_info(std::string_view path) {
  return path.ends_with("/iiif/info.json") && path.find("@/") != std::string_view::npos;
}

std::string iiif_info_at(std::string_view base, std::string_view path, std::string text) {
  nlohmann::ordered_json info = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!info.is_object()) return text;
  info["id"] = std::string(base) + url_path(path.substr(0, path.rfind('/')));
  return tools::dump_json(info) + "\n";
}

std::string url_path(std::string_view path) {
  std::string url;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    url += url_escaped(path.substr(at, slash - at));
    if (slash < path.size()) url += '/';
    at = slash + 1;
  }
  return url;
}

std::optional<Asset> find_asset(std::string_view path) {
  if (!path.starts_with(kAssets)) return {};
  for (const auto& [name, text] : kFiles)
    if (path.substr(kAssets.size()) == name)
      return Asset{name.ends_with(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8", text};
  return {};
}

bool can_zoom() { return find_asset(std::string(kAssets) + std::string(kViewerName)).has_value(); }

}  // namespace mdfs::serve
