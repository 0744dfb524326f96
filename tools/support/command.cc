// What every program does the same way: usage errors, messages, exit codes.
// SPDX-License-Identifier: Apache-2.0
#include "support/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "support/complete.h"
#include "support/streams.h"
#include "support/version.h"

namespace mdfs::tools {

int report(const std::string& program, const Error& error) {
  print_err("{}: {}\n", program, printable(error.code == Errc::kUsage ? error.where : error.message()));
  return info(error.code).exit_code;
}

namespace {

int wanted_status = 0;

std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* command : commands) names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// What the parser says, and for a missing or unknown command the ones that exist.
std::string explain(const CLI::App& app, const CLI::ParseError& problem) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  const auto commands = deepest->get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty()) return problem.what();
  const std::vector<std::string> rest = deepest->remaining();
  for (const std::string& word : rest)
    if (!word.starts_with('-')) return fmt::format("there is no command '{}'; there are {}", word, names_of(commands));
  if (!rest.empty()) return fmt::format("there is no option '{}'", rest.front());
  return fmt::format("a command is missing; there are {}", names_of(commands));
}

// Of a command that has done its work.
int end_output(const std::string& program) {
  const Status written = finish_output();
  if (written.ok()) return 0;
  print_err("{}: the command has done its work, but its output cannot be written: {}\n", program,
            written.error().message());
  return kOutputStatus;
}

}  // namespace

void print_help(const CLI::App& app, const CLI::ParseError& request) {
  std::ostringstream text;
  app.exit(request, text, text);
  write_output(text.str());
}

void end_with(int status) { wanted_status = status; }

namespace {

// What is empty among the arguments, or nothing. To be called before the parser explains an empty text in its own way.
std::string empty_argument(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (*argv[i] == '\0') return *argv[i - 1] == '-' ? std::string(argv[i - 1]) + ": is empty" : "an argument is empty";
  return {};
}

// Subcommands were added with the help flag of CLI11.
void set_help_flags(CLI::App& app) {
  app.set_help_flag("-h,--help", "Show this help and exit");
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) set_help_flags(*command);
}

}  // namespace

int run_program(CLI::App& app, const std::string& program, int argc, char** argv, const Action& action,
                EmptyText empty_text) {
  start_log(program);
  app.set_version_flag("--version", version_text(program), "Show the version and exit");
  set_help_flags(app);
  app.get_formatter()->column_width(34);
  if (asks_for_completion(argc, argv)) {
    print_completions(app, argc, argv);
    return end_output(program);
  }
  if (empty_text == EmptyText::kRefused)
    if (std::string empty = empty_argument(argc, argv); !empty.empty())
      return report(program, {Errc::kUsage, std::move(empty)});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) {
      print_help(app, problem);
      return end_output(program);
    }
    print_err("{}: {} (see --help)\n", program, printable(explain(app, problem)));
    return info(Errc::kUsage).exit_code;
  } catch (const std::exception& problem) {
    return report(program, {Errc::kUsage, problem.what()});
  }
  const Status status = action();
  if (!status.ok()) return report(program, status.error());
  const int output = end_output(program);
  return wanted_status != 0 ? wanted_status : output;
}

}  // namespace mdfs::tools
