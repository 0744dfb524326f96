// Claims about price files.
// SPDX-License-Identifier: Apache-2.0
#include "model/price_file.h"

#include <gtest/gtest.h>

#include <string>

namespace mdfs::model {
namespace {

constexpr std::string_view kPrices = R"(currency = "EUR"
[[machine]]
name = "nvme"
base = 1500
disk = 99.5
[[machine]]
name = "shelf"
base = 0
disk = 160
)";

TEST(PriceFileTest, AMachineCostsItsBaseAndItsDisks) {
  const auto prices = parse_prices(kPrices, "p.toml");
  ASSERT_TRUE(prices.ok()) << prices.error().where;
  EXPECT_EQ(prices->currency, "EUR");
  ASSERT_NE(prices->find("nvme"), nullptr);
  EXPECT_DOUBLE_EQ(prices->find("nvme")->of(4), 1898);
  EXPECT_DOUBLE_EQ(prices->find("shelf")->of(1), 160);
  EXPECT_EQ(prices->find("tape"), nullptr);
}

TEST(PriceFileTest, ErrorsNameFileLineAndField) {
  const auto error_of = [](std::string_view what, std::string_view with) {
    std::string text(kPrices);
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    const auto prices = parse_prices(text.replace(at, what.size(), with), "p.toml");
    return prices.ok() ? std::string("was accepted") : prices.error().where;
  };
  EXPECT_EQ(error_of("base = 1500", "base = -1").rfind("p.toml:4: machine[0].base: ", 0), 0u);
  EXPECT_EQ(error_of("base = 1500", "base = 1e13").rfind("p.toml:4: machine[0].base: ", 0), 0u);
  EXPECT_EQ(error_of("disk = 99.5", "disk = nan").rfind("p.toml:5: machine[0].disk: ", 0), 0u);
  EXPECT_EQ(error_of("disk = 99.5", "disk = \"99\"").rfind("p.toml:5: machine[0].disk: ", 0), 0u);
  EXPECT_EQ(error_of("disk = 99.5\n", "").rfind("p.toml:2: machine[0].disk: ", 0), 0u);
  EXPECT_EQ(error_of("name = \"shelf\"", "name = \"nvme\"").rfind("p.toml:7: machine[1].name: ", 0), 0u);
  EXPECT_EQ(error_of("base = 0", "bsae = 0").rfind("p.toml:", 0), 0u);
  EXPECT_EQ(error_of("[[machine]]", "[[machine").rfind("p.toml:", 0), 0u);
  EXPECT_NE(parse_prices("", "p.toml").ok(), true) << "a file without prices has no use";
}

}  // namespace
}  // namespace mdfs::model
