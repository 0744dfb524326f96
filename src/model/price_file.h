// The prices of machines, as a TOML file, for sizing:
//
//   currency = "EUR"
//   [[machine]]
//   name = "sata-shelf-10gbe"   # the name in the machine's file
//   base = 1800                 # without disks
//   disk = 160                  # each
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::model {

inline constexpr std::size_t kMaxPriceFileBytes = 1u << 20;
inline constexpr std::size_t kMaxPrices = 1024;
inline constexpr double kMaxPrice = 1e12;

struct Price {
  std::string machine;
  double base = 0;  // of the machine without disks, 0..kMaxPrice
  double disk = 0;  // of one disk, 0..kMaxPrice
  double of(unsigned disks) const { return base + disks * disk; }
};

struct Prices {
  std::string currency;
  std::vector<Price> machines;
  const Price* find(std::string_view machine) const;  // null: has no price
};

// Errors: "where:line: field: problem".
Result<Prices> parse_prices(std::string_view text, const std::string& where);
Result<Prices> read_prices(const std::string& path);

}  // namespace mdfs::model
