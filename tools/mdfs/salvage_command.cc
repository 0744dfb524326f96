// mdfs image salvage: a copy of an image of which not all can be read.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/aligned_buffer.h"
#include "commands.h"
#include "convert.h"
#include "geometry/window_spec.h"
#include "image_text.h"
#include "imagefile/image_file.h"
#include "mounted.h"
#include "parts.h"
#include "pending_image.h"
#include "support/command.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/progress.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

using geometry::Coord;
using geometry::Geometry;
using geometry::Window;

constexpr std::uint64_t kPartBytes = 16u << 20;
constexpr std::size_t kShownWindows = 10;

struct SalvageArguments {
  std::string source, target, fill = "0";
  bool force = false, json = false;
};

template <typename Number>
Result<ByteVector> bytes_of(std::string_view text, std::string_view type) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size())
    return Error{Errc::kUsage, fmt::format("--fill {}: must be a value of type {}", text, type)};
  ByteVector bytes(sizeof number);
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// One element, little endian.
Result<ByteVector> element_of(geometry::ElementType type, std::string_view text) {
  using Type = geometry::ElementType;
  const std::string_view name = geometry::name(type);
  switch (type) {
    case Type::kU8:
      return bytes_of<std::uint8_t>(text, name);
    case Type::kU16:
      return bytes_of<std::uint16_t>(text, name);
    case Type::kU32:
      return bytes_of<std::uint32_t>(text, name);
    case Type::kU64:
      return bytes_of<std::uint64_t>(text, name);
    case Type::kI8:
      return bytes_of<std::int8_t>(text, name);
    case Type::kI16:
      return bytes_of<std::int16_t>(text, name);
    case Type::kI32:
      return bytes_of<std::int32_t>(text, name);
    case Type::kI64:
      return bytes_of<std::int64_t>(text, name);
    case Type::kF32:
      return bytes_of<float>(text, name);
    case Type::kF64:
      return bytes_of<double>(text, name);
    case Type::kF16:
      break;
  }
  if (text == "0") return ByteVector(2);
  if (text == "nan") return ByteVector{std::byte{0x00}, std::byte{0x7e}};
  return Error{Errc::kUsage, fmt::format("--fill {}: must be 0 or nan for type f16", text)};
}

// Reads parts of an image, extent by extent where a part cannot be read at once; what cannot be read is filled.
class Salvage {
 public:
  Salvage(mdfs_image& image, const Geometry& geometry, ByteVector element)
      : image_(image), geometry_(geometry), element_(std::move(element)) {}

  Status read(const Window& part, MutableBytes into) {
    const Result<bool> whole = try_to_read(part, into, nullptr);
    if (!whole.ok() || *whole) return whole.ok() ? Status() : Status(whole.error());
    std::array<std::int64_t, geometry::kMaxRank> strides{};
    std::uint64_t bytes = geometry_.sample_bytes();
    for (unsigned axis = geometry_.rank; axis-- > 0;) {
      strides[axis] = static_cast<std::int64_t>(bytes);
      bytes *= part.length[axis];
    }
    return for_each_extent(geometry_, part, [&](const Window& box) -> Status {
      std::uint64_t offset = 0;
      for (unsigned axis = 0; axis < geometry_.rank; ++axis)
        offset += (box.start[axis] - part.start[axis]) * static_cast<std::uint64_t>(strides[axis]);
      MDFS_TRY_ASSIGN(const bool read, try_to_read(box, into.subspan(offset), strides.data()));
      if (read) return {};
      fill(box, 0, into.subspan(offset), strides.data());
      filled_.push_back(box);
      return {};
    });
  }

  const std::vector<Window>& filled() const { return filled_; }

 private:
  // False: the data cannot be read.
  Result<bool> try_to_read(const Window& window, MutableBytes into, const std::int64_t* strides) {
    const mdfs_ioc_window wanted = client::from_window(geometry_, window);
    const ssize_t got = mdfs_read_window(&image_, &wanted, into.data(), into.size(), strides);
    if (got >= 0) return true;
    if (got == -EIO) return false;
    return library_error(got, "reading");
  }

  void fill(const Window& box, unsigned axis, MutableBytes into, const std::int64_t* strides) const {
    if (axis == geometry_.rank) {
      for (std::size_t at = 0; at < geometry_.sample_bytes(); at += element_.size())
        std::copy(element_.begin(), element_.end(), into.subspan(at).begin());
      return;
    }
    for (std::uint64_t i = 0; i < box.length[axis]; ++i)
      fill(box, axis + 1, into.subspan(i * static_cast<std::uint64_t>(strides[axis])), strides);
  }

  mdfs_image& image_;
  const Geometry& geometry_;
  const ByteVector element_;
  std::vector<Window> filled_;
};

// Where the copy goes: an image of a volume, or an image file.
class Target {
 public:
  virtual ~Target() = default;
  virtual Status write(const Window& part, ConstBytes bytes) = 0;
  virtual Status finish() = 0;
};

class FileTarget final : public Target {
 public:
  explicit FileTarget(std::unique_ptr<imagefile::ImageSink> sink) : sink_(std::move(sink)) {}
  Status write(const Window&, ConstBytes bytes) override { return sink_->write(bytes); }
  Status finish() override { return sink_->finish(); }

 private:
  std::unique_ptr<imagefile::ImageSink> sink_;
};

class ImageTarget final : public Target {
 public:
  ImageTarget(PendingImage pending, bool force, bool quiet)
      : pending_(std::move(pending)), force_(force), quiet_(quiet) {}

