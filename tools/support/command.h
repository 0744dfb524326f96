// Shared by all programs: usage errors, messages, exit codes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace mdfs::tools {

// The version of the output of --json; new fields do not change it.
inline constexpr int kOutputVersion = 1;

// The action of the command line; set while it is parsed, run afterwards.
using Action = std::function<Status()>;

// Empty numbers are refused by their ranges (ranges.h).
enum class EmptyText : std::uint8_t {
  kAllowed,
  kRefused,  // by mdfs-sim: an empty text is no machine, shape, size or window
};

// Parses, runs the action, prints "program: error" as one line, and returns the exit code. Nothing is thrown.
int run_program(CLI::App& app, const std::string& program, int argc, char** argv, const Action& action,
                EmptyText empty_text = EmptyText::kAllowed);

// Prints what --help or --version ask for, which CLI11 reports as an error of status 0.
void print_help(const CLI::App& app, const CLI::ParseError& request);

// Sets the status of a command that has done its work: a result, not an error of the command. Call it
// from the action.
void end_with(int status);
inline constexpr int kUnhealthyStatus = 4;  // `mdfs volume status`: the volume has errors

// Prints an error as run_program does, and returns its exit code.
int report(const std::string& program, const Error& error);

}  // namespace mdfs::tools
