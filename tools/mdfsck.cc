// mdfsck: checks and repairs an unmounted volume.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "device/find_disks.h"
#include "device/open.h"
#include "mdfs/ondisk.h"
#include "store/check/check.h"
#include "store/recovery.h"
#include "support/cluster_options.h"
#include "support/command.h"
#include "support/complete.h"
#include "support/json_output.h"
#include "support/memory.h"
#include "support/progress.h"
#include "support/streams.h"
#include "support/text.h"
#include "support/version.h"

namespace mdfs::tools {
namespace {

// Exit codes of fsck(8); 0, 1 and 4 come from the report.
constexpr int kExitError = 8;
constexpr int kExitUsage = 16;
constexpr int kExitCancelled = 32;
// For the locks of a daemon or a check that was killed just now.
constexpr auto kLockGrace = std::chrono::seconds(1);
// So many findings of one kind are printed as text.
constexpr unsigned kLinesOfAKind = 20;
constexpr std::uint64_t kLeastMemory = 16u << 20;
constexpr std::uint64_t kMemoryShare = 4;  // of what the machine has

struct Options {
  bool no_change = false, preen = false, yes = false, data = false, json = false, list_commits = false;
  std::optional<std::uint64_t> rollback;
  std::vector<std::string> disks;
  std::string memory;  // as it is given
  std::uint64_t memory_bytes = 0;

  store::RepairMode mode() const {
    if (yes) return store::RepairMode::kAll;
    return preen ? store::RepairMode::kPreen : store::RepairMode::kNothing;
  }
};

// One bar after the other: the tree by nodes, the data by bytes.
class Bars {
 public:
  explicit Bars(bool wanted) : wanted_(wanted) {}

  void show(store::CheckPhase phase, std::uint64_t done, std::uint64_t total) {
    const std::uint64_t unit = phase == store::CheckPhase::kTree ? MDFS_NODE_SIZE : 1;
    if (phase != store::CheckPhase::kTree && phase != store::CheckPhase::kData) return;
    if (!bar_ || phase != phase_) {
      bar_.reset();
      bar_ = std::make_unique<Progress>(fmt::format("checking {}", name(phase)), total * unit, wanted_);
      phase_ = phase;
      done_ = 0;
    }
    if (done > done_) bar_->add((done - done_) * unit);
    done_ = done;
  }
  void end() { bar_.reset(); }

