// Standard input, output and error of a program: never a disk, and no end of the program when they cannot be written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"

namespace mdfs::tools {

// The status of a program that has done its work, but could not write its standard output.
inline constexpr int kOutputStatus = 5;

// The first call of every main(): a closed descriptor 0, 1 or 2 becomes one of /dev/null that fails to read or write.
// Otherwise the next file would get its number, and a message would go into a disk. A write beyond the limit on file
// sizes (ulimit -f) fails with EFBIG, to any file; by default a signal would end the program.
void open_standard_streams();

// A failed write is kept for finish_output().
void write_output(std::string_view text);
// The first error of standard output, once all of it has left the program.
Status finish_output();
// Comes behind what was printed before, also where both streams are one. Drops what cannot be written.
void write_error(std::string_view text);

// Print lines to standard output and to standard error. Control characters in names are shown, not obeyed. fmt::print
// would throw when a write fails.
template <typename... Args>
void print_out(fmt::format_string<Args...> format, Args&&... args) {
  write_output(printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}
template <typename... Args>
void print_err(fmt::format_string<Args...> format, Args&&... args) {
  write_error(printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace mdfs::tools
