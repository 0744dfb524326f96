// Reading price files.
// SPDX-License-Identifier: Apache-2.0
#include "model/price_file.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/toml_file.h"

namespace mdfs::model {
namespace {

Status read_price(const toml::table& toml, const std::string& where, Prices& prices) {
  TomlTable table(toml, where, fmt::format("machine[{}]", prices.machines.size()));
  Price price;
  MDFS_TRY_ASSIGN(price.machine, table.text("name"));
  if (prices.find(price.machine) != nullptr) return table.bad(table.find("name"), "name", "has a price already");
  MDFS_TRY_ASSIGN(price.base, table.number("base", 0, kMaxPrice));
  MDFS_TRY_ASSIGN(price.disk, table.number("disk", 0, kMaxPrice));
  MDFS_TRY(table.finish("a price"));
  prices.machines.push_back(std::move(price));
  return {};
}

Result<Prices> prices_of(std::string_view text, const std::string& where) {
  MDFS_TRY_ASSIGN(const toml::table document, parse_toml(text, where));
  TomlTable table(document, where, "");
  Prices prices;
  MDFS_TRY_ASSIGN(prices.currency, table.text("currency", ""));
  MDFS_TRY(table.each("a price file", "machine", kMaxPrices,
                      [&](const toml::table& item) { return read_price(item, where, prices); }));
  MDFS_TRY(table.finish("a price file"));
  return prices;
}

}  // namespace

const Price* Prices::find(std::string_view machine) const {
  for (const Price& price : machines)
    if (price.machine == machine) return &price;
  return nullptr;
}

Result<Prices> parse_prices(std::string_view text, const std::string& where) {
  Result<Prices> prices = prices_of(text, where);
  if (prices.ok()) return prices;
  return Error{prices.error().code, printable(prices.error().where)};  // what it quotes may be anything
}

Result<Prices> read_prices(const std::string& path) {
  MDFS_TRY_ASSIGN(const std::string text, read_toml(path, kMaxPriceFileBytes));
  return parse_prices(text, path);
}

}  // namespace mdfs::model
