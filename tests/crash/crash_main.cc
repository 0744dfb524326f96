// Crash enumeration: every sequence of a few operations, every state that a power cut could leave, each one judged.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "crash_run.h"

namespace mdfs::crash {
namespace {

constexpr const char* kUsage =
    "usage: crash_tests [--length N] [--sample N] [--ops 'OPERATION; ...'] [--disks N] [--depth 1|2] [--seed N]\n"
    "                   [--jobs N] [--seconds N] [--cuts few|many]\n"
    "                   [--spoiled 1] [--canary 1]\n"
    "  --length N   all sequences of up to N letters of the alphabet (default 1)\n"
    "  --sample N   and N seeded sequences of 3 to 6 letters\n"
    "  --seconds N  stop after that long\n"
    "  --cuts few   fewer subsets of outstanding writes (default with --length 2 and more)\n"
    "  --spoiled 1  one copy of each tree node is bad to begin with; two disks and more\n"
    "  --canary 1   flushes lie: succeeds if the loss is seen\n"
    "  --ops        one sequence, as a failure prints it\n";

struct Arguments {
  unsigned length = 1;
  unsigned samples = 0;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  unsigned seconds = 0;
  bool canary = false;
  std::string cuts;
  std::string operations;
  RunOptions run;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 >= argc) return false;
    const unsigned number = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    if (option == "--length") {
      arguments.length = number;
    } else if (option == "--sample") {
      arguments.samples = number;
    } else if (option == "--jobs") {
      arguments.jobs = std::max(1u, number);
    } else if (option == "--seconds") {
      arguments.seconds = number;
    } else if (option == "--disks") {
      arguments.run.disks = number;
    } else if (option == "--depth") {
      arguments.run.depth = number;
    } else if (option == "--seed") {
      arguments.run.seed = number;
    } else if (option == "--spoiled") {
      arguments.run.spoiled = number != 0;
    } else if (option == "--canary") {
      arguments.canary = arguments.run.flushes_lie = number != 0;
    } else if (option == "--cuts") {
      arguments.cuts = argv[i + 1];
    } else if (option == "--ops") {
      arguments.operations = argv[i + 1];
    } else {
      return false;
    }
  }
  if (arguments.cuts.empty()) arguments.cuts = arguments.length >= 2 ? "few" : "many";
  if (arguments.cuts == "few") {
    arguments.run.bounds.all_subsets_up_to = 5;
    arguments.run.bounds.each_one_up_to = 16;
    arguments.run.bounds.samples = 6;
  }
  arguments.run.bounds.seed = arguments.run.seed;
  return arguments.run.disks >= 1 && (arguments.cuts == "few" || arguments.cuts == "many");
}

std::vector<std::string> sequences(const Arguments& arguments) {
  if (!arguments.operations.empty()) return {arguments.operations};
  const std::vector<std::string> letters = alphabet();
  std::vector<std::string> all, last{""};
  for (unsigned length = 0; length < arguments.length; ++length) {
    std::vector<std::string> longer;
    for (const std::string& before : last)
      for (const std::string& letter : letters) longer.push_back(before.empty() ? letter : before + "; " + letter);
    all.insert(all.end(), longer.begin(), longer.end());
    last = std::move(longer);
  }
  std::mt19937_64 generator(arguments.run.seed);
  for (unsigned i = 0; i < arguments.samples; ++i) {
    std::string sequence;
    for (auto left = 3 + generator() % 4; left > 0; --left)
      sequence += (sequence.empty() ? "" : "; ") + letters[generator() % letters.size()];
    all.push_back(std::move(sequence));
  }
  return all;
}

int run(const Arguments& arguments) {
  const std::vector<std::string> all = sequences(arguments);
  const test::MemoryDisks base = make_base_disks(arguments.run);
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> bad_usage{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size(); i = next++) {
      if (arguments.seconds > 0 && std::chrono::steady_clock::now() - start > std::chrono::seconds(arguments.seconds))
        return;
      const auto operations = parse_operations(all[i]);
      if (!operations.ok()) {
        std::fprintf(stderr, "%s\n", operations.error().message().c_str());
        bad_usage = true;
        return;
      }
      const std::string wrong = try_operations(*operations, base, arguments.run, totals);
      if (wrong.empty()) continue;
      std::printf("LOST: %s\n  %s\n  again: crash_tests --disks %u --seed %llu --depth %u --ops '%s'\n", all[i].c_str(),
                  wrong.c_str(), arguments.run.disks, static_cast<unsigned long long>(arguments.run.seed),
                  arguments.run.depth, all[i].c_str());
      std::fflush(stdout);
      if (totals.lost == 0) ++totals.lost;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < arguments.jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (bad_usage) return 2;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%zu sequences, %llu states tried in %.0f s\n", std::min<std::size_t>(next, all.size()),
              static_cast<unsigned long long>(totals.states), seconds);
  std::printf("%zu distinct crash states, %llu lost\n", totals.distinct.size(),
              static_cast<unsigned long long>(totals.lost));
  return (totals.lost > 0) == arguments.canary ? 0 : 1;
}

}  // namespace
}  // namespace mdfs::crash

int main(int argc, char** argv) {
  mdfs::crash::Arguments arguments;
  if (!mdfs::crash::parse(argc, argv, arguments)) {
    std::fputs(mdfs::crash::kUsage, stderr);
    return 2;
  }
  if (!mdfs::set_log_level("off").ok()) return 2;
  return mdfs::crash::run(arguments);
}
