// mdfs image create, import, export, info and layout.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>

#include "alloc/policy.h"
#include "base/aligned_buffer.h"
#include "codec/codec_table.h"
#include "commands.h"
#include "convert.h"
#include "damaged_extent.h"
#include "geometry/default_extent.h"
#include "geometry/shape_text.h"
#include "geometry/window_spec.h"
#include "image_text.h"
#include "imagefile/image_file.h"
#include "import.h"
#include "layout_picture.h"
#include "levels.h"
#include "lost_files.h"
#include "metadata_attributes.h"
#include "mounted.h"
#include "parts.h"
#include "pending_image.h"
#include "protection.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/pending_file.h"
#include "support/progress.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr std::uint64_t kExportPartBytes = 64u << 20;

template <typename Values>
auto axis_list(const geometry::Geometry& geometry, const Values& values) {
  auto list = nlohmann::ordered_json::array();
  for (unsigned axis = 0; axis < geometry.rank; ++axis) list.push_back(values[axis]);
  return list;
}

// ---- create

struct CreateArguments {
  std::string path, shape, type = "u8";
  unsigned channels = 1;
  ImageOptions image;
  LevelOptions levels;
};

Status create_command(const CreateArguments& arguments) {
  MDFS_TRY(arguments.image.check_axes());
  MDFS_TRY(arguments.levels.check());
  MDFS_TRY_ASSIGN(const geometry::Lengths shape, named("--shape", geometry::parse_shape(arguments.shape)));
  for (unsigned axis = 1; axis < shape.rank; ++axis)
    if (shape.length[axis] == 0)
      return {Errc::kUsage, fmt::format("--shape {}: only the slowest axis may have length 0", arguments.shape)};
  imagefile::ArrayInfo array;
  array.lengths.assign(shape.length.begin(), shape.length.begin() + shape.rank);
  MDFS_TRY_ASSIGN(array.type, named("--type", geometry::parse_element_type(arguments.type)));
  std::string axes = arguments.image.axes.empty() ? geometry::default_axes(shape.rank, false, arguments.channels > 1)
                                                  : arguments.image.axes;
  if (axes.ends_with('c')) axes.pop_back();
  const bool has_axis = axes.find('c') != std::string::npos;
  if (has_axis && arguments.channels > 1)
    return {Errc::kUsage, fmt::format("--axes {}: the axis c excludes interleaved channels (--channels {})",
                                      arguments.image.axes, arguments.channels)};
  if (axes.size() != shape.rank)
    return {Errc::kUsage, fmt::format("--axes {}: must be {} letters, one for each length of --shape",
                                      arguments.image.axes, shape.rank)};
  if (!has_axis) array.lengths.push_back(arguments.channels);
  auto chosen = imagefile::choose_geometry(array, has_axis ? axes : axes + 'c');
  if (!chosen.ok()) return {Errc::kUsage, "--shape, --channels and --type: " + chosen.error().where};
  geometry::Geometry geometry = std::move(*chosen);
  MDFS_TRY(arguments.image.apply(geometry));
  const mdfs_ioc_geometry request = arguments.image.request(geometry);
  MDFS_TRY(PendingImage::check_name(arguments.path));
  if (PendingImage::is_taken(arguments.path)) return {Errc::kExists, arguments.path};
  // It gets its name as an image: a killed command leaves no empty file.
  auto created = PendingImage::create(arguments.path, request);
  if (!created.ok()) return with_options(created.error());
  PendingImage pending = std::move(*created);
  MDFS_TRY(arguments.levels.apply(pending.descriptor_path(), arguments.path));
  MDFS_TRY(pending.finish(false, true));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry made, image_info(pending.image(), arguments.path));
  MDFS_TRY_ASSIGN(geometry, client::to_geometry(made));
  print_out("{}\n", image_line(arguments.path, geometry, made));
  return {};
}

// ---- info

struct InfoArguments {
  std::string path;
  bool json = false, meta = false;
};

nlohmann::ordered_json meta_json(const imagefile::Metadata& metadata) {
  auto json = nlohmann::ordered_json::object();
  json["blocks"] = nlohmann::ordered_json::object();
  for (const auto& [block, bytes] : metadata.blocks) json["blocks"][block] = bytes.size();
  json["fields"] = nlohmann::ordered_json::object();
  for (const auto& [field, value] : imagefile::describe(metadata)) json["fields"][field] = value;
  return json;
}

