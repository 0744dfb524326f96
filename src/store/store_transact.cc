// Transactions of the store: room first, then the change in memory, which cannot fail.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/limits.h"
#include "store/store_impl.h"

namespace mdfs::store {
namespace {

// Commits that may be needed until blocks freed before are free: of what is changed now, and one more.
constexpr unsigned kCommitsForRoom = 3;

// Sets a flag for as long as it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;

 private:
  bool& flag_;
};

}  // namespace

Status StoreImpl::transact(Purpose purpose, const std::function<Status(Transaction&)>& change,
                           const Reservation* reservation) {
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(writer_);
    MDFS_CHECK(!in_transaction_);
    const Raised raised(in_transaction_);
    if (read_only_) return read_only_error();
    TransactionImpl transaction(shared_, next_object_, next_generation_);
    MDFS_TRY(change(transaction));
    if (transaction.out_of_objects()) return {Errc::kNoSpace, "every object number has been used"};
    if (transaction.empty()) return {};
    MDFS_TRY(prepare(transaction, purpose, reservation != nullptr ? reservation->amount() : SpaceAmount()));
    apply(transaction);
    note_tree();
    if (shared_.tree.changed_nodes() >= options_.dirty_node_limit) sequence = applied_;
  }
  // The transaction has taken effect. If the commit fails, the next call of commit() returns the error.
  if (sequence > 0) (void)commit_until(sequence, false);
  return {};
}

void StoreImpl::note_tree() {
  const Tree& tree = shared_.tree;
  space_.note_tree({tree.nodes(), tree.changed_nodes(), tree.root().level});
}

Status StoreImpl::prepare(TransactionImpl& transaction, Purpose purpose, const SpaceAmount& reserved) {
  space_.pin(transaction.published());
  space_.pin(transaction.freed());
  Status status = space_.check(transaction.published(), transaction.freed());
  if (status.ok()) status = find_room(transaction, purpose, reserved);
  if (!status.ok()) {
    space_.unpin(transaction.published());
    space_.unpin(transaction.freed());
  }
  return status;
}

Status StoreImpl::find_room(TransactionImpl& transaction, Purpose purpose, const SpaceAmount& reserved) {
  for (unsigned attempt = 0;; ++attempt) {
    Footprint footprint;
    for (const auto& [key, value] : transaction.changes()) {
      const std::optional<std::size_t> bytes = value ? std::optional(value->size()) : std::nullopt;
      MDFS_TRY(transaction.reader().load_path(key, footprint, bytes));
    }
    const std::size_t nodes = shared_.tree.worst_changed_nodes(footprint);
    const Status filled = space_.fill_pool(nodes, purpose, reserved);
    if (filled.ok() || attempt == kCommitsForRoom) return filled;
    if (space_.break_holds()) continue;
    if (space_.pending_free() == 0 && !dirty()) return filled;
    MDFS_TRY(commit_until(applied_, true));
  }
}

void StoreImpl::apply(TransactionImpl& transaction) {
  std::vector<format::Pointer> freed;
  {
    const std::unique_lock lock(shared_.mutex);
    // Puts first: the keys of a leaf that erasing empties fall to a neighbour, which may not be in memory.
    for (const auto& [key, value] : transaction.changes())
      if (value) shared_.tree.put(key, *value, transaction.reader(), freed);
    for (const auto& [key, value] : transaction.changes())
      if (!value) shared_.tree.erase(key, transaction.reader(), freed);
    ++shared_.version;
  }
  for (const format::Pointer& pointer : freed) shared_.cache.forget(pointer);
  replaced_.insert(replaced_.end(), freed.begin(), freed.end());
  space_.publish(transaction.published(), transaction.published_data());
  space_.free(transaction.freed());
  space_.unpin(transaction.published());
  space_.unpin(transaction.freed());
  for (const Run& run : transaction.abandoned()) space_.abandon(run);
  // The count of a damaged volume may be too small.
  const auto objects = static_cast<std::int64_t>(objects_.load()) + transaction.objects();
  objects_ = static_cast<std::uint64_t>(std::clamp<std::int64_t>(objects, 0, format::kMaxObject));
  ++applied_;
}

}  // namespace mdfs::store
