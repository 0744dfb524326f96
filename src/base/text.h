// Texts: numbers and sizes are parsed and printed, UTF-8 is checked, and messages are made safe for a terminal. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs {

// Parses a decimal number without sign. `what` names the field in the error: kUsage for other text, kOverflow beyond 64
// bits.
Result<std::uint64_t> parse_number(std::string_view text, std::string_view what);

// A number in its one spelling: decimal, without sign and leading zeros.
std::optional<std::uint64_t> parse_index(std::string_view text);

// Parses a size in bytes: "4096", "64K", "1.5G", "2TiB". K, M, G, T, P, E are powers of 1024, in either case, with or
// without B or iB. Errors as of parse_number(); a fraction of a byte is kUsage.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view what);

// "1.5 MiB", "17 GiB", "512 bytes": at most three significant digits.
std::string format_size(std::uint64_t bytes);

// "2048x3072", in the order of `lengths`.
std::string format_shape(const std::vector<std::uint64_t>& lengths);

// The lines of a text without their newlines. The last line may lack a newline.
std::vector<std::string> lines_of(std::string_view text);

// Takes the first character off `text`. Takes nothing at the end, or where the bytes are not UTF-8.
std::optional<char32_t> take_character(std::string_view& text);

// A character that a terminal obeys instead of showing it: C0, DEL, C1, line separators, and marks of direction.
bool is_control(char32_t code);

// True for valid UTF-8 without control characters.
bool is_one_line(std::string_view text);

// The text for one line of a message: control characters, and bytes that are not UTF-8, become \n or \x1b.
std::string printable(std::string_view text);

// The same for text of several lines: newlines and tabs stay.
std::string printable_lines(std::string_view text);

// Of a text longer than `bytes`, its two ends, with an ellipsis between them: errors begin with what failed and end
// with the cause. UTF-8 characters stay whole. `bytes` must be 16 or more.
std::string shortened(std::string_view text, std::size_t bytes);

// The same with the end only, for paths.
std::string shortened_start(std::string_view text, std::size_t bytes);
inline constexpr std::string_view kEllipsis = "\u2026";

// The text as one word of a command for a shell, unchanged where no character means something to it. What a terminal
// would obey, and bytes that are not UTF-8, are spelled out as bash, ksh and zsh understand: $'\x0a'.
std::string shell_word(std::string_view text);

// The text escaped for XML: printable, and characters that mean something to XML as entities.
std::string xml_text(std::string_view text);

}  // namespace mdfs
