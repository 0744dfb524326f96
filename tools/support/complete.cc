// Completion of command lines for the shells.
// SPDX-License-Identifier: Apache-2.0
#include "support/complete.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>

#include "support/streams.h"

namespace mdfs::tools {
namespace {

constexpr std::string_view kAsked = "--complete";

struct Choices {
  std::vector<Choice> words;
  ChoiceOf of = ChoiceOf::kOne;
};

std::map<const CLI::Option*, Choices>& told_choices() {
  static std::map<const CLI::Option*, Choices> choices;
  return choices;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() != 0; }

// Of a type name such as "TEXT:{constant,uniform}" or "{raw,zstd,zstd:LEVEL}". Capitals stand for what the user adds.
std::vector<Choice> listed_choices(const std::string& type) {
  std::vector<Choice> choices;
  const std::size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  for (std::string word : CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) {
    while (!word.empty() && word.back() >= 'A' && word.back() <= 'Z') word.pop_back();
    choices.push_back({std::move(word), ""});
  }
  return choices;
}

void print_if(const std::string& before, const std::string& typed, const Choice& choice) {
  if (choice.word.starts_with(typed)) print_out("{}{}\t{}\n", before, choice.word, choice.help);
}

// `before`: what of the word is not the value, such as "--codec=".
void print_values(const CLI::Option& option, std::string before, std::string typed) {
  const auto told = told_choices().find(&option);
  const Choices choices = told != told_choices().end() ? told->second : Choices{listed_choices(option.get_type_name())};
  if (choices.of == ChoiceOf::kList) {
    const std::size_t begin = typed.rfind(',') + 1;  // 0 where there is none
    before += typed.substr(0, begin);
    typed.erase(0, begin);
  }
  for (const Choice& choice : choices.words) print_if(before, typed, choice);
  if (option.get_type_name() == "FILE" || (option.get_positional() && choices.of == ChoiceOf::kOne))
    print_out(":files\n");
}

void print_options(const CLI::App& command, const std::string& typed) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) print_if("", typed, {"--" + name, option->get_description()});
    for (const std::string& name : option->get_snames()) print_if("", typed, {"-" + name, option->get_description()});
  }
}

void print_place(const CLI::App& command, std::size_t number, const std::string& typed) {
  const auto places = command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (places.empty()) return;
  const CLI::Option& last = *places.back();
  if (number < places.size()) {
    print_values(*places[number], "", typed);
  } else if (last.get_items_expected_max() > 1) {
    print_values(last, "", typed);
  }
}

// Where the words before the cursor lead.
struct Position {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  // whose value comes next
  std::size_t place = 0;                // number of the argument that comes next
};

Position follow(const CLI::App& app, const std::vector<std::string>& words) {
  Position at{.command = &app};
  for (const std::string& word : words) {
    if (at.option != nullptr) {
      at.option = nullptr;
    } else if (word.starts_with('-') && word != "-") {
      const CLI::Option* const option = at.command->get_option_no_throw(word);
      if (option != nullptr && takes_value(*option)) at.option = option;
    } else if (const auto verbs =
                   at.command->get_subcommands([&](const CLI::App* verb) { return verb->check_name(word); });
               !verbs.empty() && at.place == 0) {
      at.command = verbs.front();
    } else {
      ++at.place;
    }
  }
  return at;
}

}  // namespace

void complete_with(const CLI::Option* option, std::vector<Choice> choices, ChoiceOf of) {
  told_choices()[option] = {std::move(choices), of};
}

bool asks_for_completion(int argc, const char* const* argv) { return argc >= 2 && argv[1] == kAsked; }

void print_completions(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 2, argv + argc);
  if (words.empty()) words.emplace_back();
  const std::string typed = std::move(words.back());
  words.pop_back();
  const Position at = follow(app, words);
  if (at.option != nullptr) return print_values(*at.option, "", typed);
  if (typed.starts_with("--") && typed.find('=') != std::string::npos) {
    const std::size_t value = typed.find('=') + 1;
    const CLI::Option* const option = at.command->get_option_no_throw(typed.substr(0, value - 1));
    if (option != nullptr) print_values(*option, typed.substr(0, value), typed.substr(value));
    return;
  }
  if (typed.starts_with('-')) return print_options(*at.command, typed);
  const auto verbs = at.command->get_subcommands([&](const CLI::App*) { return at.place == 0; });
  for (const CLI::App* verb : verbs) print_if("", typed, {verb->get_name(), verb->get_description()});
  print_place(*at.command, at.place, typed);
}

}  // namespace mdfs::tools