 private:
  const bool wanted_;
  std::unique_ptr<Progress> bar_;
  store::CheckPhase phase_ = store::CheckPhase::kTree;
  std::uint64_t done_ = 0;
};

std::string_view name(store::Repair repair) {
  switch (repair) {
    case store::Repair::kNever:
      return "never";
    case store::Repair::kSafe:
      return "safe";
    case store::Repair::kForced:
      return "forced";
  }
  MDFS_CHECK(false);
}

void print_json(const store::CheckReport& report) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["uuid"] = report.volume_uuid.to_string();
  json["label"] = report.volume_name;
  json["generation"] = report.generation;
  json["finalized"] = report.finalized;
  json["objects"] = report.objects;
  json["items"] = report.items;
  json["nodes"] = report.nodes;
  json["used_blocks"] = report.used_blocks;
  json["data_bytes"] = report.data_bytes;
  json["findings"] = nlohmann::ordered_json::array();
  for (const store::Finding& finding : report.findings) {
    const store::FindingInfo& row = info(finding.id);
    json["findings"].push_back({{"number", row.number()},
                                {"name", row.name},
                                {"severity", name(row.severity)},
                                {"repair", name(row.repair)},
                                {"text", row.text},
                                {"where", finding.where},
                                {"inode", finding.about.object},
                                {"path", finding.path},
                                {"repaired", finding.repaired}});
  }
  json["total_findings"] = report.total_findings;
  json["remaining"] = report.remaining();
  json["changed"] = report.changed;
  json["repair_error"] = report.repair_error;
  json["exit_code"] = report.exit_code();
  print_out("{}\n", dump_json(json));
}

void print_findings(const store::CheckReport& report) {
  std::map<store::FindingId, unsigned> printed;
  for (const store::Finding& finding : report.findings) {
    const store::FindingInfo& row = info(finding.id);
    const unsigned count = ++printed[finding.id];
    if (count == 1) print_out("{} {} ({}): {}\n", row.number(), row.name, name(row.severity), row.text);
    const std::string path = finding.path.empty() ? "" : " (" + printable(finding.path) + ")";
    if (count <= kLinesOfAKind) print_out("    {}{}{}\n", finding.where, path, finding.repaired ? " [repaired]" : "");
  }
  for (const auto& [id, count] : printed)
    if (count > kLinesOfAKind) print_out("{} {}: {} more\n", info(id).number(), info(id).name, count - kLinesOfAKind);
  if (report.total_findings > report.findings.size())
    print_out("{} findings in all; the first {} are listed\n", report.total_findings, report.findings.size());
}

std::string count_of_findings(std::uint64_t count) { return fmt::format("{} finding{}", count, count == 1 ? "" : "s"); }

// What would repair the findings of a check that changed nothing.
std::string remedy(const store::CheckReport& report) {
  std::uint64_t safe = 0, forced = 0, never = 0;
  bool disk_missing = false;
  for (const store::Finding& finding : report.findings) {
    const store::FindingInfo& row = info(finding.id);
    if (row.severity == store::Severity::kNote) continue;
    disk_missing = disk_missing || finding.id == store::FindingId::kDiskMissing ||
                   finding.id == store::FindingId::kDiskStale || finding.id == store::FindingId::kDiskFailed;
    (row.repair == store::Repair::kSafe ? safe : row.repair == store::Repair::kForced ? forced : never) += 1;
  }
  if (disk_missing) return "the tree is not repaired while a disk is missing";
  if (safe + forced == 0) return "there is nothing to repair them from";
  return fmt::format("{} repairs {}", forced > 0 ? "-y" : "-p", never > 0 ? "the others" : "what is wrong") +
         (never > 0 ? fmt::format("; for {} there is no copy", never) : "");
}

// Some are named by their numbers only.
bool has_unnamed_objects(const store::CheckReport& report) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const store::Finding& finding) { return finding.about.object != 0 && finding.path.empty(); });
}

void print_text(const Options& options, const store::CheckReport& report) {
  print_findings(report);
  print_out("volume {}{}, generation {}: {} objects, {} tree nodes{}\n", report.volume_uuid.to_string(),
            report.volume_name.empty() ? "" : " '" + report.volume_name + "'", report.generation, report.objects,
            report.nodes, options.data ? ", " + format_size(report.data_bytes) + " of data verified" : "");
  if (has_unnamed_objects(report)) print_out("an object is a file by its inode number: find DIRECTORY -inum NUMBER\n");
  if (!report.repair_error.empty()) print_out("not repaired: {}\n", report.repair_error);
  const std::uint64_t remaining = report.remaining();
  if (options.rollback && report.changed && report.repair_error.empty())
    print_out("rolled back to generation {}; the commits after it are given up\n", report.generation);
  if (remaining == 0)
    print_out("{}\n", report.exit_code() == 0 ? "clean" : "everything found was repaired");
  else if (options.mode() == store::RepairMode::kNothing)
    print_out("{}; nothing was changed: {}\n", count_of_findings(remaining), remedy(report));
  else
    print_out("{} remain{}\n", count_of_findings(remaining), remaining == 1 ? "s" : "");
}

Result<std::vector<std::unique_ptr<device::Disk>>> open_all(const Options& options, device::OpenMode mode) {
  MDFS_TRY_ASSIGN(const std::shared_ptr<device::UringContext> ring, device::UringContext::create());
  MDFS_TRY_ASSIGN(const device::FoundDisks found, device::find_disks(options.disks));
  std::vector<std::unique_ptr<device::Disk>> disks;
  const auto patience = std::chrono::steady_clock::now() + kLockGrace;
  for (const std::string& path : found.paths) {
    MDFS_TRY_ASSIGN(auto disk, device::open_disk_when_free(path, mode, ring, patience));
    disks.push_back(std::move(disk));
  }
  return disks;
}

