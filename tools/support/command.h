// What every program does the same way: usage errors, messages, exit codes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace mdfs::tools {

// The version of what --json prints; a field may be added without a change of it.
inline constexpr int kOutputVersion = 1;

// What the command line asked for; set while it is parsed, run afterwards.
using Action = std::function<Status()>;

// Parses, runs the action, prints "program: error" as one line, and returns the exit code. Nothing is thrown.
int run_program(CLI::App& app, const std::string& program, int argc, char** argv, const Action& action);

// A command that has done its work ends with this status instead of 0: what it found, not an error of its own. Called
// from the action.
void end_with(int status);
inline constexpr int kUnhealthyStatus = 4;  // `mdfs volume status`: something is wrong

// Prints one error the way run_program does, and returns its exit code.
int report(const std::string& program, const Error& error);

}  // namespace mdfs::tools