void print_meta(const imagefile::Metadata& metadata) {
  if (metadata.blocks.empty()) print_out("  no metadata are stored\n");
  for (const auto& [block, bytes] : metadata.blocks)
    print_out("  {}: {}\n", imagefile::title_of_block(block), format_size(bytes.size()));
  for (const auto& [field, value] : imagefile::describe(metadata)) print_out("    {}: {}\n", field, value);
}

std::string info_json(const geometry::Geometry& geometry, const mdfs_ioc_geometry& info, const mdfs_ioc_levels& levels,
                      const mdfs_ioc_protection& protection, const std::optional<imagefile::Metadata>& metadata,
                      const std::string& path) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["path"] = path;
  json["axes"] = geometry.axes;
  json["shape"] = axis_list(geometry, geometry.shape);
  json["channels"] = geometry.channels;
  json["type"] = geometry::name(geometry.type);
  json["extent"] = axis_list(geometry, geometry.extent);
  json["codec"] = codec::info(geometry.codec).name;
  if (codec::info(geometry.codec).has_levels) json["codec_level"] = geometry.codec_level;
  json["spacing"] = axis_list(geometry, geometry.spacing);
  json["unit"] = axis_list(geometry, geometry.unit);
  json["policy"] = alloc::name(geometry.policy);
  json["disks"] = info.placed_disks;
  json["placement_base"] = info.placement_base;
  json["generation"] = info.data_generation;
  json["size_bytes"] = info.size_bytes;
  json["stored_bytes"] = info.stored_bytes;
  json["levels"] = levels_json(geometry, levels);
  json["protection"] = protection_json(protection);
  if (metadata) json["meta"] = meta_json(*metadata);
  return dump_json(json) + "\n";
}

void print_info(const geometry::Geometry& geometry, const mdfs_ioc_geometry& info, const std::string& path) {
  print_out("{}\n", path);
  print_out("  axes     {}\n  shape    {}\n  channels {}\n  type     {}\n", geometry.axes,
            geometry::shape_text(geometry.rank, geometry.shape), geometry.channels, geometry::name(geometry.type));
  print_out("  spacing  {}\n  extents  {} of {}, {}\n", spacing_text(geometry),
            geometry::shape_text(geometry.rank, geometry.grid()), geometry::shape_text(geometry.rank, geometry.extent),
            codec_text(geometry));
  print_out("  policy   {}\n", alloc::name(geometry.policy));
  print_out("  disks    {}\n  size     {} ({} bytes), stored in {}\n", info.placed_disks, format_size(info.size_bytes),
            info.size_bytes, format_size(info.stored_bytes));
}

Status info_command(const InfoArguments& arguments) {
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.path));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, client::to_geometry(info));
  MDFS_TRY_ASSIGN(const mdfs_ioc_levels levels, image_levels(arguments.path));
  MDFS_TRY_ASSIGN(const mdfs_ioc_protection protection, protection_of(arguments.path));
  std::optional<imagefile::Metadata> metadata;
  if (arguments.meta) {
    MDFS_TRY_ASSIGN(metadata, load_metadata(arguments.path));
  }
  if (arguments.json) {
    print_out("{}", info_json(geometry, info, levels, protection, metadata, arguments.path));
    return {};
  }
  print_info(geometry, info, arguments.path);
  if (protection.copies != 1 || protection.copied > 0) print_out("  {}\n", protection_text(protection));
  print_out("{}", levels_text(geometry, levels));
  if (metadata) print_meta(*metadata);
  return {};
}

// ---- layout

Status next_rows(File& file, mdfs_ioc_layout& rows) {
  if (::ioctl(file.fd(), MDFS_IOC_LAYOUT, &rows) != 0) return from_errno(errno, file.name() + ": layout");
  if (rows.count > MDFS_IOC_LAYOUT_ROWS || rows.disk_count > MDFS_IOC_MAX_DISKS)
    return {Errc::kCorrupt, file.name() + ": the daemon's answer is invalid"};
  return {};
}

std::string index_text(const geometry::Geometry& geometry, const std::uint64_t* index) {
  std::string text;
  for (unsigned axis = 0; axis < geometry.rank; ++axis) text += fmt::format("{}{}", axis > 0 ? ", " : "", index[axis]);
  return text;
}

