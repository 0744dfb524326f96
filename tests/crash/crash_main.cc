// Crash enumeration: every sequence of a few operations, every state that a power cut could leave, each one judged.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "crash_run.h"

namespace mdfs::crash {
namespace {

constexpr unsigned kShortestSample = 3, kLongestSample = 6;  // operations
constexpr auto kBetweenLines = std::chrono::seconds(10);     // of progress

struct Arguments {
  unsigned length = 1;
  unsigned nested = 0;
  unsigned samples = 0;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  unsigned seconds = 0;
  unsigned failing_every = 0;
  std::string canary;
  std::string cuts;
  std::string operations;
  std::vector<unsigned> disks{2};
  RunOptions run;
};

void add_to(CLI::App& app, Arguments& arguments) {
  app.add_option("--length", arguments.length, "all sequences of up to so many operations")->capture_default_str();
  app.add_option("--nested", arguments.nested,
                 "sequences of up to so many operations are cut a second time while the volume recovers")
      ->capture_default_str();
  app.add_option("--sample", arguments.samples, "and so many seeded sequences of 3 to 6 operations");
  app.add_option("--ops", arguments.operations, "one sequence and no other, as a failure prints it");
  app.add_option("--disks", arguments.disks, "of the volume; several numbers: all sequences on each")
      ->delimiter(',')
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--kills", arguments.run.kill_every,
                 "every so-many-th state of a killed daemon is mounted and cut again; 0: none")
      ->capture_default_str();
  app.add_option("--rot", arguments.run.rot_every,
                 "with --protected: at every so-many-th kill a byte of a write of the newest commit is spoiled");
  app.add_option("--absent", arguments.run.absent_every,
                 "every so-many-th state is mounted without each disk in turn, and then with all; 0: none")
      ->capture_default_str();
  app.add_option("--again", arguments.run.kill_again_every,
                 "every so-many-th of these second mounts is killed, and mounted a third time and cut; 0: none")
      ->capture_default_str();
  app.add_option("--failing", arguments.failing_every,
                 "each sequence runs again while each disk in turn fails from its n-th write or flush on, for every "
                 "so-many-th n; the states are mounted with the disk, and by --absent without it; 0: never")
      ->capture_default_str();
  app.add_option("--seed", arguments.run.seed, "of samples")->capture_default_str();
  app.add_option("--cuts", arguments.cuts,
                 "how many subsets of outstanding writes: many (of single operations), few (of longer sequences)")
      ->check(CLI::IsMember({"few", "many"}));
  app.add_option("--jobs", arguments.jobs, "threads")->check(CLI::Range(1, 256));
  app.add_option("--seconds", arguments.seconds, "stop after so long");
  app.add_flag("--protected", arguments.run.is_protected,
               "all images have second copies, and each state is also read without each disk; three disks and more");
  app.add_option("--width", arguments.run.group_members,
                 "with --protected: so many extents of an image share a parity in place of their copies")
      ->check(CLI::IsMember({1u, 2u, 4u, 8u}))
      ->capture_default_str();
  app.add_flag("--spoiled", arguments.run.spoiled,
               "one copy of each tree node is bad to begin with; two disks and more");
  app.add_option("--canary", arguments.canary,
                 "plants a fault, and succeeds if a loss is seen: flushes lie; the flush that a mount makes first lies "
                 "(with --kills); an absent disk counts as agreeing (with --absent)")
      ->check(CLI::IsMember({"flushes", "mount", "absent"}));
}

struct Sequence {
  std::string text;
  unsigned operations = 0;
  std::size_t known = 0;  // operations in front that are a sequence of their own
};

// The operations are well formed.
std::size_t operations_in(const std::string& text) { return text.empty() ? 0 : parse_operations(text)->size(); }

std::vector<Sequence> sequences(const Arguments& arguments) {
  if (!arguments.operations.empty()) return {{arguments.operations, 1}};
  std::vector<std::string> operations = set_of_operations();
  if (arguments.run.group_members > 1)
    for (std::string& more : set_of_parity_operations()) operations.push_back(std::move(more));
  std::vector<Sequence> all, last{{"", 0}};
  const auto longer = [](const Sequence& before, const std::string& operation) {
    return Sequence{before.text.empty() ? operation : before.text + "; " + operation, before.operations + 1};
  };
  for (unsigned length = 0; length < arguments.length; ++length) {
    std::vector<Sequence> next;
    for (const Sequence& before : last) {
      const std::size_t known = operations_in(before.text);
      for (const std::string& operation : operations) {
        next.push_back(longer(before, operation));
        next.back().known = known;
      }
    }
    all.insert(all.end(), next.begin(), next.end());
    last = std::move(next);
  }
  std::mt19937_64 generator(arguments.run.seed);
  for (unsigned i = 0; i < arguments.samples; ++i) {
    Sequence sequence;
    for (auto left = kShortestSample + generator() % (kLongestSample - kShortestSample + 1); left > 0; --left)
      sequence = longer(sequence, operations[generator() % operations.size()]);
    all.push_back(std::move(sequence));
  }
  return all;
}

bool few_cuts(const Arguments& arguments, const Sequence& sequence) {
  return arguments.cuts.empty() ? sequence.operations > 1 : arguments.cuts == "few";
}

RunOptions options_for(const Arguments& arguments, const Sequence& sequence) {
  RunOptions options = arguments.run;
  options.depth = sequence.operations <= arguments.nested ? 2 : 1;
  options.bounds.seed = options.seed;
  options.known = sequence.known;
  if (few_cuts(arguments, sequence)) {
    options.bounds.all_subsets_up_to = 5;
    options.bounds.each_one_up_to = 16;
    options.bounds.samples = 6;
  }
  return options;
}

// A command that does it once more, from the root of the sources.
std::string again(const Arguments& arguments, const Sequence& sequence) {
  const RunOptions options = options_for(arguments, sequence);
  return fmt::format(
      "./dev crash --disks {} --seed {} --cuts {} --nested {} --kills {} --absent {} --again {}{}{} --ops '{}'",
      options.disks, options.seed, few_cuts(arguments, sequence) ? "few" : "many", options.depth - 1,
      options.kill_every, options.absent_every, options.kill_again_every,
      (options.spoiled ? std::string(" --spoiled") : std::string()) + (options.is_protected ? " --protected" : "") +
          (options.group_members > 1 ? fmt::format(" --width {}", options.group_members) : std::string()) +
          (options.rot_every > 0 ? fmt::format(" --rot {}", options.rot_every) : std::string()),
      arguments.failing_every > 0 ? fmt::format(" --failing {}", arguments.failing_every) : "", sequence.text);
}

// Tries sequences until there are no more; each thread runs one of these.
class Work {
 public:
  Work(const Arguments& arguments, Totals& totals)
      : arguments_(arguments),
        sequences_(sequences(arguments)),
        base_(make_base_disks(arguments.run)),
        totals_(totals) {}

