// Presets as the papers used them.
// SPDX-License-Identifier: Apache-2.0
#include "sim/paper_setup.h"

#include <fmt/format.h>

namespace mdfs::sim {
namespace {

Result<PoissonPair> pair(const System& system, const geometry::Coord& length, const LoadOptions& options, bool scaled,
                         double share) {
  const RandomResult single = read_random(system, length, kRandomPositions, options.seed);
  PoissonPair result;
  result.single_delay_s = single.mean_delay_s;
  result.utilization = utilization_of(single.use, "disk");
  MDFS_TRY_ASSIGN(const System fixed, fixed_system(single.mean_delay_s));
  const double system_rate = share / single.mean_delay_s / (scaled ? result.utilization : 1);
  const double fixed_rate = scaled ? system_rate * result.utilization : system_rate;
  LoadOptions load = options;
  load.length = length;
  result.system_s = poisson(system, load, system_rate).mean.mean;
  result.fixed_s = poisson(fixed, load, fixed_rate).mean.mean;
  return result;
}

}  // namespace

Result<System> preset_system(const std::string& name, unsigned disks) {
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(name));
  MDFS_TRY_ASSIGN(Setup setup, default_setup(machine));
  setup.disks = disks;
  return System::make(std::move(setup));
}

Result<System> frame_system(const std::string& name, unsigned disks, bool uniform_seeks) {
  MDFS_TRY_ASSIGN(const model::Machine machine, model::find_machine(name));
  return frame_system(machine, disks, uniform_seeks);
}

Result<System> frame_system(const model::Machine& machine, unsigned disks, bool uniform_seeks) {
  Setup setup;
  setup.machine = machine;
  setup.disks = disks;
  setup.uniform_seeks = uniform_seeks;
  const std::uint64_t frames = std::uint64_t{kTimeSlices} * 64;
  MDFS_TRY_ASSIGN(setup.image, make_image(fmt::format("{}", frames * kFrameBytes),
                                          fmt::format("{}", kFrameBytes / kFrameExtents), true, 1));
  return System::make(std::move(setup));
}

Result<System> fixed_system(double service_s) {
  MDFS_TRY_ASSIGN(model::Machine machine, model::find_machine("fixed-server"));
  machine.stages.front().costs = {{.kind = model::Cost::Kind::kFixed, .low_s = service_s}};
  MDFS_TRY_ASSIGN(Setup setup, default_setup(machine));
  return System::make(std::move(setup));
}

LatencyFit fit_squares(const System& system, std::uint64_t seed, unsigned positions) {
  return fit_sizes(system, squares(system.setup().image, 512, 1536, 64), positions, seed);
}

Result<PoissonPair> same_load(const System& system, const geometry::Coord& length, double share,
                              const LoadOptions& options) {
  return pair(system, length, options, false, share);
}

Result<PoissonPair> scaled_load(const System& system, const geometry::Coord& length, double share,
                                const LoadOptions& options) {
  return pair(system, length, options, true, share);
}

}  // namespace mdfs::sim