struct LayoutArguments : InfoArguments {
  std::string svg, window;
  bool force = false;
};

Result<LayoutPicture> new_picture(const LayoutArguments& arguments, const geometry::Geometry& geometry) {
  std::optional<geometry::Window> window;
  if (!arguments.window.empty()) {
    MDFS_TRY_ASSIGN(window, named(fmt::format("{}: --window {}", arguments.path, arguments.window),
                                  geometry::parse_window(geometry, arguments.window)));
  }
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.path));
  std::vector<LayoutPicture::Disk> disks;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(volume.disk_count, MDFS_IOC_MAX_DISKS); ++i)
    disks.push_back({{}, volume.disks[i].blocks});
  return LayoutPicture(geometry, std::move(disks), volume.block_size, arguments.path, window);
}

Status draw_layout(const LayoutArguments& arguments, const geometry::Geometry& geometry, std::uint64_t stored_bytes,
                   File& file) {
  MDFS_TRY_ASSIGN(LayoutPicture picture, new_picture(arguments, geometry));
  Progress progress("looking", stored_bytes);
  mdfs_ioc_layout rows{};
  do {
    MDFS_TRY(next_rows(file, rows));
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      geometry::Coord index{};
      std::copy_n(rows.rows[i].index, geometry.rank, index.begin());
      picture.add(index, rows.rows[i].disk, rows.rows[i].block, rows.rows[i].stored_bytes);
      progress.add(rows.rows[i].stored_bytes);
    }
  } while (rows.count > 0);
  return write_text_file(arguments.svg, picture.svg(), arguments.force);
}

// A line an extent, as it comes: an image may have more of them than fit in memory as JSON.
Status layout_command(const LayoutArguments& arguments) {
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.path));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, client::to_geometry(info));
  MDFS_TRY_ASSIGN(File file, File::open(arguments.path, O_RDONLY));
  if (!arguments.svg.empty()) {
    MDFS_TRY(draw_layout(arguments, geometry, info.stored_bytes, file));
    if (!arguments.json) return {};
  }
  Progress progress("looking", info.stored_bytes, ::isatty(STDOUT_FILENO) != 1);
  std::vector<std::uint64_t> disk_bytes;
  mdfs_ioc_layout rows{};
  bool first = true;
  do {
    MDFS_TRY(next_rows(file, rows));
    disk_bytes.resize(std::max<std::size_t>(disk_bytes.size(), rows.disk_count));
    if (first && arguments.json)
      print_out("{{\n  \"output_version\": {},\n  \"block_size\": {},\n  \"extents\": [", kOutputVersion,
                rows.block_size);
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      const auto& row = rows.rows[i];
      progress.add(row.stored_bytes);
      if (row.disk < disk_bytes.size()) disk_bytes[row.disk] += row.stored_bytes;
      if (arguments.json)
        print_out(
            "{}\n    {{\"index\": [{}], \"disk\": {}, \"block\": {}, \"stored_bytes\": {}, \"strip\": {}, "
            "\"copy\": {}, \"parity\": {}, \"former\": {}}}",
            first ? "" : ",", index_text(geometry, row.index), row.disk, row.block, row.stored_bytes,
            (row.flags & MDFS_IOC_LAYOUT_STRIP) != 0,
            (row.flags & (MDFS_IOC_LAYOUT_PARITY | MDFS_IOC_LAYOUT_LEAVER)) == 0 &&
                (row.flags & MDFS_IOC_LAYOUT_COPY) != 0,
            (row.flags & MDFS_IOC_LAYOUT_PARITY) != 0, (row.flags & MDFS_IOC_LAYOUT_LEAVER) != 0);
      else
        print_out("extent {}: disk {}, block {}, {} bytes{}{}\n", index_text(geometry, row.index), row.disk, row.block,
                  row.stored_bytes, (row.flags & MDFS_IOC_LAYOUT_STRIP) != 0 ? ", in a strip" : "",
                  (row.flags & MDFS_IOC_LAYOUT_PARITY) != 0   ? ", parity of its group"
                  : (row.flags & MDFS_IOC_LAYOUT_LEAVER) != 0 ? ", earlier state that its group needs"
                  : (row.flags & MDFS_IOC_LAYOUT_COPY) != 0   ? ", second copy"
                                                              : "");
      first = false;
    }
  } while (rows.count > 0);
  progress.finish();
  MDFS_TRY_ASSIGN(const mdfs_ioc_fragmentation fragmentation, image_fragmentation(arguments.path));
  if (arguments.json) {
    print_out("\n  ],\n  \"disks\": [{}],\n  \"fragmentation\": {}\n}}\n", fmt::join(disk_bytes, ", "),
              fragmentation_json(fragmentation, false));
  } else {
    for (std::size_t disk = 0; disk < disk_bytes.size(); ++disk)
      print_out("disk {}: {} ({} bytes)\n", disk, format_size(disk_bytes[disk]), disk_bytes[disk]);
    if (fragmentation.windows > 0) print_out("{}\n", fragmentation_text(fragmentation));
  }
  return {};
}

