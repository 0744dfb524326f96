// Formulas of queueing theory, which simulated queues must meet. Arrivals are Poisson; a sojourn is wait and service.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mdfs::sim {

// Pollaczek and Khinchine: the mean sojourn in an M/D/1 queue, in seconds. Needs rate_per_s * service_s < 1.
inline double md1_sojourn_s(double rate_per_s, double service_s) {
  const double load = rate_per_s * service_s;
  return service_s * (1 + load / (2 * (1 - load)));
}

// Erlang C: the mean sojourn in an M/M/c queue, in seconds. Needs rate_per_s * service_s < servers.
inline double mmc_sojourn_s(double rate_per_s, double service_s, unsigned servers) {
  const double offered = rate_per_s * service_s;
  const double c = servers;
  double term = 1;
  double sum = 0;
  for (unsigned i = 0; i < servers; ++i) {
    sum += term;
    term *= offered / (i + 1);
  }
  const double queued = term * c / (c - offered);
  const double wait_probability = queued / (sum + queued);
  return service_s + wait_probability * service_s / (c - offered);
}

}  // namespace mdfs::sim
