// mdfs image display: the range of samples that pictures show.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/checked.h"
#include "commands.h"
#include "convert.h"
#include "geometry/display.h"
#include "mounted.h"
#include "support/json_output.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct DisplayArguments {
  std::string path;
  std::optional<std::string> range;
  bool json = false;
};

constexpr std::string_view kAutomatic = "auto", kNone = "none";
const std::string kAttribute(geometry::kDisplayAttribute);

// Nothing if the image has none.
Result<std::optional<geometry::DisplayRange>> present_range(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t size = ::getxattr(path.c_str(), kAttribute.c_str(), text.data(), text.size());
  if (size < 0 && errno == ENODATA) return std::optional<geometry::DisplayRange>();
  if (size < 0) return from_errno(errno, path);
  const auto range = geometry::parse_display({text.data(), static_cast<std::size_t>(size)});
  if (!range.ok())
    return Error{Errc::kBadData,
                 fmt::format("{}: {}: {}; replace it with --range", path, kAttribute, range.error().where)};
  return std::optional(*range);
}

// Boxes on a regular grid over the image, some 64 of them with some 32 Ki samples in each.
std::vector<geometry::Window> boxes_over(const geometry::Geometry& image) {
  constexpr std::array<std::uint64_t, geometry::kMaxRank + 1> kBoxes = {1, 64, 8, 4, 3, 2},
                                                              kSide = {1, 32768, 181, 32, 13, 8};  // by rank
  static_assert(kSide.back() != 0 && kBoxes.back() != 0);
  std::vector<geometry::Window> boxes = {geometry::whole(image)};
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    const std::uint64_t length = image.shape[axis];
    const std::uint64_t side = std::min(length, kSide[image.rank]);
    const std::uint64_t along = std::min(kBoxes[image.rank], ceil_div(length, side));
    std::vector<geometry::Window> cut;
    for (const geometry::Window& box : boxes) {
      for (std::uint64_t i = 0; i < along; ++i) {
        cut.push_back(box);
        cut.back().start[axis] = along == 1 ? 0 : (length - side) / (along - 1) * i;
        cut.back().length[axis] = side;
      }
    }
    boxes = std::move(cut);
  }
  return boxes;
}

Result<geometry::DisplayRange> measured_range(mdfs_image& image, const mdfs_ioc_geometry& info,
                                              const std::string& path) {
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, client::to_geometry(info));
  if (geometry.size_bytes() == 0) return Error{Errc::kNoData, path + ": the image has no samples"};
  ByteVector samples;
  for (const geometry::Window& box : boxes_over(geometry)) {
    const mdfs_ioc_window window = client::from_window(geometry, box);
    const auto bytes = static_cast<std::size_t>(geometry::window_bytes(geometry, box));
    const std::size_t at = samples.size();
    samples.resize(at + bytes);
    if (const ssize_t got = mdfs_read_window(&image, &window, samples.data() + at, bytes, nullptr); got < 0)
      return library_error(got, path);
  }
  auto range = geometry::automatic_display(geometry.type, samples);
  if (!range.ok()) return Error{range.error().code, path + ": " + range.error().where};
  return range;
}

std::string line_of(const std::string& path, const std::optional<geometry::DisplayRange>& range) {
  if (!range) return fmt::format("{}: no range of display\n", path);
  return fmt::format("{}: {} is black, {} is white\n", path, range->black, range->white);
}

Status set_range(mdfs_image& image, const mdfs_ioc_geometry& info, const std::string& path, const std::string& wanted) {
  if (wanted == kNone) {
    if (::removexattr(path.c_str(), kAttribute.c_str()) != 0 && errno != ENODATA) return from_errno(errno, path);
    print_out("{}", line_of(path, {}));
    return {};
  }
  geometry::DisplayRange range;
  if (wanted == kAutomatic) {
    MDFS_TRY_ASSIGN(range, measured_range(image, info, path));
  } else {
    auto given = geometry::parse_display(wanted);
    if (!given.ok()) return Error{Errc::kUsage, "--range " + given.error().where + ", or auto, or none"};
    range = *given;
  }
  const std::string text = to_text(range);
  if (::setxattr(path.c_str(), kAttribute.c_str(), text.data(), text.size(), 0) != 0) return from_errno(errno, path);
  print_out("{}", line_of(path, range));
  return {};
}

Status display_command(const DisplayArguments& arguments) {
  // A path that is no image is an error before anything is written.
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.path));
  if (arguments.range) return set_range(*image, info, arguments.path, *arguments.range);
  MDFS_TRY_ASSIGN(const auto range, present_range(arguments.path));
  if (arguments.json) {
    nlohmann::ordered_json json = {
        {"output_version", kOutputVersion}, {"path", arguments.path}, {"black", nullptr}, {"white", nullptr}};
    if (range) json["black"] = range->black;
    if (range) json["white"] = range->white;
    print_out("{}\n", dump_json(json));
  } else {
    print_out("{}", line_of(arguments.path, range));
  }
  return {};
}

}  // namespace

void add_display_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<DisplayArguments>();
  CLI::App* command = noun.add_subcommand("display", "Show or set the range of samples that pictures show");
  CLI::Option* const range =
      command->add_option("--range", arguments->range, "Samples that are black and white; auto measures them")
          ->type_name("{BLACK,WHITE|auto|none}");
  command->add_flag("--json", arguments->json, "Print JSON")->excludes(range);
  command->add_option("PATH", arguments->path, "Image on the mounted volume")->required();
  command->callback([arguments, &action] { action = [arguments] { return display_command(*arguments); }; });
}

}  // namespace mdfs::tools
