// Heads of requests and answers.
// SPDX-License-Identifier: Apache-2.0
#include "serve/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "serve/web_text.h"

namespace mdfs::serve {
namespace {

constexpr std::array<std::string_view, 9> kMethods = {"GET",    "HEAD",    "OPTIONS", "PUT",  "POST",
                                                      "DELETE", "CONNECT", "TRACE",   "PATCH"};

struct Field {
  std::string_view name, value;
};

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_authority(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
  });
}

// Lines end with CR LF, or with LF alone (RFC 9112, 2.2). Removes the line from the text.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Empty where the head is malformed.
std::optional<std::vector<Field>> parse_fields(std::string_view text) {
  std::vector<Field> fields;
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return {};
    if (std::any_of(line.begin(), line.end(), [](char c) { return c == '\r' || c == '\0'; })) return {};
    fields.push_back({line.substr(0, colon), trimmed(line.substr(colon + 1))});
  }
  return fields;
}

std::vector<std::string_view> values_of(const std::vector<Field>& fields, std::string_view name) {
  std::vector<std::string_view> values;
  for (const Field& field : fields)
    if (same_letters(field.name, name)) values.push_back(field.value);
  return values;
}

bool names(const std::vector<std::string_view>& lists, std::string_view wanted) {
  for (std::string_view list : lists)
    while (!list.empty())
      if (same_letters(take_item(list), wanted)) return true;
  return false;
}

// Puts a target into origin form ("*" stays), and the authority of one in absolute form into `host`.
bool to_origin_form(std::string_view method, std::string& target, std::string& host) {
  if (method == "CONNECT") target = "/";  // an authority; refused for its method
  if (target.starts_with('/')) return true;
  if (target == "*") return method == "OPTIONS";
  const std::size_t scheme = target.find("://");
  if (scheme == std::string::npos) return false;
  const std::string_view name = std::string_view(target).substr(0, scheme);
  if (!same_letters(name, "http") && !same_letters(name, "https")) return false;
  const std::size_t begin = scheme + 3, end = std::min(target.find_first_of("/?#", begin), target.size());
  host = target.substr(begin, end - begin);
  target.erase(0, end);
  if (!target.starts_with('/')) target.insert(0, "/");
  return !host.empty() && is_authority(host);
}

// Nothing if the lengths are none, or not one.
std::optional<std::uint64_t> body_length(const std::vector<std::string_view>& lengths) {
  std::optional<std::uint64_t> found;
  for (const std::string_view length : lengths) {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(length.data(), length.data() + length.size(), value);
    if (failure != std::errc{} || end != length.data() + length.size() || found.value_or(value) != value) return {};
    found = value;
  }
  return found.value_or(0);
}

