// What every program does the same way: usage errors, messages, exit codes.
// SPDX-License-Identifier: Apache-2.0
#include "support/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/log.h"
#include "mdfs/version.h"

namespace mdfs::tools {

int report(const std::string& program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, error.code == Errc::kUsage ? error.where : error.message());
  return info(error.code).exit_code;
}

int run_program(CLI::App& app, const std::string& program, int argc, char** argv, const Action& action) {
  start_log(program);
  app.set_version_flag("--version", MDFS_VERSION_STRING, "Show the version and exit");
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.get_formatter()->column_width(34);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    fmt::print(stderr, "{}: {}\nRun with --help for the options.\n", program, problem.what());
    return info(Errc::kUsage).exit_code;
  } catch (const std::exception& problem) {
    return report(program, {Errc::kUsage, problem.what()});
  }
  const Status status = action();
  if (std::fflush(stdout) != 0 && status.ok()) return report(program, from_errno(errno, "standard output"));
  return status.ok() ? 0 : report(program, status.error());
}

}  // namespace mdfs::tools
