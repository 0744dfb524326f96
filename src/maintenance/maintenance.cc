// The operations: one table of kinds, names and makers.
// SPDX-License-Identifier: Apache-2.0
#include "maintenance/maintenance.h"

#include <iterator>
#include <utility>

#include "base/check.h"
#include "maintenance/balance.h"
#include "maintenance/defrag.h"
#include "maintenance/drain.h"
#include "maintenance/protect.h"
#include "maintenance/relocator.h"
#include "maintenance/runner.h"
#include "maintenance/scrub.h"

namespace mdfs::maintenance {
namespace {

template <typename Kind>
std::unique_ptr<Operation> make(MaintainedVolume& volume) {
  return std::make_unique<Kind>(volume);
}

std::unique_ptr<Operation> make_scrub(MaintainedVolume& volume) {
  store::Verifier* const verifier = volume.store().verifier();
  if (verifier == nullptr) return nullptr;
  return std::make_unique<Scrub>(volume, *verifier);
}

constexpr OperationInfo kTable[] = {
    {OperationKind::kScrub, "scrub", make_scrub},           {OperationKind::kDefrag, "defragmentation", make<Defrag>},
    {OperationKind::kDrain, "drain", make<Drain>},          {OperationKind::kBalance, "balancing", make<Balance>},
    {OperationKind::kProtect, "protection", make<Protect>},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<std::size_t>(kTable[i].kind) != i + 1) return false;
  return std::size(kTable) == kOperationKinds;
}
static_assert(in_order());

}  // namespace

std::span<const OperationInfo> operation_table() { return kTable; }

std::string_view name(OperationKind kind) {
  const std::size_t row = static_cast<std::size_t>(kind) - 1;
  MDFS_CHECK(row < std::size(kTable));
  return kTable[row].name;
}

std::unique_ptr<volume::Operations> make_operations(volume::MaintainedVolume& volume) {
  auto runner = std::make_unique<Runner>(volume.store(), volume.environment(), volume.readers());
  for (const OperationInfo& row : kTable)
    if (auto operation = row.make(volume)) runner->add(row.kind, std::move(operation));
  const Runner* const operations = runner.get();
  runner->add(std::make_unique<Relocator>(volume, [operations] { return operations->moves_data(); }));
  return runner;
}

}  // namespace mdfs::maintenance
