// Ranges of numeric options and operands. Each validator refuses everything else with one sentence: the value as it
// was typed, and what is allowed. It also says what is allowed in --help.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}  // namespace CLI

namespace mdfs::tools {

// Any text but an empty one, which a variable of the shell without a value gives.
CLI::Validator not_empty();
// Whole numbers from `least` to `most`, both included; decimal digits only.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
// The same, other than 0, also below it.
CLI::Validator step_number(std::int64_t most);
// Finite numbers from `least` to `most`, both included.
CLI::Validator number_from(double least, double most);
// Finite numbers greater than 0.
CLI::Validator number_above_zero();

}  // namespace mdfs::tools
