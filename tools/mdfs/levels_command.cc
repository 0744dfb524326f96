// mdfs image levels, and the same options of a new image.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "commands.h"
#include "convert.h"
#include "geometry/level.h"
#include "geometry/reduce.h"
#include "geometry/shape_text.h"
#include "levels.h"
#include "mounted.h"
#include "support/json_output.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr const char* kReductionType = "{mean,nearest,max}";
constexpr const char* kReduceHelp = "How a level is made: mean (default), nearest for labels, or max";

// 0: not given.
Result<std::uint32_t> parse_reduce(const std::optional<std::string>& text) {
  if (!text) return std::uint32_t{0};
  const auto reduction = geometry::parse_reduction(*text);
  if (!reduction.ok()) return Error{Errc::kUsage, "--reduce " + reduction.error().where};
  return static_cast<std::uint32_t>(*reduction);
}

Error too_few(const std::string& name, std::uint32_t count) {
  return {Errc::kUsage, count == 1 ? name + ": the image is too small for a level"
                                   : fmt::format("{}: the image has fewer than {} levels", name, count)};
}

Result<mdfs_ioc_levels> ask(const std::string& path, const std::string& name, int flags, mdfs_ioc_levels request) {
  MDFS_TRY_ASSIGN(const Image image, open_image(path, flags));
  request.struct_bytes = sizeof request;
  const int result = mdfs_levels(image.get(), &request);
  if (result == -ERANGE) return too_few(name, request.count);
  if (result < 0) return from_errno(-result, name + ": levels");
  if (request.count <= MDFS_IOC_MAX_LEVELS) return request;
  return Error{Errc::kCorrupt, name + ": the daemon's answer is invalid"};
}

Result<mdfs_ioc_levels> set_levels(const std::string& path, const std::string& name, std::uint32_t count,
                                   std::uint32_t reduction) {
  mdfs_ioc_levels request{};
  request.action = MDFS_IOC_LEVELS_SET;
  request.count = count;
  request.reduction = reduction;
  return ask(path, name, O_RDWR, request);
}

struct LevelsArguments {
  std::string path;
  std::optional<std::string> set, reduce;
  bool json = false;
};

Status levels_command(const LevelsArguments& arguments) {
  MDFS_TRY_ASSIGN(const std::uint32_t reduction, parse_reduce(arguments.reduce));
  std::uint32_t count = 0;
  if (arguments.set) {
    MDFS_TRY_ASSIGN(count, parse_level_count("--set", *arguments.set));
  }
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.path));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, client::to_geometry(info));
  if (!arguments.set && reduction != 0) {
    MDFS_TRY_ASSIGN(const mdfs_ioc_levels now, image_levels(arguments.path));
    count = now.count;
  }
  if (count == 0 && reduction != 0)
    return {Errc::kUsage, arguments.path + ": a reduction is kept with stored levels only: --set stores some"};
  mdfs_ioc_levels levels{};
  if (!arguments.set && reduction == 0) {
    MDFS_TRY_ASSIGN(levels, image_levels(arguments.path));
  } else {
    MDFS_TRY_ASSIGN(levels, set_levels(arguments.path, arguments.path, count, reduction));
  }
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["path"] = arguments.path;
    json["levels"] = levels_json(geometry, levels);
    print_out("{}\n", dump_json(json));
  } else {
    print_out("{}\n{}", arguments.path, levels.count == 0 ? "  no levels are stored\n" : levels_text(geometry, levels));
  }
  return {};
}

}  // namespace

Result<std::uint32_t> parse_level_count(const std::string& option, const std::string& text) {
  if (text == "auto") return MDFS_IOC_LEVELS_AUTO;
  if (text == "none") return std::uint32_t{0};
  const auto number = parse_number(text, "levels");
  if (number.ok() && *number <= MDFS_IOC_MAX_LEVELS) return static_cast<std::uint32_t>(*number);
  return Error{Errc::kUsage,
               fmt::format("{} {}: must be auto, none, or a number up to {}", option, text, MDFS_IOC_MAX_LEVELS)};
}

