// Which names files may have.
// SPDX-License-Identifier: Apache-2.0
#include "volume/names.h"

#include "mdfs/ondisk.h"

namespace mdfs::volume {

bool is_reserved_name(Ino parent, std::string_view name) {
  return name.ends_with('@') || (parent == kRootIno && name == ".mdfs");
}

Status check_name(std::string_view name) {
  if (name.empty()) return Error{Errc::kNotFound, "an empty name"};
  if (name.size() > MDFS_MAX_NAME) return Error{Errc::kNameTooLong, "names have at most 255 bytes"};
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos)
    return Error{Errc::kInvalidArgument, "a name must not contain a slash or NUL"};
  return {};
}

Status check_new_name(Ino parent, std::string_view name) {
  MDFS_TRY(check_name(name));
  if (name == "." || name == "..") return Error{Errc::kExists, std::string(name)};
  if (is_reserved_name(parent, name)) return Error{Errc::kInvalidArgument, "reserved name: " + std::string(name)};
  return {};
}

Status check_old_name(std::string_view name) {
  MDFS_TRY(check_name(name));
  if (name == ".") return Error{Errc::kInvalidArgument, "."};
  if (name == "..") return Error{Errc::kNotEmpty, ".."};
  return {};
}

}  // namespace mdfs::volume
