// Numbers and sizes as people write them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs {

// A decimal number without sign; the error calls it `what`.
Result<std::uint64_t> parse_number(std::string_view text, std::string_view what);

// "4096", "64K", "1.5G", "2TiB": K, M, G, T, P are powers of 1024, with or without B or iB. The result is whole bytes.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view what);

// "1.5 MiB", "17 GiB", "512 bytes": at most three significant digits.
std::string format_size(std::uint64_t bytes);

// "2048x3072"
std::string format_shape(const std::vector<std::uint64_t>& lengths);

// Without their newlines; a last line may lack its own.
std::vector<std::string> lines_of(std::string_view text);

// The character at the front of `text`, which is taken off; nothing is taken where that is no UTF-8, or at the end.
std::optional<char32_t> take_character(std::string_view& text);

// Valid UTF-8 without control characters.
bool is_one_line(std::string_view text);

// For one line of a message: control characters as \n or \x1b, all else as it is.
std::string printable(std::string_view text);

// For the text or an attribute of an XML document: printable, and bytes that are no UTF-8 become question marks.
std::string xml_text(std::string_view text);

}  // namespace mdfs
