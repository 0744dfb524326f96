// Reading TOML files.
// SPDX-License-Identifier: Apache-2.0
#include "model/toml_file.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "model/toml_ascii.h"

namespace mdfs::model {

Result<toml::table> parse_toml(std::string_view text, const std::string& where) {
  MDFS_TRY_ASSIGN(const std::string ascii, ascii_toml(text, where));
  toml::parse_result parsed = toml::parse(ascii);
  if (parsed) return std::move(parsed).table();
  return Error{Errc::kInvalidArgument,
               fmt::format("{}:{}: {}", where, parsed.error().source().begin.line, parsed.error().description())};
}

Result<std::string> read_toml(const std::string& path, std::size_t max_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return from_errno(errno, path);
  std::string text(max_bytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return from_errno(EIO, path);
  if (text.size() > max_bytes)
    return Error{Errc::kTooBig, fmt::format("{}: such a file holds at most {} bytes", path, max_bytes)};
  return text;
}

}  // namespace mdfs::model
