// Random numbers for simulations: the same seed gives the same numbers with every compiler and library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace mdfs::model {

// A Mersenne twister (mt19937_64). One thread. Parameters and results of a distribution have the same unit.
class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}

  std::uint64_t bits() { return generator_(); }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }
  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(generator_()) * bound) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  std::mt19937_64 generator_;
};

}  // namespace mdfs::model