// ---- export

struct ExportArguments {
  std::string path, target;
  bool force = false;
  std::optional<unsigned> bits;
};

// DPX files have as many bits a sample as the files that the image was imported from, or as the user asks for.
Status choose_bits(const ExportArguments& arguments, const imagefile::ArrayInfo& array, imagefile::Metadata& metadata) {
  if (!arguments.bits) return {};
  if (*arguments.bits != 10 && *arguments.bits != 12 && *arguments.bits != 16)
    return {Errc::kUsage, fmt::format("--bits {}: must be 10, 12 or 16", *arguments.bits)};
  if (!arguments.target.ends_with(".dpx") || array.type != geometry::ElementType::kU16)
    return {Errc::kUsage,
            fmt::format("--bits {}: only .dpx files of u16 samples have a number of bits to choose", *arguments.bits)};
  metadata.blocks.erase(std::string(imagefile::kBitsBlock));
  if (*arguments.bits < 16) metadata.blocks.emplace(imagefile::kBitsBlock, std::to_string(*arguments.bits));
  return {};
}

Status export_command(const ExportArguments& arguments) {
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.path, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.path));
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, client::to_geometry(info));
  if (info.size_bytes != geometry.size_bytes())
    return {
        Errc::kNotSupported,
        fmt::format(
            "{}: its {} bytes are not a multiple of a step along its slowest axis; cut or extend it with truncate(1)",
            arguments.path, info.size_bytes)};
  const imagefile::ArrayInfo array = imagefile::array_of(geometry);
  MDFS_TRY_ASSIGN(imagefile::Metadata metadata, load_metadata(arguments.path));
  MDFS_TRY(choose_bits(arguments, array, metadata));
  MDFS_TRY_ASSIGN(const auto sink, imagefile::create_sink(arguments.target, array, arguments.force, metadata));
  Progress progress("exporting", info.size_bytes);
  AlignedBuffer buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(kExportPartBytes, info.size_bytes) + geometry.sample_bytes()));
  const auto put = [&](const geometry::Window& part) -> Status {
    const mdfs_ioc_window window = client::from_window(geometry, part);
    const ssize_t got = mdfs_read_window(image.get(), &window, buffer.data(), buffer.size(), nullptr);
    if (got < 0)
      return with_damaged_extent(library_error(got, arguments.path), *image, geometry, 0, part, arguments.path);
    MDFS_TRY(sink->write(buffer.bytes().first(static_cast<std::size_t>(got))));
    progress.add(static_cast<std::uint64_t>(got));
    return {};
  };
  if (info.size_bytes > 0) MDFS_TRY(for_each_part(geometry, geometry::whole(geometry), kExportPartBytes, put));
  MDFS_TRY(sink->finish());
  progress.finish();
  for (const auto& [block, reason] : sink->dropped())
    print_err("mdfs: {}: warning: {} of the image is left out, {}\n", arguments.target,
              imagefile::title_of_block(block), reason);
  if (arguments.target != "-") print_out("{}\n", array_line(arguments.target, array, info.size_bytes));
  return {};
}

constexpr const char* kElementTypes = "{u8,u16,u32,u64,i8,i16,i32,i64,f16,f32,f64}";