std::string_view phrase_of(int status) {
  switch (status) {
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

RequestHead refused(int status) {
  RequestHead head;
  head.refused = status;
  return head;
}

}  // namespace

std::size_t head_bytes(std::string_view input) {
  for (std::size_t at = input.find('\n'); at != std::string_view::npos; at = input.find('\n', at + 1)) {
    const std::string_view rest = input.substr(at + 1);
    if (rest.starts_with('\n')) return at + 2;
    if (rest.starts_with("\r\n")) return at + 3;
  }
  return 0;
}

int refuse_unfinished(std::string_view input) {
  if (input.find('\n') == std::string_view::npos) return input.size() > kMaxLineBytes + 64 ? 414 : 0;
  return input.size() > kMaxHeadBytes ? 431 : 0;
}

RequestHead parse_head(std::string_view text) {
  if (text.size() > kMaxHeadBytes + kMaxLineBytes) return refused(431);
  const std::string_view line = take_line(text);
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refused(400);
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  std::string target(line.substr(first + 1, last - first - 1)), host;
  if (!is_token(method) || version.size() != 8 || !version.starts_with("HTTP/") || version[6] != '.')
    return refused(400);
  if (version[5] != '1') return refused(505);
  if (target.size() > kMaxLineBytes) return refused(414);
  // Blanks and control characters are never part of a target.
  if (target.empty() ||
      std::any_of(target.begin(), target.end(), [](char c) { return (c >= 0 && c <= 32) || c == 127; }))
    return refused(400);
  if (std::find(kMethods.begin(), kMethods.end(), method) == kMethods.end()) return refused(501);
  if (!to_origin_form(method, target, host)) return refused(400);

  const std::optional<std::vector<Field>> fields = parse_fields(text);
  if (!fields) return refused(400);
  for (const Field& field : *fields)
    if (field.name.size() + field.value.size() > kMaxLineBytes) return refused(431);
  const bool is_old = version == "HTTP/1.0";
  const auto hosts = values_of(*fields, "Host");
  if (hosts.size() > 1 || (hosts.empty() && !is_old) || (!hosts.empty() && !is_authority(hosts[0])))
    return refused(400);
  if (host.empty() && !hosts.empty()) host = hosts[0];

  RequestHead head;
  const bool has_coding = !values_of(*fields, "Transfer-Encoding").empty();
  const auto lengths = values_of(*fields, "Content-Length");
  const auto length = body_length(lengths);
  // Two lengths are how one request is hidden in another.
  if (!length || (has_coding && !lengths.empty())) return refused(400);
  head.body_bytes = *length;
  // A client that waits for 100 (Continue) may send its body, or not.
  const bool waits = *length > 0 && !values_of(*fields, "Expect").empty();
  head.is_last = is_old || has_coding || waits || names(values_of(*fields, "Connection"), "close");
  // A Range counts for GET alone. One that is malformed or has several parts is ignored (RFC 9110, 14.2).
  const auto ranges = values_of(*fields, "Range");
  if (method == "GET" && ranges.size() == 1) head.range = std::string(ranges[0]);

  head.text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host);
  for (const std::string_view name :
       {"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "X-Forwarded-Proto"}) {
    const auto values = values_of(*fields, name);
    if (!values.empty()) head.text += fmt::format("{}: {}\r\n", name, fmt::join(values, ", "));
  }
  const auto codings = values_of(*fields, "Accept-Encoding");
  if (allows_gzip(fmt::format("{}", fmt::join(codings, ",")))) head.text += "Accept-Encoding: gzip\r\n";
  head.text += "\r\n";
  return head;
}

bool allows_gzip(std::string_view field) {
  bool named = false, allowed = false, by_star = false;
  while (!field.empty()) {
    std::string_view item = take_item(field);
    const std::size_t semicolon = std::min(item.find(';'), item.size());
    const std::string_view coding = trimmed(item.substr(0, semicolon));
    const std::string_view weight = trimmed(item.substr(std::min(item.size(), semicolon + 1)));
    const bool wanted = weight.find_first_of("123456789") != std::string_view::npos || weight.empty();
    if (same_letters(coding, "gzip") || same_letters(coding, "x-gzip")) {
      named = true;
      allowed = wanted;
    } else if (coding == "*") {
      by_star = wanted;
    }
  }
  return named ? allowed : by_star;
}

std::string completed_answer(std::string_view head, std::string_view date) {
  const std::string_view status = take_line(head);
  std::string answer = fmt::format("{}\r\nDate: {}\r\n", status, date);
  // These have no body; a length of 0 would be that of the file (RFC 9110, 8.6).
  const bool is_bare = status.starts_with("HTTP/1.1 304") || status.starts_with("HTTP/1.1 204");
  for (std::string_view line = take_line(head); !line.empty(); line = take_line(head))
    if (!is_bare || !same_letters(line.substr(0, line.find(':')), "Content-Length"))
      answer += fmt::format("{}\r\n", line);
  return answer + "\r\n";
}

std::string refusal(int status, bool with_body, std::string_view date) {
  const std::string_view phrase = phrase_of(status);
  return fmt::format(
      "HTTP/1.1 {0} {1}\r\nDate: {2}\r\nAccess-Control-Allow-Origin: *\r\nConnection: close\r\n"
      "Content-Type: text/plain; charset=utf-8\r\nContent-Length: {3}\r\n\r\n{4}{5}",
      status, phrase, date, phrase.size() + 1, with_body ? phrase : "", with_body ? "\n" : "");
}

}  // namespace mdfs::serve
