// The machines that are shipped: the files of src/model/machines, built in.
// SPDX-License-Identifier: Apache-2.0
#include "model/machine.h"

namespace mdfs::model {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = {
#include "model/presets.inc"
  };
  return kPresets;
}

}  // namespace mdfs::model
