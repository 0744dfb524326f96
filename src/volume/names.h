// Which names files may have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "volume/volume.h"

namespace mdfs::volume {

// A name that may be looked for: kNotFound if empty, kNameTooLong beyond 255 bytes, kInvalidArgument with a slash or
// a NUL.
Status check_name(std::string_view name);
// A name that may be given: besides, kExists for "." and "..", kInvalidArgument for reserved names.
Status check_new_name(Ino parent, std::string_view name);
// A name that may be taken away: besides, kInvalidArgument for "." and kNotEmpty for "..".
Status check_old_name(std::string_view name);

}  // namespace mdfs::volume
