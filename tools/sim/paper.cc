// mdfs-sim paper, machines, machine: published figures, and the machines that are shipped.
// SPDX-License-Identifier: Apache-2.0
#include "sim/paper.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/figures.h"
#include "support/json_output.h"
#include "support/streams.h"

namespace mdfs::tools {
namespace {

struct PaperOptions : SimOptions {
  bool quick = false;
  std::string figures;
};

Status draw_figures(const PaperOptions& options) {
  std::error_code problem;
  std::filesystem::create_directories(options.figures, problem);
  if (problem) return from_errno(problem.value(), options.figures);
  MDFS_TRY_ASSIGN(const auto figures, sim::paper_figures(options.seed));
  for (const sim::NamedFigure& one : figures) {
    const std::string path = (std::filesystem::path(options.figures) / (one.name + ".svg")).string();
    MDFS_TRY(write_figure(one.figure, path));
    print_out("{}\n", path);
  }
  return {};
}

std::string tolerance_text(const sim::Target& target) {
  if (target.claim) return "claim";
  return target.tolerance < 1e-6 ? "exact" : fmt::format("{:g} %", target.tolerance * 100);
}

void print_text(const sim::PaperResult& result, std::size_t missed) {
  std::string section;
  for (const sim::Target& target : result.targets) {
    if (target.section != section) print_out("\n{}\n", target.section);
    section = target.section;
    const std::string paper = target.claim ? "" : fmt::format("{:.4g}", target.paper);
    const std::string gap = target.claim ? "" : fmt::format("{:+.1f} %", (target.simulated / target.paper - 1) * 100);
    print_out("  {:<62} {:>8} {:>9.4g} {:<8} {:>8} {:>7}  {}\n", target.what, paper, target.simulated, target.unit, gap,
              tolerance_text(target), target.met() ? "met" : "NOT MET");
  }
  print_out("\nPrinted values that no consistent model meets\n");
  for (const sim::Unreachable& cell : result.unreachable)
    print_out("  {}: {}; here {}\n    {}\n", cell.what, cell.paper, cell.simulated, cell.why);
  print_out("\n{} of {} targets met\n", result.targets.size() - missed, result.targets.size());
}

Status run_paper(const PaperOptions& options) {
  if (!options.figures.empty()) return draw_figures(options);
  MDFS_TRY_ASSIGN(const sim::PaperResult result, sim::repeat_papers(options.quick, options.seed));
  std::size_t missed = 0;
  for (const sim::Target& target : result.targets) missed += target.met() ? 0 : 1;
  if (options.json || options.csv) {
    Report report(options, "paper", nullptr);
    report.parameter("quick", options.quick);
    report.columns({"section", "what", "unit", "paper", "tolerance", "simulated", "met"});
    for (const sim::Target& target : result.targets) {
      report.row({target.section, target.what, target.unit, target.claim ? "" : number_text(target.paper),
                  tolerance_text(target), number_text(target.simulated), target.met() ? "yes" : "no"});
      report.json()["targets"].push_back(
          {{"section", target.section},
           {"what", target.what},
           {"unit", target.unit},
           {"claim", target.claim},
           {"paper", target.claim ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(target.paper)},
           {"tolerance", target.tolerance},
           {"simulated", target.simulated},
           {"met", target.met()}});
    }
    for (const sim::Unreachable& cell : result.unreachable)
      report.json()["unreachable"].push_back(
          {{"what", cell.what}, {"paper", cell.paper}, {"simulated", cell.simulated}, {"why", cell.why}});
    report.json()["missed"] = missed;
    report.print();
  } else {
    print_text(result, missed);
  }
  if (missed > 0) return Error{Errc::kOutOfRange, fmt::format("{} targets are not met", missed)};
  return {};
}

Status list_machines(const SimOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const model::Preset& preset : model::presets()) {
    MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(std::string(preset.name)));
    if (options.json) {
      list.push_back(
          {{"name", machine.name}, {"hash", model::hash_text(machine)}, {"description", machine.description}});
    } else {
      print_out("{:<20} {}\n", machine.name, machine.description);
    }
  }
  if (options.json) {
    const nlohmann::ordered_json all = {{"output_version", kOutputVersion}, {"machines", std::move(list)}};
    write_output(dump_json(all) + "\n");
  }
  return {};
}

// The file of a shipped machine as it is; another file is read and judged.
Status show_machine(const std::string& name) {
  for (const model::Preset& preset : model::presets()) {
    if (preset.name != name) continue;
    print_out("{}", preset.toml);
    return {};
  }
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(name));
  print_out("{}: {} resources, {} stages, hash {}\n", machine.name, machine.resources.size(), machine.stages.size(),
            model::hash_text(machine));
  return {};
}

}  // namespace

void add_paper_command(SimProgram& program) {
  auto options = std::make_shared<PaperOptions>();
  auto* command = program.app.add_subcommand("paper", "Repeat the published experiments, and compare every figure");
  add_output_options(*command, *options, false);
  command->add_option("--figures", options->figures, "Draw the published figures to this directory instead")
      ->type_name("FILE");
  command->add_flag("--quick", options->quick, "Run fewer replications, which takes a few seconds");
  command->callback([&program, options] { program.action = [options] { return run_paper(*options); }; });
}

void add_machine_commands(SimProgram& program) {
  auto options = std::make_shared<SimOptions>();
  auto* command = program.app.add_subcommand("machines", "List the shipped machines");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([&program, options] { program.action = [options] { return list_machines(*options); }; });

  command = program.app.add_subcommand("machine", "Print the file of a shipped machine, or check a file");
  CLI::Option* const name =
      command->add_option("MACHINE", options->machine, "Shipped machine, or file to check")->required();
  complete_with(name, machine_choices());
  command->callback([&program, options] { program.action = [options] { return show_machine(options->machine); }; });
}

}  // namespace mdfs::tools
