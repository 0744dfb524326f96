// Completion of command lines for the shells: the program itself says what may come next. The scripts in completion/
// call `PROGRAM --complete WORD...`; the last word is the one at the cursor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mdfs::tools {

struct Choice {
  std::string word;  // one that ends in '=' or ':' is continued by the user
  std::string help;
};

// The choices of an option or argument whose type name does not list them as "{raw,zstd}". kList: several choices with
// commas between them.
enum class ChoiceOf { kOne, kList };
void complete_with(const CLI::Option* option, std::vector<Choice> choices, ChoiceOf of = ChoiceOf::kOne);

// Is the command line `PROGRAM --complete WORD...`?
bool asks_for_completion(int argc, const char* const* argv);

// Prints the words that may stand at the cursor, each as WORD, a tab and a line of help. A line ":files" stands for the
// names of files.
void print_completions(const CLI::App& app, int argc, const char* const* argv);

}  // namespace mdfs::tools