Result<store::CheckReport> check(const Options& options) {
  const bool look = options.mode() == store::RepairMode::kNothing;
  MDFS_TRY_ASSIGN(auto disks, open_all(options, look ? device::OpenMode::kReadOnly : device::OpenMode::kReadWrite));
  Bars bars(!options.json);
  store::CheckOptions check;
  check.repair = options.mode();
  check.data = options.data;
  check.memory_bytes = options.memory_bytes;
  check.rollback = options.rollback;
  check.progress = [&](store::CheckPhase phase, std::uint64_t done, std::uint64_t total) {
    bars.show(phase, done, total);
  };
  SystemEnvironment environment;
  auto report = store::check_volume(std::move(disks), check, environment);
  bars.end();
  return report;
}

Status set_memory(Options& options) {
  if (options.memory.empty()) {
    options.memory_bytes = std::max(kLeastMemory, physical_memory_bytes() / kMemoryShare);
    return {};
  }
  MDFS_TRY_ASSIGN(options.memory_bytes, parse_size(options.memory, "--memory"));
  if (options.memory_bytes < kLeastMemory)
    return {Errc::kUsage, fmt::format("--memory {}: at least {}M", options.memory, kLeastMemory >> 20)};
  return {};
}

// One commit of the rings, with what a check of its tree finds.
struct CommitRow {
  store::FoundCommit commit;
  std::string state;  // "newest", "complete", "incomplete"
  std::string tree;   // "whole", "12 findings", or why it cannot be read
};

