// mdfs-sim size: the cheapest machine that meets targets.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "commands.h"
#include "geometry/default_extent.h"
#include "geometry/shape_text.h"
#include "model/price_file.h"
#include "model/quantity.h"
#include "options.h"
#include "plot.h"
#include "report.h"
#include "sim/sizing.h"
#include "support/complete.h"
#include "support/progress.h"
#include "support/ranges.h"
#include "support/text.h"
#include "trace_file.h"

namespace mdfs::tools {
namespace {

constexpr unsigned kMostWindows = 1'000'000;
constexpr unsigned kMostClients = 1'000'000;
constexpr std::size_t kMostCandidates = 100'000;
constexpr const char* kDefaultShape = "8192x8192";
constexpr unsigned kDefaultPixelBytes = 3;

struct SizeCommand : SimOptions {
  std::string workload;
  std::vector<std::string> targets;
  std::vector<std::string> machines;
  std::vector<std::string> disk_counts = {"1..16"};
  std::string prices;
  unsigned windows = 2000;
  double warm_up = 0.1;
  bool reads_only = false;
  bool independent = false;
  bool all = false;
};

// What is asked of each machine: windows of one size at random places, or a trace.
struct Workload {
  enum class Kind { kPoisson, kClosed, kTrace };
  Kind kind = Kind::kTrace;
  std::string size;      // of a window
  std::string rate;      // kPoisson
  unsigned clients = 1;  // kClosed
  double think_s = 0;    // kClosed
  std::optional<ReplayTrace> trace;
  std::vector<sim::TraceEntry> entries;
};

constexpr const char* kForms = "is no file, \"poisson:SIZE:RATE\" or \"closed:SIZE:CLIENTS[:THINK]\"";

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Result<Workload> read_workload(const SizeCommand& options, const geometry::Geometry& image) {
  const std::vector<std::string> parts = parts_of(options.workload);
  Workload workload;
  if (parts.size() == 3 && parts[0] == "poisson") {
    workload.kind = Workload::Kind::kPoisson;
    workload.rate = parts[2];
  } else if ((parts.size() == 3 || parts.size() == 4) && parts[0] == "closed") {
    workload.kind = Workload::Kind::kClosed;
    const auto clients = parse_number(parts[2], "clients");
    if (!clients.ok() || *clients < 1 || *clients > std::min(kMostClients, options.windows))
      return Error{Errc::kUsage, fmt::format("--workload {}: clients must be in 1..{}, and at most --windows",
                                             options.workload, kMostClients)};
    workload.clients = static_cast<unsigned>(*clients);
    if (parts.size() == 4) {
      MDFS_TRY_ASSIGN(workload.think_s, named("--workload " + options.workload, model::parse_time_s(parts[3])));
    }
  } else {
    auto trace = read_trace(options.workload, options.reads_only, image);
    if (!trace.ok() && trace.error().code == Errc::kNotFound)
      return Error{Errc::kUsage, fmt::format("--workload {} {}", options.workload, kForms)};
    if (!trace.ok()) return trace.error();
    workload.trace = std::move(*trace);
    MDFS_TRY_ASSIGN(workload.entries, entries_of(*workload.trace, options.workload, options.independent));
    return workload;
  }
  workload.size = parts[1];
  MDFS_TRY(named("--workload " + options.workload, parse_window_size(image, workload.size)));
  return workload;
}

// "2..64", "8": the numbers of a list, in order and once each.
Result<std::vector<unsigned>> read_disk_counts(const std::vector<std::string>& texts) {
  std::set<unsigned> counts;
  for (const std::string& text : texts) {
    const std::size_t dots = text.find("..");
    const auto first = parse_number(text.substr(0, dots), "--disks");
    const auto last = dots == std::string::npos ? first : parse_number(text.substr(dots + 2), "--disks");
    if (!first.ok() || !last.ok() || *first < 1 || *last > model::kMaxDisks || *first > *last)
      return Error{Errc::kUsage, fmt::format("--disks {}: must be numbers in 1..{}, or ranges such as 2..64", text,
                                             model::kMaxDisks)};
    for (std::uint64_t count = *first; count <= *last; ++count) counts.insert(static_cast<unsigned>(count));
  }
  return std::vector<unsigned>(counts.begin(), counts.end());
}

struct Plan {
  std::vector<model::Machine> machines;
  std::vector<sim::Bound> targets;
  model::Prices prices;
  std::vector<sim::Candidate> candidates;
};

Result<double> price_of(const SizeCommand& options, const Plan& plan, std::size_t machine, unsigned disks) {
  if (options.prices.empty()) return static_cast<double>(disks);
  const model::Price* const price = plan.prices.find(plan.machines[machine].name);
  if (price == nullptr)
    return Error{Errc::kNotFound,
                 fmt::format("{}: the machine {} has no price", options.prices, plan.machines[machine].name)};
  return price->of(disks);
}

Result<Plan> make_plan(const SizeCommand& options) {
  Plan plan;
  for (const std::string& name : options.machines) {
    MDFS_TRY_ASSIGN(model::Machine machine, model::find_machine(name));
    plan.machines.push_back(std::move(machine));
  }
  for (const std::string& text : options.targets) {
    MDFS_TRY_ASSIGN(sim::Bound target, named("--target", sim::parse_bound(text)));
    plan.targets.push_back(std::move(target));
  }
  if (!options.prices.empty()) {
    MDFS_TRY_ASSIGN(plan.prices, model::read_prices(options.prices));
  }
  MDFS_TRY_ASSIGN(const std::vector<unsigned> counts, read_disk_counts(options.disk_counts));
  if (counts.size() * plan.machines.size() > kMostCandidates)
    return Error{Errc::kUsage, fmt::format("--machines and --disks make {} machines to try, at most {} are",
                                           counts.size() * plan.machines.size(), kMostCandidates)};
  for (std::size_t machine = 0; machine < plan.machines.size(); ++machine)
    for (const unsigned disks : counts) {
      MDFS_TRY_ASSIGN(const double price, price_of(options, plan, machine, disks));
      plan.candidates.push_back({machine, disks, price});
    }
  sim::sort_by_price(plan.candidates);
  return plan;
}

// The image that every machine gets: extents are those of a mount, whatever the file of a machine says.
SimOptions image_of(const SizeCommand& options, const std::string& machine) {
  SimOptions one = options;
  one.machine = machine;
  if (one.shape.empty()) one.shape = kDefaultShape;
  one.bytes_per_pixel = options.bytes_per_pixel.value_or(kDefaultPixelBytes);
  return one;
}

Result<sim::Setup> setup_of(const SizeCommand& options, const std::string& machine, unsigned disks) {
  SimOptions one = image_of(options, machine);
  one.disks = disks;
  if (one.extent.empty()) {
    MDFS_TRY_ASSIGN(const geometry::Lengths lengths, named("--shape " + one.shape, geometry::parse_shape(one.shape)));
    const std::string axes = geometry::default_axes(lengths.rank, false, *one.bytes_per_pixel > 1);
    one.extent = geometry::shape_text(
        lengths.rank, geometry::default_extent(lengths.rank, lengths.length, *one.bytes_per_pixel, axes));
  }
  return make_setup(one);
}

Result<sim::Measured> measure(const SizeCommand& options, const Plan& plan, const Workload& workload,
                              const sim::Candidate& candidate) {
  MDFS_TRY_ASSIGN(sim::Setup setup, setup_of(options, options.machines[candidate.machine], candidate.disks));
  if (workload.kind == Workload::Kind::kTrace) {
    MDFS_TRY_ASSIGN(const std::vector<sim::System> systems, systems_of(setup, *workload.trace, !options.cache));
    return sim::measure_targets(
        [&](std::uint64_t seed, unsigned runs) { return sim::replay(systems, workload.entries, seed, runs); },
        systems.front().route().is_random(), plan.targets, options.seed);
  }
  MDFS_TRY_ASSIGN(const sim::System system, sim::System::make(std::move(setup)));
  sim::LoadOptions load;
  load.windows = options.windows;
  load.warm_up = options.warm_up;
  MDFS_TRY_ASSIGN(load.length, parse_window_size(system.setup().image, workload.size));
  double rate = 0;
  if (workload.kind == Workload::Kind::kPoisson) {
    double window_bytes = static_cast<double>(system.setup().image.sample_bytes());
    for (unsigned axis = 0; axis < system.setup().image.rank; ++axis)
      window_bytes *= static_cast<double>(load.length[axis]);
    MDFS_TRY_ASSIGN(rate, parse_rate(workload.rate, window_bytes, 0));
  }
  return sim::measure_targets(
      [&](std::uint64_t seed, unsigned runs) {
        sim::LoadOptions one = load;
        one.seed = seed;
        one.replications = runs;
        return workload.kind == Workload::Kind::kPoisson ? sim::poisson(system, one, rate)
                                                         : sim::closed(system, one, workload.clients, workload.think_s);
      },
      true, plan.targets, options.seed);
}

std::string value_text(const sim::Bound& target, const sim::Interval& value) {
  if (target.figure != sim::Bound::Figure::kThroughput) return interval_text(value);
  return fmt::format("{} +- {} (95 %)", rate_text(value.mean), rate_text(value.half_width));
}

std::string price_text(const Plan& plan, double price) {
  return plan.prices.currency.empty() ? number_text(price) : number_text(price) + " " + plan.prices.currency;
}

nlohmann::ordered_json sized_json(const Plan& plan, const sim::Sized& sized) {
  nlohmann::ordered_json json = {{"machine", plan.machines[sized.candidate.machine].name},
                                 {"disks", sized.candidate.disks},
                                 {"price", sized.candidate.price}};
  if (!sized.measured) {
    json["problem"] = sized.problem;
    return json;
  }
  const sim::Measured& measured = *sized.measured;
  json["verdict"] = sim::name_of(measured.verdict);
  json["replications"] = measured.replications;
  for (std::size_t i = 0; i < plan.targets.size(); ++i)
    json["targets"].push_back({{"target", plan.targets[i].text},
                               {"value", measured.targets[i].value.mean},
                               {"half_width_95", measured.targets[i].value.half_width},
                               {"verdict", sim::name_of(measured.targets[i].verdict)}});
  json["done_bytes_per_s"] = measured.done_bytes_per_s;
  json["bottleneck"] = sim::bottleneck(measured.use);
  for (const sim::ResourceUse& use : measured.use) json["utilization"][use.name] = use.mean_utilization();
  return json;
}

void add_rows(const Plan& plan, const std::vector<sim::Sized>& sized, Report& report) {
  std::vector<std::string> columns = {"machine", "disks", "price"};
  for (const sim::Bound& target : plan.targets) {
    const bool rate = target.figure == sim::Bound::Figure::kThroughput;
    columns.push_back(fmt::format("{}_{}", sim::name_of(target.figure), rate ? "B/s" : "s"));
    columns.emplace_back("half_width_95");
  }
  columns.insert(columns.end(), {"verdict", "bottleneck", "utilization"});
  report.columns(columns);
  for (const sim::Sized& one : sized) {
    std::vector<std::string> row = {plan.machines[one.candidate.machine].name, std::to_string(one.candidate.disks),
                                    number_text(one.candidate.price)};
    if (!one.measured) {
      row.resize(columns.size());
      row[columns.size() - 3] = "does not fit";
    } else {
      for (const sim::BoundResult& target : one.measured->targets) {
        row.push_back(number_text(target.value.mean));
        row.push_back(number_text(target.value.half_width));
      }
      const std::string busiest = sim::bottleneck(one.measured->use);
      row.emplace_back(sim::name_of(one.measured->verdict));
      row.push_back(busiest);
      row.push_back(number_text(sim::utilization_of(one.measured->use, busiest)));
    }
    report.row(std::move(row));
    report.json()["candidates"].push_back(sized_json(plan, one));
  }
}

// The first target against the number of disks, a line for each machine, and the limit.
sim::Figure figure_of(const Plan& plan, const std::vector<sim::Sized>& sized) {
  const sim::Bound& target = plan.targets.front();
  const bool rate = target.figure == sim::Bound::Figure::kThroughput;
  const double unit = rate ? 1e-6 : 1e3;
  sim::Figure figure{.title = target.text,
                     .x_label = "disks",
                     .y_label = fmt::format("{}, {}", sim::name_of(target.figure), rate ? "MB/s" : "ms"),
                     .series = {}};
  double most = 0, highest = target.limit * unit;
  for (std::size_t machine = 0; machine < plan.machines.size(); ++machine) {
    sim::Series line{.name = plan.machines[machine].name, .style = sim::Series::Style::kLine, .x = {}, .y = {}};
    std::vector<const sim::Sized*> points;
    for (const sim::Sized& one : sized)
      if (one.candidate.machine == machine && one.measured) points.push_back(&one);
    std::sort(points.begin(), points.end(),
              [](const auto* a, const auto* b) { return a->candidate.disks < b->candidate.disks; });
    for (const sim::Sized* point : points) {
      line.x.push_back(point->candidate.disks);
      line.y.push_back(point->measured->targets.front().value.mean * unit);
      line.half_width.push_back(point->measured->targets.front().value.half_width * unit);
      most = std::max(most, line.x.back());
      highest = std::max(highest, line.y.back() + line.half_width.back());
    }
    if (!points.empty()) figure.series.push_back(std::move(line));
  }
  figure.series.push_back({.name = "target",
                           .style = sim::Series::Style::kDashed,
                           .x = {0, most},
                           .y = {target.limit * unit, target.limit * unit}});
  // An overloaded machine would flatten the rest.
  if (!rate) figure.y_max = std::min(4 * target.limit * unit, 1.1 * highest);
  return figure;
}

void say_cheapest(const Plan& plan, const std::vector<sim::Sized>& sized, Report& report) {
  const auto is = [](sim::Verdict verdict) {
    return [verdict](const sim::Sized& one) { return one.measured && one.measured->verdict == verdict; };
  };
  const auto met = std::find_if(sized.begin(), sized.end(), is(sim::Verdict::kMet));
  const auto unsure = std::find_if(sized.begin(), met, is(sim::Verdict::kUnsure));
  const auto describe = [&](const sim::Sized& one) {
    std::string text =
        fmt::format("{} with {} disk{}, price {}:", plan.machines[one.candidate.machine].name, one.candidate.disks,
                    one.candidate.disks == 1 ? "" : "s", price_text(plan, one.candidate.price));
    for (std::size_t i = 0; i < plan.targets.size(); ++i)
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", sim::name_of(plan.targets[i].figure),
                          value_text(plan.targets[i], one.measured->targets[i].value));
    const std::string busiest = sim::bottleneck(one.measured->use);
    return text + fmt::format("; bottleneck {}, {:.0f} % busy", busiest,
                              100 * sim::utilization_of(one.measured->use, busiest));
  };
  report.json()["cheapest"] = met == sized.end() ? nlohmann::ordered_json(nullptr) : sized_json(plan, *met);
  report.line(met == sized.end() ? std::string("none of the machines meets the targets")
                                 : "cheapest: " + describe(*met));
  if (unsure != met) report.line("cheaper, but within the error bar of a target: " + describe(*unsure));
  for (const sim::Sized& one : sized)
    if (!one.measured)
      report.line(fmt::format("{} with {} disks does not fit: {}", plan.machines[one.candidate.machine].name,
                              one.candidate.disks, one.problem));
}

Status run_size(const SizeCommand& options) {
  MDFS_TRY_ASSIGN(const Plan plan, make_plan(options));
  MDFS_TRY_ASSIGN(const sim::Setup first, setup_of(options, options.machines.front(), model::kMaxDisks));
  MDFS_TRY_ASSIGN(const Workload workload, read_workload(options, first.image));
  if (workload.kind == Workload::Kind::kPoisson)
    MDFS_TRY(named("--workload " + options.workload, parse_rate(workload.rate, 1, 0)));
  Progress progress("simulating", plan.candidates.size(), Progress::Unit::kCount);
  const std::vector<sim::Sized> sized = sim::find_cheapest(
      plan.candidates, [&](const sim::Candidate& one) { return measure(options, plan, workload, one); },
      std::max(1u, std::thread::hardware_concurrency()), options.all, [&] { progress.add(1); });
  progress.finish();
  const std::uint64_t trace_cache = workload.trace ? workload.trace->cache_bytes.value_or(0) : 0;
  Report report(options, "size", nullptr);
  report.parameter("workload", options.workload);
  report.parameter("target", options.targets);
  report.parameter("machines", options.machines);
  report.parameter("disks", options.disk_counts);
  report.parameter("price", options.prices);
  report.parameter("shape", geometry::shape_text(first.image.rank, first.image.shape));
  report.parameter("extent", geometry::shape_text(first.image.rank, first.image.extent));
  report.parameter("bytes_per_pixel", first.image.sample_bytes());
  report.parameter("row_offset", or_null(options.row_offset));
  report.parameter("plane_offset", or_null(options.plane_offset));
  report.parameter("filled", or_null(options.filled));
  report.parameter("compressed", or_null(options.compressed));
  report.parameter("copies", options.parity.parity > 0 ? 1 : options.copies);
  report.parameter("parity", options.parity.parity);
  report.parameter("width", or_null(options.parity.width));
  report.parameter("lost_disk", or_null(options.lost_disk));
  report.parameter("cache_bytes", options.cache ? first.cache_bytes : trace_cache);
  report.parameter("seeks", options.seeks);
  report.parameter("windows", options.windows);
  report.parameter("warm_up", options.warm_up);
  report.parameter("reads_only", options.reads_only);
  report.parameter("independent", options.independent);
  report.parameter("all", options.all);
  for (const model::Machine& machine : plan.machines)
    report.json()["machines"].push_back({{"name", machine.name}, {"hash", model::hash_text(machine)}});
  if (!options.prices.empty()) report.json()["currency"] = plan.prices.currency;
  say_cheapest(plan, sized, report);
  add_rows(plan, sized, report);
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(figure_of(plan, sized), options.plot));
  const bool met = std::any_of(sized.begin(), sized.end(), [](const sim::Sized& one) {
    return one.measured && one.measured->verdict == sim::Verdict::kMet;
  });
  if (!met) end_with(1);
  return {};
}

}  // namespace

