// SPDX-License-Identifier: Apache-2.0
#include "imagefile/picture_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "support/json_output.h"

namespace mdfs::imagefile {
namespace {

using Json = nlohmann::ordered_json;
using OIIO::TypeDesc;

constexpr int kMostValues = 4096;  // of a field

// How the samples lie in that file, or what the library says of itself: true of no other file.
bool is_kept(std::string_view name) {
  constexpr std::array<std::string_view, 15> kLeftOut = {"ICCProfile",           "Software",
                                                         "compression",          "CompressionQuality",
                                                         "XResolution",          "YResolution",
                                                         "ResolutionUnit",       "preview",
                                                         "textureformat",        "wrapmodes",
                                                         "dpx:ImageDescriptor",  "dpx:Packing",
                                                         "dpx:EndOfLinePadding", "dpx:EndOfImagePadding",
                                                         "dpx:Version"};
  constexpr std::array<std::string_view, 4> kPrefixes = {"oiio:", "ICCProfile:", "openexr:", "Exif:ImageHistory"};
  return std::find(kLeftOut.begin(), kLeftOut.end(), name) == kLeftOut.end() &&
         std::none_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

// Calls `visit` with a number of the type's base; false: another type.
template <typename Visit>
bool with_base(TypeDesc type, const Visit& visit) {
  switch (type.basetype) {
    case TypeDesc::INT32:
      return visit(std::int32_t{});
    case TypeDesc::UINT32:
      return visit(std::uint32_t{});
    case TypeDesc::INT16:
      return visit(std::int16_t{});
    case TypeDesc::UINT16:
      return visit(std::uint16_t{});
    case TypeDesc::FLOAT:
      return visit(float{});
    case TypeDesc::DOUBLE:
      return visit(double{});
    default:
      return false;
  }
}

std::optional<Json> values_of(const OIIO::ParamValue& field) {
  const TypeDesc type = field.type();
  if (type == OIIO::TypeString) return Json::array({field.get_string()});
  const int count = static_cast<int>(type.basevalues());
  if (count < 1 || count > kMostValues || field.nvalues() != 1) return std::nullopt;
  Json values = Json::array();
  const bool known = with_base(type, [&](auto one) {
    for (int i = 0; i < count; ++i) {
      std::memcpy(&one, static_cast<const char*>(field.data()) + static_cast<std::size_t>(i) * sizeof one, sizeof one);
      values.push_back(one);
    }
    return true;
  });
  return known ? std::optional(std::move(values)) : std::nullopt;
}

void put_field(const std::string& name, const Json& field, OIIO::ImageSpec& spec) {
  const Json& values = field.at("values");
  const TypeDesc type(field.at("type").get<std::string>());
  if (type == OIIO::TypeString) return spec.attribute(name, values.at(0).get<std::string>());
  if (values.size() > kMostValues || type.basevalues() != values.size()) return;
  with_base(type, [&](auto one) {
    std::vector<decltype(one)> numbers;
    for (const Json& value : values) numbers.push_back(value.get<decltype(one)>());
    spec.attribute(name, type, numbers.data());
    return true;
  });
}

}  // namespace

bool has_header(std::string_view format) { return format == "dpx" || format == "cineon" || format == "openexr"; }

std::string header_of(std::string_view format, const OIIO::ImageSpec& spec) {
  Json header = Json::object();
  Json fields = Json::object();
  for (const OIIO::ParamValue& field : spec.extra_attribs) {
    const std::string name = field.name().string();
    if (!is_kept(name)) continue;
    if (auto values = values_of(field))
      fields[name] = {{"type", std::string(field.type().c_str())}, {"values", *std::move(values)}};
  }
  if (!fields.empty()) header["fields"] = std::move(fields);
  OIIO::ImageSpec plain(spec.width, spec.height, spec.nchannels, spec.format);
  if (spec.channelnames != plain.channelnames) header["channels"] = spec.channelnames;
  const std::array data = {spec.x, spec.y, spec.width, spec.height};
  const std::array display = {spec.full_x, spec.full_y, spec.full_width, spec.full_height};
  if (data != display || spec.x != 0 || spec.y != 0) {
    header["data"] = data;
    header["display"] = display;
  }
  if (header.empty()) return "";
  header["format"] = std::string(format);
  return tools::dump_json(header, -1);
}

void put_header(const std::string& text, OIIO::ImageSpec& spec) {
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) return;
  try {
    if (header.contains("channels")) {
      auto names = header["channels"].get<std::vector<std::string>>();
      if (names.size() == spec.channelnames.size()) spec.channelnames = std::move(names);
    }
    if (header.contains("data") && header.contains("display")) {
      const auto data = header["data"].get<std::array<int, 4>>(), display = header["display"].get<std::array<int, 4>>();
      if (data[2] == spec.width && data[3] == spec.height && display[2] > 0 && display[3] > 0) {
        spec.x = data[0];
        spec.y = data[1];
        spec.full_x = display[0];
        spec.full_y = display[1];
        spec.full_width = display[2];
        spec.full_height = display[3];
      }
    }
    if (header.contains("fields"))
      for (const auto& [name, field] : header["fields"].items()) put_field(name, field, spec);
  } catch (const Json::exception&) {  // written by another program
  }
}

}  // namespace mdfs::imagefile
