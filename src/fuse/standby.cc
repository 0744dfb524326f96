// The loop of a standby.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/standby.h"

namespace mdfs::fuse {
namespace {

// Before the first wait, a disk that is not there is rather a wrong name.
bool may_pass(Errc code, bool has_waited) {
  return code == Errc::kBusy ||
         (has_waited && (code == Errc::kIo || code == Errc::kNotFound || code == Errc::kMissingDisk));
}

}  // namespace

Status stand_by(const std::function<Status()>& attempt, const std::function<void(const std::string& line)>& notice,
                const std::function<void()>& pause) {
  std::string told;
  for (bool has_waited = false;; has_waited = true) {
    Status status = attempt();
    if (status.ok() || !may_pass(status.error().code, has_waited)) return status;
    const std::string reason = status.error().message();
    if (reason != told) notice("standing by: " + reason);
    told = reason;
    pause();
  }
}

}  // namespace mdfs::fuse
