// Blocks of metadata are cut into parts that fit an extended attribute.
// SPDX-License-Identifier: Apache-2.0
#include "metadata_attributes.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/text.h"
#include "views/metadata_blocks.h"

namespace mdfs::tools {
namespace {

using views::kMetadataPartBytes;
using views::kMetadataPrefix;
using views::metadata_attribute;

constexpr std::size_t kNamesBytes = 65536;  // XATTR_LIST_MAX
constexpr std::size_t kMostParts = 1024;    // of a block

// Nothing: there is no such part.
Result<std::optional<std::string>> load_part(const std::string& path, const std::string& name) {
  std::string value(kMetadataPartBytes, '\0');
  const ssize_t bytes = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
  if (bytes < 0 && errno == ENODATA) return std::optional<std::string>();
  if (bytes < 0) return from_errno(errno, path + ": " + name);
  value.resize(static_cast<std::size_t>(bytes));
  return std::optional(std::move(value));
}

}  // namespace

Status store_metadata(const std::string& path, const std::string& name, const imagefile::Metadata& metadata) {
  for (const auto& [block, bytes] : metadata.blocks) {
    if (bytes.size() > kMostParts * kMetadataPartBytes)
      return {Errc::kTooBig, fmt::format("{}: {} of {}; at most {} are stored", name, imagefile::title_of_block(block),
                                         format_size(bytes.size()), format_size(kMostParts * kMetadataPartBytes))};
    for (std::size_t part = 0; part * kMetadataPartBytes < bytes.size(); ++part) {
      const std::string_view value = std::string_view(bytes).substr(part * kMetadataPartBytes, kMetadataPartBytes);
      if (::setxattr(path.c_str(), metadata_attribute(block, part).c_str(), value.data(), value.size(), 0) != 0)
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
    if (!name.starts_with(kMetadataPrefix)) continue;
    const std::string block(name.substr(kMetadataPrefix.size()));
    if (block.empty() || block.find('.') != std::string::npos) continue;  // a further part
    std::string& bytes = metadata.blocks[block];
    for (std::size_t part = 0; part < kMostParts; ++part) {
      MDFS_TRY_ASSIGN(const std::optional<std::string> value, load_part(path, metadata_attribute(block, part)));
      if (!value) break;
      bytes += *value;
      if (value->size() < kMetadataPartBytes) break;
    }
  }
  return metadata;
}

}  // namespace mdfs::tools
