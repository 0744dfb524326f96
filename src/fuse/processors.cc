// Lists of processors, and the processors of a thread.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace mdfs::fuse {
namespace {

constexpr const char* kPossible = "/sys/devices/system/cpu/possible";

std::optional<unsigned> number_in(std::string_view text) {
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number >= kMaxProcessors) return std::nullopt;
  return number;
}

}  // namespace

Result<std::vector<unsigned>> parse_processors(std::string_view list) {
  std::vector<unsigned> numbers;
  const Error refused{Errc::kInvalidArgument, fmt::format("'{}' is no list of processors", list)};
  while (list.ends_with('\n')) list.remove_suffix(1);
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view range = list.substr(0, comma);
    if (more) list.remove_prefix(comma + 1);
    const std::size_t dash = range.find('-');
    const std::optional<unsigned> first = number_in(range.substr(0, dash));
    const std::optional<unsigned> last = dash == std::string_view::npos ? first : number_in(range.substr(dash + 1));
    if (!first || !last || *last < *first || (!numbers.empty() && *first <= numbers.back())) return refused;
    for (unsigned number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

Result<std::vector<unsigned>> possible_processors() {
  std::ifstream file(kPossible);
  std::string line;
  if (!std::getline(file, line)) return Error{Errc::kNotFound, kPossible};
  return parse_processors(line);
}

std::vector<unsigned> own_processors() {
  std::vector<unsigned> numbers;
  std::vector<cpu_set_t> set(kMaxProcessors / CPU_SETSIZE);
  const std::size_t bytes = set.size() * sizeof(cpu_set_t);
  if (sched_getaffinity(0, bytes, set.data()) != 0) return numbers;
  for (unsigned number = 0; number < kMaxProcessors; ++number)
    if (CPU_ISSET_S(number, bytes, set.data())) numbers.push_back(number);
  return numbers;
}

bool run_on(const std::vector<unsigned>& processors) {
  std::vector<cpu_set_t> set(kMaxProcessors / CPU_SETSIZE);
  const std::size_t bytes = set.size() * sizeof(cpu_set_t);
  for (const unsigned number : processors) CPU_SET_S(number, bytes, set.data());
  return sched_setaffinity(0, bytes, set.data()) == 0;
}

}  // namespace mdfs::fuse
