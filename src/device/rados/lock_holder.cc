// Processes and their cookies.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/lock_holder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace mdfs::device {
namespace {

constexpr std::string_view kCookieMagic = "mdfs1";
constexpr char kBetween = '|';

// Field 22 of /proc/PID/stat; nothing if there is no such process. The name, in parentheses, may hold anything.
std::optional<std::uint64_t> start_of(std::uint64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field, state;
  constexpr int kFieldsBehindName = 20;
  for (int i = 0; i < kFieldsBehindName && fields >> field; ++i)
    if (i == 0) state = field;
  std::uint64_t start = 0;
  if (!fields || state == "Z" || state == "X") return std::nullopt;
  if (std::from_chars(field.data(), field.data() + field.size(), start).ec != std::errc()) return std::nullopt;
  return start;
}

std::string plain(std::string text) {
  for (char& c : text)
    if (c == kBetween || c <= ' ' || c > '~') c = '_';
  return text;
}

}  // namespace

LockHolder LockHolder::self(std::string token) {
  LockHolder holder;
  utsname names{};
  holder.host = ::uname(&names) == 0 ? plain(names.nodename) : "unknown";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> holder.boot;
  holder.boot = plain(holder.boot);
  struct stat st {};
  if (::stat("/proc/self/ns/pid", &st) == 0) holder.process_space = st.st_ino;
  holder.process = static_cast<std::uint64_t>(::getpid());
  holder.start = start_of(holder.process).value_or(0);
  holder.token = std::move(token);
  return holder;
}

std::string LockHolder::cookie() const {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", kCookieMagic, host, boot, process_space, process, start, token);
}

std::optional<LockHolder> LockHolder::parse(std::string_view cookie) {
  std::vector<std::string> fields;
  for (;;) {
    const std::size_t end = std::min(cookie.find(kBetween), cookie.size());
    fields.emplace_back(cookie.substr(0, end));
    if (end == cookie.size()) break;
    cookie.remove_prefix(end + 1);
  }
  if (fields.size() != 7 || fields[0] != kCookieMagic) return std::nullopt;
  const auto number = [](const std::string& text, std::uint64_t& value) {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && stop == text.data() + text.size();
  };
  LockHolder holder;
  holder.host = fields[1];
  holder.boot = fields[2];
  holder.token = fields[6];
  if (!number(fields[3], holder.process_space) || !number(fields[4], holder.process) ||
      !number(fields[5], holder.start))
    return std::nullopt;
  return holder;
}

std::string LockHolder::text() const { return fmt::format("host {}, process {}", host, process); }

bool is_dead(const LockHolder& other, const LockHolder& here) {
  if (other.boot.empty() || other.boot != here.boot || other.process_space == 0 ||
      other.process_space != here.process_space || other.start == 0)
    return false;
  const std::optional<std::uint64_t> start = start_of(other.process);
  if (start) return *start != other.start;
  return start_of(1).has_value();  // else this user may not see the processes of others
}

}  // namespace mdfs::device
