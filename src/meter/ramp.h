// The ramp: how many clients are measured next, and which limit of the profile is broken. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "meter/profile.h"
#include "meter/reading.h"

namespace mdfs::meter {

std::string clients_text(unsigned clients);  // "1 client", "2 clients"

// The limit that a step breaks, with its value; empty if the step holds all limits. `fewer`: the step that holds them
// with the most clients below those of `step`; null if there is none.
std::string broken_limit(const Limits& limits, const Step& step, const Step* fewer);

struct Tried {
  unsigned clients = 0;
  bool holds = false;
};
// The most clients that hold the limits, below all that break one; 0 if a single client breaks one.
unsigned most_held(std::span<const Tried> tried);
// Clients double from 1 on, up to `most`, until a limit is broken. Then the ramp halves the gap between the clients
// that hold the limits and those that break one. Nothing: most_held() is the answer. Each answer differs from all in
// `tried`.
std::optional<unsigned> next_clients(std::span<const Tried> tried, unsigned most);

}  // namespace mdfs::meter
