// Feature bits.
// SPDX-License-Identifier: Apache-2.0
#include "format/feature_bits.h"

namespace mdfs::format {

Result<Access> access_allowed(const Features& features) {
  if (features.unknown_incompat() != 0) return {Errc::kNewerFormat, "features-incompat"};
  return (features.ro_compat & ~MDFS_RO_COMPAT_KNOWN) != 0 ? Access::kReadOnly : Access::kReadWrite;
}

}  // namespace mdfs::format
