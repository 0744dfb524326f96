// Bins of a distribution: an octave is cut into equal parts.
// SPDX-License-Identifier: Apache-2.0
#include "meter/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mdfs::meter {
namespace {

constexpr unsigned kBinBits = 6;  // 64 bins an octave
constexpr std::uint64_t kBinsOfOctave = 1u << kBinBits;
constexpr double kMostNs = 0x1p62;
constexpr double kNs = 1e-9;

// Whole nanoseconds below 64 have a bin each.
std::size_t bin_of(double seconds) {
  const auto ns = static_cast<std::uint64_t>(std::clamp(seconds / kNs, 1.0, kMostNs));
  if (ns < kBinsOfOctave) return ns;
  const auto shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBinBits;
  return shift * kBinsOfOctave + (ns >> shift);
}

// The first whole nanosecond of a bin.
double begin_of(std::size_t bin) {
  if (bin < kBinsOfOctave) return static_cast<double>(bin) * kNs;
  const std::size_t shift = bin / kBinsOfOctave - 1;
  return std::ldexp(static_cast<double>(bin - shift * kBinsOfOctave), static_cast<int>(shift)) * kNs;
}

}  // namespace

void Distribution::add(double seconds) {
  const std::size_t bin = bin_of(seconds);
  if (bin >= counts_.size()) counts_.resize(bin + 1);
  ++counts_[bin];
  least_s_ = count_ == 0 ? seconds : std::min(least_s_, seconds);
  most_s_ = std::max(most_s_, seconds);
  ++count_;
}

void Distribution::add(const Distribution& others) {
  if (others.count_ == 0) return;
  if (others.counts_.size() > counts_.size()) counts_.resize(others.counts_.size());
  for (std::size_t i = 0; i < others.counts_.size(); ++i) counts_[i] += others.counts_[i];
  least_s_ = count_ == 0 ? others.least_s_ : std::min(least_s_, others.least_s_);
  most_s_ = std::max(most_s_, others.most_s_);
  count_ += others.count_;
}

double Distribution::percentile_s(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    passed += counts_[i];
    if (passed >= rank) return passed == count_ ? most_s_ : std::clamp(begin_of(i + 1), least_s_, most_s_);
  }
  return most_s_;
}

std::vector<Distribution::Bin> Distribution::bins() const {
  std::vector<Bin> found;
  for (std::size_t i = 0; i < counts_.size(); ++i)
    if (counts_[i] > 0) found.push_back({begin_of(i), begin_of(i + 1), counts_[i]});
  return found;
}

}  // namespace mdfs::meter
