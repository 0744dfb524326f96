// The items of a volume: one ordered tree, its reads and its transactions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "alloc/run.h"
#include "base/bytes.h"
#include "base/result.h"
#include "format/key.h"
#include "store/reservation.h"

namespace mdfs::store {

using alloc::Run;
using format::Key;

struct Item {
  Key key;
  ByteVector value;
};

// The changes of one transaction: seen by its own reads at once, by everybody else when transact() returns, by the
// disks with the next commit; all of them or none. Used by one thread, inside transact() only.
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  // The items with first <= key <= last, in key order, at most `limit`.
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;
  virtual void put(const Key& key, ConstBytes value) = 0;  // value.size() <= MDFS_MAX_ITEM; inserts or replaces
  virtual void erase(const Key& key) = 0;                  // absent is fine
  // Allocated blocks, written and completed on their disk, become part of the volume.
  virtual void publish(const Run& run) = 0;
  // Blocks leave the volume; reused when no committed state that recovery may fall back to holds them.
  virtual void free(const Run& run) = 0;
  // A number never used before for an object of this volume.
  virtual std::uint64_t new_object() = 0;
  virtual void count_objects(std::int64_t change) = 0;  // inodes in use, for statfs
  // The generation in which these changes will be committed; a later one if the transaction has to commit what came
  // before it to find room.
  virtual std::uint64_t generation() const = 0;
};

// All methods may be called from any thread. Transactions run one after another; reads run beside them. No method calls
// back while it holds a lock, except transact() itself.
class Items {
 public:
  virtual ~Items() = default;
  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;

  // Transactions are not nested. Runs `change`; if it succeeds and there is room, its changes take effect together,
  // else none does. The part of `reservation` that is for the tree may be used, and stays reserved.
  virtual Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change,
                          const Reservation* reservation) = 0;
  Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change) {
    return transact(purpose, change, nullptr);
  }
};

}  // namespace mdfs::store
