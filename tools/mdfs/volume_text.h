// Parts of a volume's state in words and as JSON, for the commands that show them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "mdfs/ioctl.h"

namespace mdfs::tools {

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

std::string state_name(std::uint32_t state);
std::string uuid_text(const std::uint8_t (&octets)[16]);
// One disk of the volume; `number` is below disk_count.
nlohmann::ordered_json disk_json(std::uint32_t number, const mdfs_ioc_volume& volume);

}  // namespace mdfs::tools
