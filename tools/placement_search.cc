// Searches the placement tables for every number of disks and prints src/geometry/placement_tables.inc.
// Run: placement_search [--effort N] [--seed N] > src/geometry/placement_tables.inc
// First all row offsets (two dimensions) or pairs of offsets (three), then permutations by simulated annealing from
// the best of those. The same seed and effort give the same tables. Effort 1 takes about two
// minutes of one core; the checked-in tables name theirs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "geometry/placement_score.h"
#include "geometry/placement_tables.h"

namespace {

using mdfs::geometry::kLargestTable;
using mdfs::geometry::kLargestTable3d;
using Table = std::vector<std::uint16_t>;

constexpr double kStartTemperature = 4e-3;  // of differences of the mean ratio
constexpr double kEndTemperature = 2e-5;
constexpr double kGain =
    5e-4;  // a permutation must gain this much over plain offsets, which are easier to reason about

struct Effort {
  double factor = 1;
  std::uint64_t seed = 1;
};

Table multiples(unsigned slots, unsigned offset) {
  Table table(slots);
  for (unsigned i = 0; i < slots; ++i) table[i] = static_cast<std::uint16_t>(offset * i % slots);
  return table;
}

struct Best2d {
  Table row;
  unsigned offset = 0;  // 0: a permutation
  double typical = 0;
  unsigned excess = 0;
};

struct Best3d {
  Table row, plane;
  bool permutation = false;
  double typical = 0, slices = 0;
  double sum() const { return typical + slices; }
};

Best2d best_offset_2d(unsigned slots) {
  Best2d best{multiples(slots, slots == 1 ? 0 : 1), 1, 1e9, 0};
  for (unsigned offset = 1; offset <= std::max(1u, slots / 2); ++offset) {  // s and K - s are mirror images
    if (std::gcd(offset, slots) != 1) continue;
    const Table row = multiples(slots, offset);
    const double typical = mdfs::geometry::typical_2d(row);
    if (typical < best.typical - 1e-9) best = {row, offset, typical, mdfs::geometry::worst_excess_2d(row)};
  }
  return best;
}

Best3d best_offsets_3d(unsigned slots) {
  Best3d best{multiples(slots, 0), multiples(slots, 0), false, 1e9, 1e9};
  for (unsigned s = slots == 1 ? 0 : 1; s <= slots / 2; ++s)
    for (unsigned t = slots == 1 ? 0 : 1; t < std::max(1u, slots); ++t) {
      const Table row = multiples(slots, s), plane = multiples(slots, t);
      const double typical = mdfs::geometry::typical_3d(row, plane);
      if (typical >= best.sum() - 1) continue;  // slices are at least 1
      const double slices = mdfs::geometry::slices_3d(row, plane);
      if (typical + slices < best.sum() - 1e-9) best = {row, plane, false, typical, slices};
    }
  return best;
}

// Simulated annealing by swapping two entries; entry 0 stays. score(tables) is to be small; accept(tables, score) is
// called for every state better than all before and may refuse it.
template <typename Score, typename Accept>
void anneal(std::vector<Table> tables, std::uint64_t steps, std::mt19937_64& random, Score score, Accept accept) {
  const std::size_t slots = tables[0].size();
  if (slots < 4) return;
  std::uniform_int_distribution<std::size_t> entry(1, slots - 1);
  std::uniform_real_distribution<double> uniform(0, 1);
  double current = score(tables);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    const double temperature = kStartTemperature * std::pow(kEndTemperature / kStartTemperature, done);
    Table& table = tables[random() % tables.size()];
    const std::size_t a = entry(random), b = entry(random);
    std::swap(table[a], table[b]);
    const double candidate = score(tables);
    if (candidate <= current || uniform(random) < std::exp((current - candidate) / temperature)) {
      current = candidate;
      accept(tables, candidate);
    } else {
      std::swap(table[a], table[b]);
    }
  }
}

Best2d search_2d(unsigned slots, const Effort& effort) {
  Best2d best = best_offset_2d(slots);
  const Best2d offsets = best;
  std::mt19937_64 random(effort.seed * 1000 + slots);
  const auto steps = static_cast<std::uint64_t>(effort.factor * 2e5 / slots);
  const auto score = [](const std::vector<Table>& tables) { return mdfs::geometry::typical_2d(tables[0]); };
  const auto accept = [&](const std::vector<Table>& tables, double typical) {
    if (typical >= std::min(best.typical - 1e-9, offsets.typical - kGain)) return;
    const unsigned excess = mdfs::geometry::worst_excess_2d(tables[0]);
    if (excess <= offsets.excess) best = {tables[0], 0, typical, excess};
  };
  Table shuffled = offsets.row;
  if (slots > 2) std::shuffle(shuffled.begin() + 1, shuffled.end(), random);
  anneal({offsets.row}, steps, random, score, accept);
  anneal({shuffled}, steps, random, score, accept);
  return best;
}

Best3d search_3d(unsigned slots, const Effort& effort) {
  Best3d best = best_offsets_3d(slots);
  const Best3d offsets = best;
  std::mt19937_64 random(effort.seed * 2000 + slots);
  const auto steps = static_cast<std::uint64_t>(effort.factor * 3e6 / slots / slots / slots);
  double slices = 0;
  const auto score = [&](const std::vector<Table>& tables) {
    slices = mdfs::geometry::slices_3d(tables[0], tables[1]);
    return mdfs::geometry::typical_3d(tables[0], tables[1]) + slices;
  };
  const auto accept = [&](const std::vector<Table>& tables, double sum) {
    const double typical = sum - slices;
    if (sum < std::min(best.sum() - 1e-9, offsets.sum() - kGain)) best = {tables[0], tables[1], true, typical, slices};
  };
  Table row(slots), plane(slots);
  std::iota(row.begin(), row.end(), 0);
  std::iota(plane.begin(), plane.end(), 0);
  if (slots > 2) {
    std::shuffle(row.begin() + 1, row.end(), random);
    std::shuffle(plane.begin() + 1, plane.end(), random);
  }
  anneal({row, plane}, steps, random, score, accept);
  return best;
}

