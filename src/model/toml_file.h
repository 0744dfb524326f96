// Fields of TOML files: every field known, every error with its line. Include it from sources, never from
// headers: the library's header is large.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// toml++ 3.3 asserts of a file what its next lines check and report, such as "[=": a bad file must not end the program.
// With NDEBUG it would even assume it.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::model {

// The document of a file. Errors (kInvalidArgument): "where:line: problem".
Result<toml::table> parse_toml(std::string_view text, const std::string& where);
// The text of a file of at most max_bytes.
Result<std::string> read_toml(const std::string& path, std::size_t max_bytes);

// One table of a file, its place in messages ("where:line: path.key: problem"), and the keys that were asked for. One
// thread.
class TomlTable {
 public:
  TomlTable(const toml::table& table, std::string where, std::string path)
      : table_(table), where_(std::move(where)), path_(std::move(path)) {}

  Error bad(const toml::node* node, std::string_view key, std::string_view why) const {
    const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
    const std::string field = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    return {Errc::kInvalidArgument, fmt::format("{}:{}: {}: {}", where_, line, field, why)};
  }

  const toml::node* find(std::string_view key) {
    known_.emplace_back(key);
    return table_.get(key);
  }

  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = std::nullopt) {
    const toml::node* node = find(key);
    if (node == nullptr && fallback) return *fallback;
    if (node == nullptr) return bad(node, key, "is missing");
    if (!node->is_string()) return bad(node, key, "must be a text in quotes");
    return node->as_string()->get();
  }

  Result<unsigned> count(std::string_view key, unsigned low, unsigned high, std::optional<unsigned> fallback) {
    const toml::node* node = find(key);
    if (node == nullptr && fallback) return *fallback;
    if (node == nullptr) return bad(node, key, "is missing");
    return whole_number(node, key, low, high);
  }

  Result<unsigned> whole_number(const toml::node* node, std::string_view key, unsigned low, unsigned high) const {
    if (!node->is_integer()) return bad(node, key, "must be a whole number");
    const std::int64_t number = node->as_integer()->get();
    if (number < low || number > high) return bad(node, key, fmt::format("{} is not in {}..{}", number, low, high));
    return static_cast<unsigned>(number);
  }

  // A quantity with its unit, by one of the parse_ functions.
  Result<double> quantity(std::string_view key, Result<double> (*parse)(std::string_view)) {
    const toml::node* node = find(key);
    if (node == nullptr) return bad(node, key, "is missing");
    if (node->is_number()) return bad(node, key, "a number without a unit (write \"10 ms\", \"64 KiB\", \"75 MB/s\")");
    if (!node->is_string()) return bad(node, key, "must be a quantity with its unit, in quotes");
    auto value = parse(node->as_string()->get());
    if (!value.ok()) return bad(node, key, value.error().where);
    return value;
  }

  Result<bool> flag(std::string_view key, bool fallback) {
    const toml::node* node = find(key);
    if (node == nullptr) return fallback;
    if (!node->is_boolean()) return bad(node, key, "must be true or false");
    return node->as_boolean()->get();
  }

  // A number from 0 to 1; 0 if it is not there.
  Result<double> share(std::string_view key) {
    const toml::node* node = find(key);
    if (node == nullptr) return 0.0;
    if (!node->is_number()) return bad(node, key, "must be a number from 0 to 1");
    const double number = node->value<double>().value_or(-1);
    if (!(number >= 0 && number <= 1)) return bad(node, key, "is not in 0..1");
    return number;
  }

  // A number in low..high.
  Result<double> number(std::string_view key, double low, double high) {
    const toml::node* node = find(key);
    if (node == nullptr) return bad(node, key, "is missing");
    if (!node->is_number()) return bad(node, key, "must be a number");
    const double value = node->value<double>().value_or(low - 1);
    if (!(value >= low && value <= high)) return bad(node, key, fmt::format("is not in {:g}..{:g}", low, high));
    return value;
  }

  // The tables [[key]], one to `limit` of them, each through `read` (Status of a table).
  template <typename Read>
  Status each(std::string_view of, std::string_view key, std::size_t limit, Read read) {
    const toml::node* node = find(key);
    if (node == nullptr || !node->is_array_of_tables())
      return bad(node, key, fmt::format("{} has one [[{}]] or more", of, key));
    const toml::array& list = *node->as_array();
    if (list.size() > limit)
      return bad(node, key, fmt::format("there are {}, at most {} are read", list.size(), limit));
    for (const toml::node& item : list) MDFS_TRY(read(*item.as_table()));
    return {};
  }

  // After all fields were asked for: what else stands there? `of`: "a machine".
  Status finish(std::string_view of) const {
    for (const auto& [key, node] : table_)
      if (std::find(known_.begin(), known_.end(), key.str()) == known_.end())
        return bad(&node, key.str(), fmt::format("is not a field of {}", of));
    return {};
  }

  const std::string& where() const { return where_; }

 private:
  const toml::table& table_;
  std::string where_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace mdfs::model
