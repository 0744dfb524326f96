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

// What an option or argument takes, where its type name does not list it as "{raw,zstd}". `list`: of these, with commas
// between them.
enum class ChoiceOf { kOne, kList };
void complete_with(const CLI::Option* option, std::vector<Choice> choices, ChoiceOf of = ChoiceOf::kOne);

// Whether the command line is `PROGRAM --complete WORD...`.
bool asks_for_completion(int argc, const char* const* argv);

// Prints the words that may stand at the cursor, each as WORD, a tab and a line of help. A line ":files" stands for the
// names of files.
void print_completions(const CLI::App& app, int argc, const char* const* argv);

}  // namespace mdfs::tools