  void run() {
    for (std::size_t i = next_++; i < sequences_.size() && !out_of_time(); i = next_++) {
      const Sequence& sequence = sequences_[i];
      const auto operations = parse_operations(sequence.text);
      if (!operations.ok()) {
        fmt::print(stderr, "{}\n", operations.error().message());
        bad_usage_ = true;
        return;
      }
      const std::string wrong = try_operations(*operations, base_, options_for(arguments_, sequence), totals_);
      ++tried_;
      if (!wrong.empty()) print_loss(sequence, wrong);
      if (arguments_.failing_every > 0) try_failures(sequence, *operations);
    }
  }

  // A line now and then, on a terminal; returns when all have been tried.
  void show_progress() {
    auto shown = std::chrono::steady_clock::now();
    while (next_ < sequences_.size() && !out_of_time() && !bad_usage_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (std::chrono::steady_clock::now() - shown < kBetweenLines) continue;
      shown = std::chrono::steady_clock::now();
      fmt::print(stderr, "{} of {} sequences, {} states, {} lost\n", tried_.load(), sequences_.size(),
                 totals_.states.load(), totals_.lost.load());
    }
  }

  bool bad_usage() const { return bad_usage_; }
  void print() const {
    fmt::print("{} disks: {} sequences in {:.0f} s\n", arguments_.run.disks, tried_.load(), seconds());
    std::fflush(stdout);
  }

 private:
  void print_loss(const Sequence& sequence, const std::string& wrong) const {
    fmt::print("LOST: {}\n  {}\n  again: {}\n", sequence.text, wrong, again(arguments_, sequence));
    std::fflush(stdout);
  }

  void try_failures(const Sequence& sequence, const std::vector<Operation>& operations) {
    RunOptions options = options_for(arguments_, sequence);
    options.depth = 1;
    options.kill_every = 0;
    options.known = 0;
    options.bounds.all_subsets_up_to = 3;
    options.bounds.each_one_up_to = 8;
    options.bounds.samples = 3;
    for (unsigned disk = 0; disk < arguments_.run.disks; ++disk)
      for (const device::Op op : {device::Op::kFlush, device::Op::kWrite})
        for (std::uint64_t nth = disk % arguments_.failing_every; !out_of_time(); nth += arguments_.failing_every) {
          options.failure = {disk, op, nth};
          bool struck = false;
          const std::string wrong = try_operations(operations, base_, options, totals_, &struck);
          if (!wrong.empty())
            print_loss(sequence, fmt::format("disk {} fails from its {} number {} on: {}", disk,
                                             op == device::Op::kFlush ? "flush" : "write", nth, wrong));
          if (!struck) break;
        }
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool out_of_time() const { return arguments_.seconds > 0 && seconds() > arguments_.seconds; }

  const Arguments& arguments_;
  const std::vector<Sequence> sequences_;
  const test::MemoryDisks base_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Totals& totals_;
  std::atomic<std::size_t> next_{0}, tried_{0};
  std::atomic<bool> bad_usage_{false};
};

int run(Arguments arguments) {
  arguments.run.flushes_lie = arguments.canary == "flushes";
  arguments.run.mount_flush_lies = arguments.canary == "mount";
  arguments.run.believes_absent = arguments.canary == "absent";
  Totals totals;
  for (const unsigned disks : arguments.disks) {
    arguments.run.disks = disks;
    Work work(arguments, totals);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < arguments.jobs; ++i) threads.emplace_back([&] { work.run(); });
    if (isatty(STDERR_FILENO) != 0) work.show_progress();
    for (std::thread& thread : threads) thread.join();
    if (work.bad_usage()) return 2;
    work.print();
  }
  fmt::print("{} states rebuilt\n", totals.states.load());
  fmt::print("{} distinct crash states, {} lost\n", totals.distinct.size(), totals.lost.load());
  return (totals.lost > 0) == !arguments.canary.empty() ? 0 : 1;
}

}  // namespace
}  // namespace mdfs::crash

int main(int argc, char** argv) {
  CLI::App app("Cuts the power at every point of every sequence of operations, mounts, and looks for what was lost.",
               "crash_tests");
  mdfs::crash::Arguments arguments;
  mdfs::crash::add_to(app, arguments);
  CLI11_PARSE(app, argc, argv);
  if (!mdfs::set_log_level("off").ok()) return 2;
  return mdfs::crash::run(std::move(arguments));
}
