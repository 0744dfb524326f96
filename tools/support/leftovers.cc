// Files that do not stay behind when a signal ends the program.
// SPDX-License-Identifier: Apache-2.0
#include "support/leftovers.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>

namespace mdfs::tools {
namespace {

constexpr std::size_t kSlots = 8;

enum class Use : int { kFree, kFilling, kInUse };
struct Slot {
  std::atomic<Use> use = Use::kFree;
  std::array<char, PATH_MAX> path{};
};
std::array<Slot, kSlots> slots;  // what a handler may look at: no memory that comes and goes
static_assert(std::atomic<Use>::is_always_lock_free);

void remove_all_and_end(int number) {
  for (const Slot& slot : slots)
    if (slot.use == Use::kInUse) ::unlink(slot.path.data());
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void install() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = remove_all_and_end;
    ::sigaction(number, &ours, nullptr);
  }
}

}  // namespace

Leftover::Leftover(const std::string& path) : slot_(kSlots) {
  static std::once_flag once;
  std::call_once(once, install);
  for (std::size_t i = 0; i < kSlots && path.size() < PATH_MAX; ++i) {
    Use expected = Use::kFree;
    if (!slots[i].use.compare_exchange_strong(expected, Use::kFilling)) continue;
    path.copy(slots[i].path.data(), path.size());
    slots[i].path[path.size()] = '\0';
    slots[i].use = Use::kInUse;
    slot_ = i;
    return;
  }
}

Leftover::~Leftover() {
  if (slot_ < kSlots) slots[slot_].use = Use::kFree;
}

}  // namespace mdfs::tools
