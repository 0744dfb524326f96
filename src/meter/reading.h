// What a measurement has counted: transfers by kind, with distributions, and late ones. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "meter/distribution.h"
#include "meter/transfers.h"

namespace mdfs::meter {

// Of one client, or of several together. Bounded memory. One thread.
struct Tally {
  MeterReading transfers;
  std::array<Distribution, kKinds> totals{};     // total times, by kind
  std::array<Distribution, kKinds> latencies{};  // by kind
  std::uint64_t due = 0;                         // transfers that had a deadline
  std::uint64_t late = 0;                        // those that ended after it

  void add(const TimedTransfer& transfer);
  void add(const Tally& others);
  std::uint64_t count() const;
  std::uint64_t bytes() const;
  double late_share() const { return due > 0 ? static_cast<double>(late) / static_cast<double>(due) : 0; }
  Distribution all_totals() const;  // of all kinds
};

// A measurement with so many clients at once.
struct Step {
  unsigned clients = 0;
  double measured_s = 0;  // from the start of all clients to the end of the last one; a sum if measured repeatedly
  Tally tally{};

  void add(const Step& again);
  // Bytes/s of all clients together, with all times between transfers; 0 without a measurement.
  double rate() const { return measured_s > 0 ? static_cast<double>(tally.bytes()) / measured_s : 0; }
};

}  // namespace mdfs::meter