  Status write(const Window& part, ConstBytes bytes) override {
    const mdfs_ioc_window window = client::from_window(pending_.geometry(), part);
    const ssize_t put = mdfs_write_window(&pending_.image(), &window, bytes.data(), bytes.size(), nullptr);
    return put < 0 ? Status(library_error(put, "writing the copy")) : Status();
  }
  Status finish() override { return pending_.finish(force_, !quiet_); }

 private:
  PendingImage pending_;
  const bool force_, quiet_;
};

Result<std::unique_ptr<Target>> create_target(const SalvageArguments& arguments, const Geometry& geometry) {
  const std::size_t slash = arguments.target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : arguments.target.substr(0, slash + 1);
  if (!arguments.force && PendingImage::is_taken(arguments.target))
    return Error{Errc::kExists, arguments.target + ": give --force to replace it"};
  const bool has_format = arguments.target.find('.', slash == std::string::npos ? 0 : slash) != std::string::npos;
  if (volume_info(folder).ok() && !has_format) {
    MDFS_TRY_ASSIGN(PendingImage pending, PendingImage::create(arguments.target, client::from_geometry(geometry)));
    return std::unique_ptr<Target>(std::make_unique<ImageTarget>(std::move(pending), arguments.force, arguments.json));
  }
  MDFS_TRY_ASSIGN(auto sink, imagefile::create_sink(arguments.target, imagefile::array_of(geometry), arguments.force));
  return std::unique_ptr<Target>(std::make_unique<FileTarget>(std::move(sink)));
}

void print_result(const SalvageArguments& arguments, const Geometry& geometry, const std::vector<Window>& filled) {
  std::uint64_t bytes = 0;
  for (const Window& window : filled) bytes += geometry::window_bytes(geometry, window);
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["path"] = arguments.target;
    json["size_bytes"] = geometry.size_bytes();
    json["filled_bytes"] = bytes;
    json["fill"] = arguments.fill;
    json["filled"] = nlohmann::ordered_json::array();
    for (const Window& window : filled) json["filled"].push_back(geometry::to_spec(geometry, window));
    print_out("{}\n", dump_json(json));
    return;
  }
  print_out("{}: {} of {} copied\n", arguments.target, format_size(geometry.size_bytes() - bytes),
            format_size(geometry.size_bytes()));
  for (std::size_t i = 0; i < std::min(filled.size(), kShownWindows); ++i)
    print_out("filled with {}: {}\n", arguments.fill, geometry::to_spec(geometry, filled[i]));
  if (filled.size() > kShownWindows) print_out("and {} more: --json lists them\n", filled.size() - kShownWindows);
}

Status salvage(const SalvageArguments& arguments) {
  MDFS_TRY_ASSIGN(const mdfs_ioc_volume volume, volume_info(arguments.source));
  if ((volume.flags & MDFS_VOLUME_ZEROES_LOST) != 0)
    return {Errc::kInvalidArgument,
            arguments.source +
                ": the volume is mounted with errors=zero, which returns zeros for unreadable data; mount it without"};
  MDFS_TRY_ASSIGN(const Image image, open_image(arguments.source, O_RDONLY));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry info, image_info(*image, arguments.source));
  MDFS_TRY_ASSIGN(const Geometry geometry, client::to_geometry(info));
  MDFS_TRY_ASSIGN(ByteVector element, element_of(geometry.type, arguments.fill));
  MDFS_TRY_ASSIGN(const std::unique_ptr<Target> target, create_target(arguments, geometry));
  Salvage from(*image, geometry, std::move(element));
  Progress progress("salvaging", geometry.size_bytes(), !arguments.json);
  AlignedBuffer buffer(static_cast<std::size_t>(std::min(kPartBytes, geometry.size_bytes()) + geometry.sample_bytes()));
  const auto copy = [&](const Window& part) -> Status {
    const MutableBytes bytes = buffer.bytes().first(geometry::window_bytes(geometry, part));
    MDFS_TRY(from.read(part, bytes));
    MDFS_TRY(target->write(part, bytes));
    progress.add(bytes.size());
    return {};
  };
  if (geometry.size_bytes() > 0) MDFS_TRY(for_each_part(geometry, geometry::whole(geometry), kPartBytes, copy));
  MDFS_TRY(target->finish());
  progress.finish();
  print_result(arguments, geometry, from.filled());
  if (from.filled().empty()) return {};
  return {Errc::kBadData, fmt::format("{}: {} window{} could not be read", arguments.source, from.filled().size(),
                                      from.filled().size() == 1 ? "" : "s")};
}

}  // namespace

void add_salvage_command(CLI::App& noun, Action& action) {
  const auto arguments = std::make_shared<SalvageArguments>();
  CLI::App* command = noun.add_subcommand("salvage", "Copy the readable part of an image, and fill the rest");
  command->add_option("--fill", arguments->fill, "Value of samples that cannot be read (default 0)");
  command->add_flag("--force", arguments->force, "Replace an existing file");
  command->add_flag("--json", arguments->json, "Print the filled windows as JSON");
  command->add_option("SRC", arguments->source, "Image on the mounted volume")->required();
  command->add_option("DST", arguments->target, "Image on a volume, or image file: .npy, .tif and so on")->required();
  command->callback([arguments, &action] { action = [arguments] { return salvage(*arguments); }; });
}

}  // namespace mdfs::tools
