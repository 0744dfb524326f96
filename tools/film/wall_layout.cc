// Layouts of walls from TOML.
// SPDX-License-Identifier: Apache-2.0
#include "wall_layout.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "model/toml_file.h"

namespace mdfs::film {
namespace {

using model::TomlTable;

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

Result<WallPanel> panel_from(const toml::table& item, const std::string& where, std::size_t number) {
  TomlTable table(item, where, fmt::format("panel[{}]", number));
  WallPanel panel;
  MDFS_TRY_ASSIGN(panel.name, table.text("name"));
  if (panel.name.empty() || panel.name.find_first_not_of(kNameCharacters) != std::string::npos)
    return table.bad(item.get("name"), "name", "is made of letters, digits, - and _");
  MDFS_TRY_ASSIGN(panel.window, table.text("window"));
  MDFS_TRY_ASSIGN(panel.level, table.count("level", 0, kMaxMovieLevel, 0));
  MDFS_TRY_ASSIGN(panel.sink, table.text("sink", ""));
  MDFS_TRY_ASSIGN(panel.start, table.flag("start", true));
  MDFS_TRY(table.finish("a panel"));
  return panel;
}

}  // namespace

Result<WallLayout> parse_wall_layout(std::string_view text, const std::string& where) {
  MDFS_TRY_ASSIGN(const toml::table document, model::parse_toml(text, where));
  TomlTable table(document, where, "");
  WallLayout layout;
  MDFS_TRY_ASSIGN(layout.host, table.text("host", "127.0.0.1"));
  MDFS_TRY_ASSIGN(const unsigned port, table.count("port", 1, 65535, std::nullopt));
  layout.port = static_cast<int>(port);
  MDFS_TRY_ASSIGN(layout.fps, table.text("fps", ""));
  MDFS_TRY(table.each("a wall", "panel", kMaxPanels, [&](const toml::table& item) -> Status {
    MDFS_TRY_ASSIGN(const WallPanel panel, panel_from(item, where, layout.panels.size()));
    if (std::ranges::any_of(layout.panels, [&](const WallPanel& other) { return other.name == panel.name; }))
      return Error{Errc::kInvalidArgument, fmt::format("{}: two panels have the name {}", where, panel.name)};
    layout.panels.push_back(panel);
    return {};
  }));
  MDFS_TRY(table.finish("a wall"));
  return layout;
}

Result<WallLayout> read_wall_layout(const std::string& path) {
  MDFS_TRY_ASSIGN(const std::string text, model::read_toml(path, kMaxFileBytes));
  return parse_wall_layout(text, path);
}

Result<WallPanel> panel_of(const WallLayout& layout, const std::string& name) {
  for (const WallPanel& panel : layout.panels)
    if (panel.name == name) return panel;
  return Error{Errc::kNotFound, fmt::format("the layout has no panel {}", name)};
}

}  // namespace mdfs::film
