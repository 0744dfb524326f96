// The heads of requests and answers (RFC 9112), in front of the library, which is lax about them; pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mdfs::serve {

inline constexpr std::size_t kMaxLineBytes = 8000;  // of a target, or of a field; the library takes 8192
inline constexpr std::size_t kMaxHeadBytes = 32 << 10;

// How many bytes up to the end of a head, which is an empty line; 0 if the end is not there.
std::size_t head_bytes(std::string_view input);
// The status that refuses a head of which the end is not there; 0: more may come.
int refuse_unfinished(std::string_view input);

struct RequestHead {
  int refused = 0;                   // a status; nothing else counts then
  bool is_last = false;              // the connection ends after the answer
  std::uint64_t body_bytes = 0;      // that follow, unless is_last
  std::optional<std::string> range;  // the field, if it counts
  // The same request as the library understands it: in origin form, without the fields that are decided here.
  std::string text;
};
// `text`: with the empty line at its end.
RequestHead parse_head(std::string_view text);

// A field Accept-Encoding that allows gzip.
bool allows_gzip(std::string_view field);

// The head of an answer as it must be sent: with a Date, and without a length where there is no body by definition.
std::string completed_answer(std::string_view head, std::string_view date);
// An answer that ends the connection.
std::string refusal(int status, bool with_body, std::string_view date);

}  // namespace mdfs::serve
