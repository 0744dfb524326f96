// Fuzz target: machine files, what a machine is compiled into, and price files.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "fuzz.h"
#include "model/engine.h"
#include "model/machine.h"
#include "model/price_file.h"
#include "model/random.h"
#include "model/route.h"

using namespace mdfs;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(fuzz::input(data, size));
  const auto prices = model::parse_prices(text, "input");
  MDFS_CHECK(prices.ok() || prices.error().where.find('\n') == std::string::npos);
  const auto machine = model::parse_machine(text, "input");
  if (!machine.ok()) {
    MDFS_CHECK(machine.error().where.find('\n') == std::string::npos);  // one line, whatever the file holds
    return 0;
  }
  MDFS_CHECK(!model::canonical_text(*machine).empty() && !model::hash_text(*machine).empty());
  for (const unsigned disks : {1u, 7u, 64u}) {
    (void)model::row_offset(*machine, disks);
    for (const bool as_disks : {false, true}) {
      const model::Route route(as_disks ? model::as_disks(*machine) : *machine, disks, as_disks);
      model::Random random(1);
      model::Request request;
      request.disk = disks - 1;
      request.full_bytes = 65536;
      request.part_bytes = 4096;
      std::vector<model::Step> steps;
      for (const auto phase :
           {model::Route::Phase::kBefore, model::Route::Phase::kExtent, model::Route::Phase::kAfter}) {
        route.steps(phase, request, random, steps);
        MDFS_CHECK(steps.size() <= route.max_steps());
      }
    }
  }
  return 0;
}
