// Steps of a measurement.
// SPDX-License-Identifier: Apache-2.0
#include "meter/measure.h"

#include <algorithm>
#include <utility>

#include "meter/clients.h"
#include "meter/place.h"
#include "meter/ramp.h"
#include "support/memory.h"

namespace mdfs::tools {
namespace {

// A place, and what has been measured there.
struct Subject {
  MeterPlace place;
  std::vector<MeasuredStep> steps{};  // by clients
  std::optional<unsigned> next{};     // clients of the step to come
  meter::Step step{};                 // under way

  std::vector<meter::Tried> tried() const {
    std::vector<meter::Tried> all;
    for (const MeasuredStep& one : steps) all.push_back({one.step.clients, one.broken.empty()});
    return all;
  }

  // Keeps the step under way.
  void keep(const meter::Limits& limits) {
    const meter::Step* fewer = nullptr;
    for (const MeasuredStep& one : steps)
      if (one.broken.empty() && one.step.clients < step.clients) fewer = &one.step;
    MeasuredStep measured{step, meter::broken_limit(limits, step, fewer)};
    const auto behind = std::find_if(steps.begin(), steps.end(),
                                     [&](const MeasuredStep& one) { return one.step.clients > step.clients; });
    steps.insert(behind, std::move(measured));
    step = {};
  }
};

Status measure_round(const Measurement& wanted, Subject& subject, unsigned round,
                     const std::atomic<bool>& interrupted) {
  if (!subject.next) return {};
  MDFS_TRY(subject.place.begin(wanted.profile, wanted.drop_caches, interrupted));
  MDFS_TRY_ASSIGN(const meter::Step step, run_clients({.profile = wanted.profile,
                                                       .place = subject.place,
                                                       .clients = *subject.next,
                                                       .duration_s = wanted.duration_s,
                                                       .seed = wanted.seed + round,
                                                       .interrupted = interrupted}));
  subject.step.add(step);
  return {};
}

// One step in each place that has one to come.
Status measure_steps(const Measurement& wanted, std::vector<Subject>& subjects, const std::atomic<bool>& interrupted) {
  for (unsigned round = 0; round < wanted.rounds; ++round)
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      const std::size_t turn = round % 2 == 0 ? i : subjects.size() - 1 - i;
      MDFS_TRY(measure_round(wanted, subjects[turn], round, interrupted));
    }
  for (Subject& subject : subjects)
    if (subject.next) subject.keep(wanted.profile.limits);
  return {};
}

// False: nothing is left to measure.
bool choose_clients(const Measurement& wanted, std::vector<Subject>& subjects) {
  bool any = false;
  for (Subject& subject : subjects) {
    subject.next = std::nullopt;
    if (wanted.ramp) subject.next = meter::next_clients(subject.tried(), wanted.clients);
    if (!wanted.ramp && subject.steps.empty()) subject.next = wanted.clients;
    any = any || subject.next;
  }
  return any;
}

}  // namespace

Result<std::vector<MeasuredPlace>> measure(const Measurement& wanted, const std::atomic<bool>& interrupted) {
  MDFS_TRY(check_buffers(wanted.profile, wanted.clients));
  if (wanted.drop_caches) MDFS_TRY(may_drop_caches());
  std::vector<Subject> subjects;
  for (const std::string& path : wanted.paths) {
    MDFS_TRY_ASSIGN(MeterPlace place,
                    MeterPlace::look(path, wanted.profile, wanted.clients, wanted.most_bytes, wanted.direct));
    subjects.push_back({.place = std::move(place)});
  }
  for (Subject& subject : subjects) MDFS_TRY(subject.place.prepare(wanted.profile, interrupted));
  while (choose_clients(wanted, subjects)) MDFS_TRY(measure_steps(wanted, subjects, interrupted));
  std::vector<MeasuredPlace> measured;
  for (Subject& subject : subjects) {
    MDFS_TRY(subject.place.remove());
    const unsigned held = meter::most_held(subject.tried());
    measured.push_back({.path = subject.place.path(),
                        .filesystem = subject.place.filesystem(),
                        .is_file = subject.place.is_file(),
                        .files = subject.place.files(),
                        .bytes = subject.place.bytes(),
                        .fits_memory = subject.place.bytes() < physical_memory_bytes(),
                        .steps = std::move(subject.steps),
                        .held = held});
  }
  return measured;
}

}  // namespace mdfs::tools
