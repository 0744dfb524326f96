// Blocks of metadata are cut into parts that fit an extended attribute.
// SPDX-License-Identifier: Apache-2.0
#include "metadata_attributes.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/text.h"

namespace mdfs::tools {
namespace {

constexpr std::string_view kPrefix = "user.mdfs.meta.";
constexpr std::size_t kAttributeBytes = 65536;  // XATTR_SIZE_MAX
constexpr std::size_t kNamesBytes = 65536;      // XATTR_LIST_MAX
constexpr std::size_t kMostParts = 1024;        // of a block

std::string part_name(std::string_view block, std::size_t part) {
  return part == 0 ? fmt::format("{}{}", kPrefix, block) : fmt::format("{}{}.{}", kPrefix, block, part);
}

// Nothing: there is no such part.
Result<std::optional<std::string>> load_part(const std::string& path, const std::string& name) {
  std::string value(kAttributeBytes, '\0');
  const ssize_t bytes = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
  if (bytes < 0 && errno == ENODATA) return std::optional<std::string>();
  if (bytes < 0) return from_errno(errno, path + ": " + name);
  value.resize(static_cast<std::size_t>(bytes));
  return std::optional(std::move(value));
}

}  // namespace

Status store_metadata(const std::string& path, const std::string& name, const imagefile::Metadata& metadata) {
  for (const auto& [block, bytes] : metadata.blocks) {
    if (bytes.size() > kMostParts * kAttributeBytes)
      return {Errc::kTooBig, fmt::format("{}: {} of {}; at most {} are stored", name, imagefile::title_of_block(block),
                                         format_size(bytes.size()), format_size(kMostParts * kAttributeBytes))};
    for (std::size_t part = 0; part * kAttributeBytes < bytes.size(); ++part) {
      const std::string_view value = std::string_view(bytes).substr(part * kAttributeBytes, kAttributeBytes);
      if (::setxattr(path.c_str(), part_name(block, part).c_str(), value.data(), value.size(), 0) != 0)
        return from_errno(errno, fmt::format("{}: {}", name, imagefile::title_of_block(block)));
    }
  }
  return {};
}

Result<imagefile::Metadata> load_metadata(const std::string& path) {
  imagefile::Metadata metadata;
  std::string names(kNamesBytes, '\0');
  const ssize_t length = ::listxattr(path.c_str(), names.data(), names.size());
  if (length < 0 && errno == ENOTSUP) return metadata;
  if (length < 0) return from_errno(errno, path);
  names.resize(static_cast<std::size_t>(length));
  for (std::size_t at = 0; at < names.size();) {
    const std::string_view name(names.c_str() + at);
    at += name.size() + 1;
    if (!name.starts_with(kPrefix)) continue;
    const std::string block(name.substr(kPrefix.size()));
    if (block.empty() || block.find('.') != std::string::npos) continue;  // a further part
    std::string& bytes = metadata.blocks[block];
    for (std::size_t part = 0; part < kMostParts; ++part) {
      MDFS_TRY_ASSIGN(const std::optional<std::string> value, load_part(path, part_name(block, part)));
      if (!value) break;
      bytes += *value;
      if (value->size() < kAttributeBytes) break;
    }
  }
  return metadata;
}

}  // namespace mdfs::tools
