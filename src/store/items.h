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

// The changes of one transaction, all or none of which take effect. The transaction's own reads see them at once, other
// threads see them when transact() returns, and the disks get them with the next commit. One thread, inside transact()
// only.
class Transaction {
 public:
  virtual ~Transaction() = default;
  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  // The items with first <= key <= last, in key order, at most `limit`.
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;
  virtual void put(const Key& key, ConstBytes value) = 0;  // value.size() <= MDFS_MAX_ITEM; inserts or replaces
  virtual void erase(const Key& key) = 0;                  // absent is fine
  // Allocated blocks become part of the volume. They have been written, and the writes have completed.
  virtual void publish(const Run& run) = 0;
  // The same for data that other disks (a bit each) have as well, all of which are needed for them then. 0: data that
  // can be made again.
  virtual void publish(const Run& run, std::uint64_t other_disks) = 0;
  // Blocks leave the volume. They can be allocated again when recovery can fall back to no state that holds them.
  virtual void free(const Run& run) = 0;
  // A number that no object of this volume has had before.
  virtual std::uint64_t new_object() = 0;
  virtual void count_objects(std::int64_t change) = 0;  // inodes in use, for statfs
  // The generation in which these changes will be committed. It becomes a later one if the transaction must commit
  // earlier changes to find space.
  virtual std::uint64_t generation() const = 0;
};

// All methods may be called from any thread. Transactions run one after another, and reads run beside them. No method
// but transact() calls back while it holds a lock.
class Items {
 public:
  virtual ~Items() = default;
  virtual Result<std::optional<ByteVector>> get(const Key& key) = 0;
  virtual Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) = 0;

  // Runs `change`. If it succeeds and space suffices, its changes take effect together, else none. The transaction may
  // use the part of `reservation` that is for the tree; that part stays reserved. Transactions are not nested.
  virtual Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change,
                          const Reservation* reservation) = 0;
  Status transact(Purpose purpose, const std::function<Status(Transaction&)>& change) {
    return transact(purpose, change, nullptr);
  }
};

}  // namespace mdfs::store