Result<std::vector<CommitRow>> list_commits(const Options& options) {
  MDFS_TRY_ASSIGN(auto disks, open_all(options, device::OpenMode::kReadOnly));
  MDFS_TRY_ASSIGN(std::vector<store::FoundCommit> commits, store::find_commits(std::move(disks)));
  std::vector<CommitRow> rows;
  bool newest = true;
  for (store::FoundCommit& commit : commits) {
    CommitRow row{std::move(commit), "incomplete", "not checked"};
    if (row.commit.valid) {
      row.state = newest ? "newest" : "complete";
      newest = false;
      Options one = options;
      one.no_change = true;
      one.preen = one.yes = false;
      one.rollback = row.commit.slot.generation;
      const auto report = check(one);
      row.tree = !report.ok()                    ? report.error().message()
                 : report->lasting_findings == 0 ? "whole"
                                                 : count_of_findings(report->lasting_findings);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// As in fsck(8), the statuses add up: the result of the check stays in the sum.
int end_output() {
  const Status written = finish_output();
  if (written.ok()) return 0;
  print_err("mdfsck: the report cannot be written: {}\n", written.error().message());
  return kExitError;
}

// The exit status of a check that cannot be made.
int say_why(const Error& error) {
  print_err("mdfsck: {}\n", printable(error.message()));
  return error.code == Errc::kInvalidArgument || error.code == Errc::kUsage ? kExitUsage : kExitError;
}

int print_commits(const Options& options) {
  const auto rows = list_commits(options);
  if (!rows.ok()) return say_why(rows.error());
  if (options.json) {
    nlohmann::ordered_json json;
    json["output_version"] = kOutputVersion;
    json["commits"] = nlohmann::ordered_json::array();
    for (const CommitRow& row : *rows)
      json["commits"].push_back({{"generation", row.commit.slot.generation},
                                 {"commit_id", row.commit.slot.commit_id.to_string()},
                                 {"time_ns", row.commit.slot.time_ns},
                                 {"disks", row.commit.disks},
                                 {"finalized", row.commit.slot.state == MDFS_SLOT_COMMITTED},
                                 {"state", row.state},
                                 {"tree", row.tree}});
    print_out("{}\n", dump_json(json));
  } else {
    print_out("{:>12}  {:<20}  {:>5}  {:<10}  {}\n", "GENERATION", "TIME (UTC)", "DISKS", "STATE", "TREE");
    for (const CommitRow& row : *rows)
      print_out("{:>12}  {:<20}  {:>5}  {:<10}  {}\n", row.commit.slot.generation,
                fmt::format("{:%F %T}", fmt::gmtime(static_cast<std::time_t>(row.commit.slot.time_ns / 1'000'000'000))),
                row.commit.disks, row.state, row.tree);
  }
  return end_output();
}

// What fsck(8) hands on to every checker and means nothing here: -T, -f, -C or -C and a number.
std::vector<std::string> without_foreign_options(int argc, char** argv) {
  std::vector<std::string> kept;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 wants them last first
    const std::string word = argv[i];
    const bool progress = word.starts_with("-C") && word.find_first_not_of("0123456789", 2) == std::string::npos;
    if (word != "-T" && word != "-f" && !progress) kept.push_back(word);
  }
  return kept;
}

// A repair is one commit, and a check writes nothing: it can end anywhere.
void cancel(int) { ::_exit(kExitCancelled); }

int run(int argc, char** argv) {
  start_log("mdfsck");
  Options options;
  CLI::App app{
      "Check and repair an MDFS volume that is not mounted.\nExit codes: 0 clean, 1 repaired, 4 errors remain, 8 not "
      "checked, 16 wrong usage, 32 interrupted.",
      "mdfsck"};
  app.set_version_flag("--version", version_text("mdfsck"), "Show the version and exit");
  app.set_help_flag("-h,--help", "Show this help and exit");
  auto* no_change = app.add_flag("-n", options.no_change, "Change nothing (default)");
  auto* preen = app.add_flag("-p,-a", options.preen, "Make only the repairs that lose nothing");
  auto* yes = app.add_flag("-y", options.yes, "Make all possible repairs");
  no_change->excludes(preen)->excludes(yes);
  preen->excludes(yes);
  add_cluster_options(app);
  app.add_flag("--data", options.data, "Read all data and verify their checksums");
  app.add_option("--memory", options.memory,
                 "Use about this much memory, such as 1G (default: a quarter of the machine's)");
  app.add_flag("--json", options.json, "Print the report as JSON");
  auto* list = app.add_flag("--list-commits", options.list_commits,
                            "List the commits on the disks, and check each; change nothing")
                   ->excludes(preen)
                   ->excludes(yes);
  app.add_option("--rollback", options.rollback,
                 "Check this older commit; with -p or -y, make it the newest and discard later ones")
      ->type_name("GENERATION")
      ->check([](const std::string& text) -> std::string {
        const auto generation = parse_number(text, "--rollback");
        if (generation.ok() && *generation > 0) return {};
        return fmt::format("'{}': must be a generation, as --list-commits shows them", text);
      })
      ->excludes(list);
  app.add_option("DISK", options.disks, "Disks of the volume, or directories of disks; one disk is enough")->required();
  if (asks_for_completion(argc, argv)) {
    print_completions(app, argc, argv);
    return end_output();
  }
  try {
    app.parse(without_foreign_options(argc, argv));
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) {
      print_help(app, problem);
      return end_output();
    }
    print_err("mdfsck: {} (see --help)\n", printable(problem.what()));
    return kExitUsage;
  }
  if (const Status memory = set_memory(options); !memory.ok()) {
    print_err("mdfsck: {} (see --help)\n", printable(memory.error().where));
    return kExitUsage;
  }
  ::signal(SIGINT, cancel);
  ::signal(SIGTERM, cancel);
  if (options.list_commits) return print_commits(options);
  const auto report = check(options);
  if (!report.ok()) return say_why(report.error());
  if (options.json)
    print_json(*report);
  else
    print_text(options, *report);
  return report->exit_code() | end_output();
}

}  // namespace
}  // namespace mdfs::tools

int main(int argc, char** argv) {
  mdfs::tools::open_standard_streams();
  return mdfs::tools::run(argc, argv);
}