void LevelOptions::add_to(CLI::App& command) {
  command.add_option("--levels", levels, "Stored resolution levels: a number, or auto, until one extent holds a plane")
      ->type_name("{auto,none,N}");
  command.add_option("--reduce", reduce, kReduceHelp)->type_name(kReductionType);
}

Status LevelOptions::check() const {
  MDFS_TRY_ASSIGN(const std::uint32_t reduction, parse_reduce(reduce));
  const auto count = parse_level_count("--levels", levels.value_or("none"));
  if (!count.ok()) return count.error();
  if (*count == 0 && reduction != 0) return {Errc::kUsage, "--reduce requires --levels"};
  return {};
}

Status LevelOptions::check_for(const geometry::Geometry& image, const std::string& name) const {
  if (!levels) return {};
  MDFS_TRY_ASSIGN(const std::uint32_t count, parse_level_count("--levels", *levels));
  if (count == MDFS_IOC_LEVELS_AUTO || count <= geometry::level_count(image)) return {};
  return too_few(name, count);
}

Status LevelOptions::apply(const std::string& descriptor_path, const std::string& name) const {
  if (!levels) return {};
  MDFS_TRY_ASSIGN(const std::uint32_t count, parse_level_count("--levels", *levels));
  MDFS_TRY_ASSIGN(const std::uint32_t reduction, parse_reduce(reduce));
  const auto set = set_levels(descriptor_path, name, count, reduction);
  return set.ok() ? Status() : Status(set.error());
}

Result<mdfs_ioc_levels> image_levels(const std::string& path) { return ask(path, path, O_RDONLY, mdfs_ioc_levels{}); }

std::string levels_text(const geometry::Geometry& image, const mdfs_ioc_levels& levels) {
  std::string text;
  geometry::Geometry geometry = image;
  for (std::uint32_t i = 0; i < levels.count; ++i) {
    geometry = geometry::geometry_above(std::move(geometry));
    const auto& level = levels.levels[i];
    text += fmt::format("  level {:<2} {}, {}, {} of {} extents built, stored in {}\n", i + 1,
                        geometry::shape_text(geometry.rank, geometry.shape),
                        geometry::name(static_cast<geometry::Reduction>(levels.reduction)), level.built, level.extents,
                        format_size(level.stored_bytes));
  }
  return text;
}

nlohmann::ordered_json levels_json(const geometry::Geometry& image, const mdfs_ioc_levels& levels) {
  auto all = nlohmann::ordered_json::array();
  geometry::Geometry geometry = image;
  for (std::uint32_t i = 0; i < levels.count; ++i) {
    geometry = geometry::geometry_above(std::move(geometry));
    nlohmann::ordered_json json;
    json["level"] = i + 1;
    json["shape"] = std::vector<std::uint64_t>(geometry.shape.begin(), geometry.shape.begin() + geometry.rank);
    json["reduction"] = geometry::name(static_cast<geometry::Reduction>(levels.reduction));
    json["extents"] = levels.levels[i].extents;
    json["built"] = levels.levels[i].built;
    json["stored_bytes"] = levels.levels[i].stored_bytes;
    all.push_back(std::move(json));
  }
  return all;
}

void add_levels_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<LevelsArguments>();
  CLI::App* command = noun.add_subcommand("levels", "Show or set the stored resolution levels of an image");
  command->add_option("--set", arguments->set, "How many: a number, auto, or none to remove them")
      ->type_name("{auto,none,N}");
  command->add_option("--reduce", arguments->reduce, kReduceHelp)->type_name(kReductionType);
  command->add_flag("--json", arguments->json, "Print JSON");
  command->add_option("PATH", arguments->path, "Image on the mounted volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return levels_command(*arguments); }; });
}

}  // namespace mdfs::tools
