// A distribution of times in bounded memory: counts in bins whose width grows with the time. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace mdfs::meter {

// Times in seconds. Each octave has 64 bins, so a percentile is at most 1.6 % above the exact one. Count, largest and
// smallest time are exact. Times below 1 ns count as 1 ns, times from 2^62 ns on share the last bin. One thread.
class Distribution {
 public:
  void add(double seconds);
  void add(const Distribution& others);

  std::uint64_t count() const { return count_; }
  double least_s() const { return count_ > 0 ? least_s_ : 0; }
  double most_s() const { return most_s_; }
  // The upper end of the bin that holds the time of this rank (nearest rank, share in 0..1), at most the largest time.
  // 0 without times.
  double percentile_s(double share) const;

  // A bin that is not empty.
  struct Bin {
    double low_s = 0;
    double high_s = 0;
    std::uint64_t count = 0;
  };
  std::vector<Bin> bins() const;

 private:
  std::vector<std::uint64_t> counts_;  // by bin, as far as there are any
  std::uint64_t count_ = 0;
  double least_s_ = 0;
  double most_s_ = 0;
};

}  // namespace mdfs::meter