void print_table(const char* name, unsigned slots, const Table& table) {
  std::string line = fmt::format("constexpr std::uint8_t {}_{}[] = {{{}}};", name, slots, fmt::join(table, ", "));
  while (line.size() > 118) {  // wrapped as clang-format would
    const std::size_t at = line.rfind(", ", 118);
    fmt::print("{}\n", line.substr(0, at + 1));
    line = "    " + line.substr(at + 2);
  }
  fmt::print("{}\n", line);
}

void print_index(const char* array, const char* name, unsigned largest) {
  fmt::print("constexpr std::array<std::span<const std::uint8_t>, {}> {} = {{{{{{}},", largest + 1, array);
  for (unsigned slots = 1; slots <= largest; ++slots) {
    if (slots % 8 == 1) fmt::print("\n   ");
    fmt::print(" {}_{}{}", name, slots, slots == largest ? "}};\n" : ",");
  }
}

void print_2d(const Effort& effort) {
  fmt::print("// Two dimensions: R.\n");
  for (unsigned slots = 1; slots <= kLargestTable; ++slots) {
    const Best2d best = search_2d(slots, effort);
    fmt::print("// {} disks: {}, typical {:.4f}, worst excess {}\n", slots,
               best.offset == 0 ? "permutation" : fmt::format("offset {}", best.offset), best.typical, best.excess);
    print_table("kRow2d", slots, best.row);
  }
  print_index("kRows2d", "kRow2d", kLargestTable);
}

void print_3d(const Effort& effort) {
  fmt::print("\n// Three dimensions: R and Q.\n");
  for (unsigned slots = 1; slots <= kLargestTable3d; ++slots) {
    const Best3d best = search_3d(slots, effort);
    fmt::print("// {} disks: {}, typical {:.4f}, slices {:.4f}\n", slots, best.permutation ? "permutations" : "offsets",
               best.typical, best.slices);
    print_table("kRow3d", slots, best.row);
    print_table("kPlane3d", slots, best.plane);
  }
  print_index("kRows3d", "kRow3d", kLargestTable3d);
  print_index("kPlanes3d", "kPlane3d", kLargestTable3d);
}

// Beyond the tables the best pair of offsets serves, without a search for permutations.
void print_pairs_3d() {
  fmt::print("\n// Three dimensions, {}..{} disks: row offset, plane offset.\n", kLargestTable3d + 1, kLargestTable);
  fmt::print("constexpr std::array<OffsetPair, {}> kOffsets3d = {{{{\n", kLargestTable - kLargestTable3d);
  for (unsigned slots = kLargestTable3d + 1; slots <= kLargestTable; ++slots) {
    const Best3d best = best_offsets_3d(slots);
    fmt::print("    {{{}, {}}},  // {}: typical {:.4f}, slices {:.4f}\n", best.row[1], best.plane[1], slots,
               best.typical, best.slices);
  }
  fmt::print("}}}};\n");
}

// The slower axes of images of rank 4 and 5. Only offsets coprime with the number of disks spread the indices of one
// place over all disks.
void print_slow(unsigned largest) {
  fmt::print("\n// Four and five dimensions: slots from one step to the next along the slower axes.\n");
  fmt::print("constexpr std::array<SlowPair, {}> kSlowOffsets = {{{{\n    {{0, 0}},\n", largest + 1);
  for (unsigned slots = 1; slots <= largest; ++slots) {
    const mdfs::geometry::PlacementTables tables = mdfs::geometry::tables_3d(slots);
    std::vector<double> scores(slots, 0);
    unsigned fourth = 0, fifth = 0;
    for (unsigned offset = 1; offset < slots; ++offset)
      if (std::gcd(offset, slots) == 1) {
        scores[offset] = mdfs::geometry::typical_slow(tables.row, tables.plane, offset);
        if (fourth == 0 || scores[offset] < scores[fourth] - 1e-9) fourth = offset;
      }
    const auto sum = [&](unsigned offset) {
      return scores[offset] + mdfs::geometry::typical_slow_plane(slots, fourth, offset);
    };
    for (unsigned offset = 1; offset < slots; ++offset)
      if (std::gcd(offset, slots) == 1 && (fifth == 0 || sum(offset) < sum(fifth) - 1e-9)) fifth = offset;
    fmt::print("    {{{}, {}}},  // {}: typical {:.4f} and {:.4f}, both {:.4f}\n", fourth, fifth, slots,
               slots > 1 ? scores[fourth] : 1.0, slots > 1 ? scores[fifth] : 1.0,
               mdfs::geometry::typical_slow_plane(slots, fourth, fifth));
  }
  fmt::print("}}}};\n");
}

}  // namespace

int main(int argc, char** argv) {
  Effort effort;
  CLI::App app("Searches the placement tables for every number of disks");
  app.add_option("--effort", effort.factor, "Length of the search, 1 = about two minutes")
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--seed", effort.seed, "Of the random numbers");
  CLI11_PARSE(app, argc, argv);
  fmt::print("// Tables of placements. Made by: placement_search --effort {} --seed {}\n", effort.factor, effort.seed);
  fmt::print("// Do not edit; clang-format off.\n// SPDX-License-Identifier: Apache-2.0\n");
  print_2d(effort);
  print_3d(effort);
  print_pairs_3d();
  print_slow(kLargestTable);
  return 0;
}
