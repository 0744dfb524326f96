// Reading profiles: TOML, every field known, every error with its line and what is allowed.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "base/text.h"
#include "meter/profile.h"
#include "model/quantity.h"
#include "model/toml_file.h"

namespace mdfs::meter {
namespace {

using model::TomlTable;

constexpr double kLeastRate = 0.001;  // transfers a second
constexpr double kMostGain = 10;

Result<std::uint64_t> size_from(const toml::node* node, const TomlTable& table, std::string_view key,
                                std::uint64_t most_bytes) {
  const std::string allowed =
      fmt::format("write a multiple of 4 KiB from 4 KiB to {}, such as \"1 MiB\"", format_size(most_bytes));
  if (!node->is_string()) return table.bad(node, key, "is no size; " + allowed);
  const auto bytes = model::parse_size_bytes(node->as_string()->get());
  if (!bytes.ok()) return table.bad(node, key, bytes.error().where + "; " + allowed);
  if (!(*bytes >= kAlignment && *bytes <= static_cast<double>(most_bytes)) || std::fmod(*bytes, kAlignment) != 0)
    return table.bad(node, key, fmt::format("\"{}\" is not allowed; {}", node->as_string()->get(), allowed));
  return static_cast<std::uint64_t>(*bytes);
}

Result<double> time_from(const toml::node* node, const TomlTable& table, std::string_view key) {
  const std::string allowed = fmt::format("write a time from 0 s to {:g} s, such as \"10 ms\"", kMostWaitS);
  if (!node->is_string()) return table.bad(node, key, "is no time; " + allowed);
  const auto seconds = model::parse_time_s(node->as_string()->get());
  if (!seconds.ok()) return table.bad(node, key, seconds.error().where + "; " + allowed);
  if (*seconds > kMostWaitS)
    return table.bad(node, key, fmt::format("\"{}\" is not allowed; {}", node->as_string()->get(), allowed));
  return *seconds;
}

// A text for both ends, or a list of two. `read` is called with each node.
template <typename T, typename Read>
Result<Between<T>> range_from(const toml::node* node, const TomlTable& table, std::string_view key, const Read& read) {
  Between<T> range;
  if (const toml::array* list = node->as_array(); list != nullptr) {
    if (list->size() != 2)
      return table.bad(node, key, "a list has the least and the most, such as [\"4 KiB\", \"1 MiB\"]");
    MDFS_TRY_ASSIGN(range.low, read(list->get(0)));
    MDFS_TRY_ASSIGN(range.high, read(list->get(1)));
    if (range.low > range.high)
      return table.bad(node, key, "the first of the list is the least and is not above the second");
    return range;
  }
  MDFS_TRY_ASSIGN(range.low, read(node));
  range.high = range.low;
  return range;
}

Result<Between<std::uint64_t>> sizes(TomlTable& table, std::string_view key, std::uint64_t most_bytes) {
  const toml::node* node = table.find(key);
  if (node == nullptr) return table.bad(node, key, "is missing");
  return range_from<std::uint64_t>(node, table, key,
                                   [&](const toml::node* one) { return size_from(one, table, key, most_bytes); });
}

// One of the words, by its number.
template <typename Word, std::size_t count>
Result<Word> word(TomlTable& table, std::string_view key, const std::array<Word, count>& words) {
  MDFS_TRY_ASSIGN(const std::string text, table.text(key, name_of(words.front())));
  std::string allowed;
  for (const Word one : words) {
    if (text == name_of(one)) return one;
    allowed += fmt::format("{}\"{}\"", allowed.empty() ? "" : ", ", name_of(one));
  }
  return table.bad(table.find(key), key, fmt::format("\"{}\" is not allowed; write one of {}", text, allowed));
}

Status read_files(TomlTable& table, Profile& profile) {
  MDFS_TRY_ASSIGN(profile.files, table.count("files", 1, kMostFiles, 1));
  const toml::node* file = table.find("file");
  if (file == nullptr) return table.bad(file, "file", "is missing: the size of one file");
  MDFS_TRY_ASSIGN(profile.file_bytes, size_from(file, table, "file", kMostFileBytes));
  MDFS_TRY_ASSIGN(profile.shared, table.flag("shared", false));
  MDFS_TRY_ASSIGN(profile.begin, word(table, "begin", std::array{Begin::kFull, Begin::kEmpty}));
  MDFS_TRY_ASSIGN(profile.open, word(table, "open", std::array{Open::kTransfer, Open::kClient}));
  MDFS_TRY_ASSIGN(profile.sync, word(table, "sync", std::array{Sync::kNone, Sync::kTransfer, Sync::kEnd}));
  return {};
}

Status read_requests(TomlTable& table, Profile& profile) {
  MDFS_TRY_ASSIGN(profile.transfer_bytes, sizes(table, "transfer", kMostTransferBytes));
  MDFS_TRY_ASSIGN(profile.block_bytes, sizes(table, "block", kMostBlockBytes));
  MDFS_TRY_ASSIGN(profile.writes, table.share("writes"));
  MDFS_TRY_ASSIGN(profile.random, table.share("random"));
  MDFS_TRY_ASSIGN(
      profile.order,
      word(table, "order", std::array{Order::kSequential, Order::kRandom, Order::kStrided, Order::kBackwards}));
  if (const toml::node* stride = table.find("stride"); stride != nullptr) {
    MDFS_TRY_ASSIGN(profile.stride_bytes, size_from(stride, table, "stride", kMostFileBytes));
    if (profile.order != Order::kStrided) return table.bad(stride, "stride", "needs order = \"strided\"");
    if (profile.stride_bytes < profile.transfer_bytes.high)
      return table.bad(stride, "stride",
                       fmt::format("is less than the largest transfer, {}", format_size(profile.transfer_bytes.high)));
  } else if (profile.order == Order::kStrided) {
    return table.bad(table.find("order"), "order", "\"strided\" needs the field stride");
  }
  if (profile.begin == Begin::kEmpty &&
      (profile.writes < 1 || profile.random > 0 || profile.order != Order::kSequential || profile.shared))
    return table.bad(table.find("begin"), "begin",
                     "\"empty\" needs writes = 1, random = 0, order = \"sequential\" and shared = false");
  return {};
}

Status read_times(TomlTable& table, Profile& profile) {
  const toml::node* think = table.find("think");
  if (think != nullptr) {
    const auto read = [&](const toml::node* one) { return time_from(one, table, "think"); };
    MDFS_TRY_ASSIGN(profile.think_s, range_from<double>(think, table, "think", read));
  }
  const toml::node* rate = table.find("rate");
  const toml::node* deadline = table.find("deadline");
  if (rate == nullptr) {
    return deadline == nullptr ? Status() : table.bad(deadline, "deadline", "needs the field rate");
  }
  if (think != nullptr) return table.bad(think, "think", "stands beside rate; a profile has one of them");
  MDFS_TRY_ASSIGN(profile.rate, table.number("rate", kLeastRate, kMostRate));
  profile.deadline_s = 1 / *profile.rate;
  if (deadline == nullptr) return {};
  MDFS_TRY_ASSIGN(profile.deadline_s, time_from(deadline, table, "deadline"));
  return profile.deadline_s > 0 ? Status() : table.bad(deadline, "deadline", "must be more than 0 s");
}

Status read_limits(const toml::table& toml, const std::string& where, Profile& profile) {
  TomlTable table(toml, where, "until");
  if (const toml::node* late = table.find("late"); late != nullptr) {
    MDFS_TRY_ASSIGN(profile.limits.late, table.share("late"));
    if (!profile.rate) return table.bad(late, "late", "needs the field rate, which gives transfers their deadlines");
  }
  if (const toml::node* p99 = table.find("p99"); p99 != nullptr) {
    MDFS_TRY_ASSIGN(profile.limits.p99_s, time_from(p99, table, "p99"));
  }
  if (table.find("gain") != nullptr) {
    MDFS_TRY_ASSIGN(profile.limits.gain, table.number("gain", 0, kMostGain));
  }
  return table.finish("the limits of a profile");
}

Result<Profile> parse(std::string_view text, const std::string& where) {
  MDFS_TRY_ASSIGN(const toml::table document, model::parse_toml(text, where));
  TomlTable table(document, where, "");
  Profile profile;
  MDFS_TRY_ASSIGN(profile.name, table.text("name"));
  if (profile.name.empty() || profile.name.size() > 64 || !is_one_line(profile.name))
    return table.bad(table.find("name"), "name", "a name is one line of 1 to 64 bytes");
  MDFS_TRY_ASSIGN(profile.description, table.text("description", ""));
  MDFS_TRY(read_files(table, profile));
  MDFS_TRY(read_requests(table, profile));
  MDFS_TRY(read_times(table, profile));
  if (const toml::node* until = table.find("until"); until != nullptr) {
    if (!until->is_table()) return table.bad(until, "until", "must be a table of late, p99 and gain");
    MDFS_TRY(read_limits(*until->as_table(), where, profile));
  }
  MDFS_TRY(table.finish("a profile"));
  return profile;
}

}  // namespace

Result<Profile> parse_profile(std::string_view text, const std::string& where) {
  Result<Profile> profile = parse(text, where);
  if (profile.ok()) return profile;
  return Error{profile.error().code, printable(profile.error().where)};  // what it quotes may be anything
}

Result<std::string> profile_text(const std::string& name_or_path) {
  std::string names;
  for (const BuiltIn& profile : built_in_profiles()) {
    if (profile.name == name_or_path) return std::string(profile.toml);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", profile.name);
  }
  auto text = model::read_toml(name_or_path, kMostProfileBytes);
  if (!text.ok() && text.error().code == Errc::kNotFound)
    return Error{Errc::kNotFound, fmt::format("{} is neither a profile ({}) nor a file; see mdfs-profile(5)",
                                              printable(name_or_path), names)};
  return text;
}

Result<Profile> find_profile(const std::string& name_or_path) {
  MDFS_TRY_ASSIGN(const std::string text, profile_text(name_or_path));
  return parse_profile(text, name_or_path);
}

}  // namespace mdfs::meter
