// mdfs meter: what a filesystem gives to clients, by the definitions of the Media Storage Meter.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "meter/clients.h"
#include "meter/measure.h"
#include "meter/picture.h"
#include "meter/profile.h"
#include "meter/report.h"
#include "support/chart.h"
#include "support/complete.h"
#include "support/interruption.h"
#include "support/json_output.h"
#include "support/pending_file.h"
#include "support/ranges.h"
#include "support/streams.h"
#include "support/text.h"

namespace mdfs::tools {
namespace {

constexpr double kMostDurationS = 86'400;
constexpr double kLeastDurationS = 0.01;
constexpr unsigned kMostRounds = 100;

struct MeterArguments {
  Measurement wanted;
  std::string profile;
  std::string size = "1G";
  unsigned most_clients = 0;
  bool show = false, json = false, force = false;
  std::string svg;
};

Result<std::vector<MeasuredPlace>> measure_until_asked(const Measurement& wanted) {
  const Interruption interruption;
  return measure(wanted, Interruption::asked());
}

Status run_meter_command(MeterArguments arguments) {
  MDFS_TRY_ASSIGN(const std::string text, meter::profile_text(arguments.profile));
  Measurement& wanted = arguments.wanted;
  MDFS_TRY_ASSIGN(wanted.profile, meter::parse_profile(text, arguments.profile));
  if (arguments.show) {
    print_out("{}", text);
    return {};
  }
  if (wanted.paths.empty()) return Error{Errc::kUsage, "PATH is required: a directory or a file"};
  MDFS_TRY_ASSIGN(wanted.most_bytes, named("--size", parse_size(arguments.size, "--size")));
  if (arguments.most_clients > 0) {
    wanted.ramp = true;
    wanted.clients = arguments.most_clients;
  }
  MDFS_TRY_ASSIGN(const std::vector<MeasuredPlace> places, measure_until_asked(wanted));
  if (!arguments.svg.empty())
    MDFS_TRY(write_text_file(arguments.svg, to_svg(meter_figure(wanted, places)), arguments.force));
  if (arguments.json)
    print_out("{}\n", dump_json(meter_json(wanted, places)));
  else
    print_out("{}", meter_text(wanted, places));
  return {};
}

void add_load_options(CLI::App& command, MeterArguments& arguments) {
  Measurement& wanted = arguments.wanted;
  CLI::Option* const profile =
      command.add_option("--profile", arguments.profile, "Profile: record, edit, playout, archive, or a TOML file")
          ->required()
          ->type_name("FILE");
  std::vector<Choice> names;
  for (const meter::BuiltIn& built_in : meter::built_in_profiles())
    names.push_back({std::string(built_in.name), "a profile that is built in"});
  complete_with(profile, std::move(names));
  command.add_flag("--show", arguments.show, "Print the profile and measure nothing");
  CLI::Option* const clients =
      command.add_option("--clients", wanted.clients, "Clients at once")->check(whole_number(1, kMostMeterClients));
  clients->capture_default_str();
  command
      .add_option("--most-clients", arguments.most_clients,
                  "Measure 1, 2, 4 .. clients up to this number, until a limit of the profile breaks")
      ->check(whole_number(1, kMostMeterClients))
      ->excludes(clients);
  command.add_option("--duration", wanted.duration_s, "Seconds of each number of clients")
      ->check(number_from(kLeastDurationS, kMostDurationS))
      ->capture_default_str();
  command.add_option("--rounds", wanted.rounds, "Measure so often; two paths in turn, each round in the other order")
      ->check(whole_number(1, kMostRounds))
      ->capture_default_str();
  command.add_option("--size", arguments.size, "Bytes of all files in a directory, at most")->capture_default_str();
  command.add_option("--seed", wanted.seed, "Seed of the random numbers")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
}

}  // namespace

void add_meter_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<MeterArguments>();
  CLI::App* command = app.add_subcommand("meter", "Measure rate and latency of clients on any filesystem");
  add_load_options(*command, *arguments);
  command->add_flag("--direct", arguments->wanted.direct, "Bypass the page cache (O_DIRECT)");
  command->add_flag("--drop-caches", arguments->wanted.drop_caches,
                    "Drop the caches of the kernel before each measurement; needs root");
  command->add_flag("--json", arguments->json, "Print JSON");
  CLI::Option* const svg =
      command->add_option("--svg", arguments->svg, "Draw the result to this SVG file")->type_name("FILE");
  command->add_flag("--force", arguments->force, "Replace an existing SVG file")->needs(svg);
  command
      ->add_option("PATH", arguments->wanted.paths,
                   "Directory in which the files are made, or a file to read; two of them are compared")
      ->expected(1, 2);
  command->callback([arguments, &action] { action = [arguments] { return run_meter_command(*arguments); }; });
}

}  // namespace mdfs::tools
