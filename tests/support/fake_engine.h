// An engine that keeps all data in memory, for tests of the volume that are not about data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/engine.h"

namespace mdfs::test {

// Keeps the contract of engine::Engine for ordinary files of a few MiB; windows are kNotSupported, nothing is stored
// on disks. Write-back calls the InodeUpdate in a transaction of the store.
std::unique_ptr<engine::Engine> make_fake_engine(store::Store& store);

}  // namespace mdfs::test
