// Which operations there are.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/maintenance.h"

#include "maintenance/balance.h"
#include "maintenance/defrag.h"
#include "maintenance/drain.h"
#include "maintenance/relocator.h"
#include "maintenance/runner.h"
#include "maintenance/scrub.h"

namespace mdfs::maintenance {

std::unique_ptr<volume::Operations> make_operations(volume::MaintainedVolume& volume) {
  auto runner = std::make_unique<Runner>(volume.store(), volume.environment(), volume.readers());
  runner->add(OperationKind::kDefrag, std::make_unique<Defrag>(volume));
  runner->add(OperationKind::kDrain, std::make_unique<Drain>(volume));
  runner->add(OperationKind::kBalance, std::make_unique<Balance>(volume));
  if (store::Verifier* verifier = volume.store().verifier(); verifier != nullptr)
    runner->add(OperationKind::kScrub, std::make_unique<Scrub>(volume, *verifier));
  const Runner* const operations = runner.get();
  runner->add(std::make_unique<Relocator>(volume, [operations] { return operations->moves_data(); }));
  return runner;
}

}  // namespace mdfs::maintenance
