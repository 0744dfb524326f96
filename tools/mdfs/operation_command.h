// The four verbs of a long operation: start, status, cancel and resume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "commands.h"
#include "operation_text.h"

namespace mdfs::tools {

// The specific parts of one kind of operation. The texts appear in --help.
struct OperationNoun {
  // Copies the options of `start` into its request.
  using Prepare = std::function<Status(const std::string& path, mdfs_ioc_operation& request)>;

  const char* name;
  const char* summary;
  std::uint32_t kind;  // MDFS_OPERATION_SCRUB, ..
  OperationWords words;
  const char* start;
  const char* status;
  const char* dry_run;
  const char* budget;
  const char* start_path;
  std::function<Prepare(CLI::App& start)> start_options;                     // may be empty
  std::string (*more_text)(const mdfs_ioc_operation&) = nullptr;             // as operation_text takes it
  nlohmann::ordered_json (*more_json)(const mdfs_ioc_operation&) = nullptr;  // as operation_json takes it
};

void add_operation_commands(CLI::App& app, Action& action, const OperationNoun& noun);

}  // namespace mdfs::tools