void add_import(CLI::App& noun, Action& action) {
  const auto import = std::make_shared<ImportArguments>();
  CLI::App* command =
      noun.add_subcommand("import", "Store an image file, or a numbered sequence of files, as an image");
  import->image.add_to(*command);
  import->levels.add_to(*command);
  command->add_option("--frames", import->frames, "For a sequence such as shot.%04d.dpx: first and last frame, A-B");
  command->add_flag("--flatten", import->flatten, "Import all pages or parts of the file along axis z");
  command->add_option("--page", import->page, "Import only this page of a file with several pages, counted from 0")
      ->check(whole_number(0, INT32_MAX));
  command->add_option("--shape", import->shape, "For a file of raw samples: 2048x3072, slowest axis first");
  command->add_option("--channels", import->channels, "For a file of raw samples: interleaved channels (default 1)")
      ->check(whole_number(1, geometry::kMaxChannels));
  command->add_option("--type", import->type, "For a file of raw samples: type of the elements")
      ->type_name(kElementTypes);
  command->add_flag("--force", import->force, "Replace an existing file");
  command->add_flag("--quiet", import->quiet, "Print nothing but errors");
  command->add_flag("--json", import->json, "Print the chosen geometry as JSON");
  command->add_option("SRC", import->source, "NPY, PGM, PPM, raw, PNG, TIFF, JPEG, EXR, DPX and others")->required();
  command->add_option("PATH", import->path, "Name on the mounted volume")->required();
  command->callback([import, &action] { action = [import] { return import_image(*import); }; });
}

}  // namespace

void add_image_commands(CLI::App& app, Action& action) {
  CLI::App* noun = app.add_subcommand("image", "Create, import, export and show images");
  noun->require_subcommand(1);

  const auto create = std::make_shared<CreateArguments>();
  CLI::App* command = noun->add_subcommand("create", "Create an image of zeros");
  command->add_option("--shape", create->shape, "Lengths of the axes, slowest first: 2048x3072")->required();
  command->add_option("--channels", create->channels, "Interleaved channels (default 1)")
      ->check(whole_number(1, geometry::kMaxChannels));
  command->add_option("--type", create->type, "Type of the elements (default: u8)")->type_name(kElementTypes);
  create->image.add_to(*command);
  create->levels.add_to(*command);
  command->add_option("PATH", create->path, "Name on the mounted volume")->required();
  command->callback([create, &action] { action = [create] { return create_command(*create); }; });

  add_import(*noun, action);
  add_levels_command(*noun, action);
  add_protect_command(*noun, action);
  add_salvage_command(*noun, action);
  add_display_command(*noun, action);

  const auto exported = std::make_shared<ExportArguments>();
  command = noun->add_subcommand("export", "Write an image to an image file or a numbered sequence of files");
  command->add_flag("--force", exported->force, "Replace existing files");
  command->add_option("--bits", exported->bits, "Bits of a sample of a .dpx file: 10, 12 or 16 (default: as imported)")
      ->check(whole_number(10, 16));
  command->add_option("PATH", exported->path, "Image on the mounted volume")->required();
  command
      ->add_option("DST", exported->target,
                   ".npy, .raw, .pgm, .ppm, .png, .tif, .jpg, .exr, .dpx; - writes raw samples to standard output")
      ->required();
  command->callback([exported, &action] {
    action = [exported] { return with_lost_disks(export_command(*exported), exported->path); };
  });

  const auto shown = std::make_shared<InfoArguments>();
  command = noun->add_subcommand("info", "Show the geometry and storage of an image");
  command->add_flag("--meta", shown->meta, "Also show the metadata that were imported: ICC profile, EXIF, XMP, IPTC");
  command->add_flag("--json", shown->json, "Print JSON");
  command->add_option("PATH", shown->path, "Image on the mounted volume")->required();
  command->callback([shown, &action] { action = [shown] { return info_command(*shown); }; });

  const auto layout = std::make_shared<LayoutArguments>();
  command = noun->add_subcommand("layout", "Show where the extents of an image are stored");
  CLI::Option* const svg =
      command->add_option("--svg", layout->svg, "Draw the layout to this SVG file")->type_name("FILE");
  command->add_option("--window", layout->window, "Draw the extents of this window in full colour, all others pale")
      ->needs(svg);
  command->add_flag("--force", layout->force, "Replace an existing SVG file")->needs(svg);
  command->add_flag("--json", layout->json, "Print JSON");
  command->add_option("PATH", layout->path, "Image on the mounted volume")->required();
  command->callback([layout, &action] { action = [layout] { return layout_command(*layout); }; });
}

}  // namespace mdfs::tools