void add_size_command(SimProgram& program) {
  auto options = std::make_shared<SizeCommand>();
  auto* command = program.app.add_subcommand("size", "Find the cheapest machine that meets targets");
  command
      ->add_option("--workload", options->workload,
                   "Trace of a mount, poisson:SIZE:RATE (poisson:512x512:30/s), or closed:SIZE:CLIENTS[:THINK]")
      ->required();
  command->add_option("--target", options->targets, "Bounds, such as \"p99<50ms\" or \"throughput>200MB/s\"")
      ->delimiter(',')
      ->required();
  complete_with(
      command->add_option("--machines", options->machines, "Shipped machines, or files")->delimiter(',')->required(),
      machine_choices());
  command->add_option("--disks", options->disk_counts, "Numbers of disks to try, such as 2..64 or 4,8,16")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--price", options->prices, "File of prices (default: a disk costs 1, a machine nothing)")
      ->type_name("FILE");
  command->add_option("--windows", options->windows, "Number of windows in a replication; not for a trace")
      ->check(whole_number(100, kMostWindows))
      ->capture_default_str();
  command->add_option("--warm-up", options->warm_up, "Share of the windows left out at the start; not for a trace")
      ->check(number_from(0, 0.9))
      ->capture_default_str();
  command->add_flag("--reads-only", options->reads_only, "Leave writes of a trace out");
  command->add_flag("--independent", options->independent,
                    "Begin each window of a trace at its time, even if the client still waits for its last one");
  command->add_flag("--all", options->all, "Try all, not only up to the cheapest that meets the targets");
  add_image_options(*command, *options);
  add_output_options(*command, *options, true);
  command->callback([&program, options] { program.action = [options] { return run_size(*options); }; });
}

}  // namespace mdfs::tools
