// The changes of one transaction, kept apart until the store knows that all of them fit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "format/limits.h"
#include "store/items.h"
#include "store/published_data.h"
#include "store/reader.h"

namespace mdfs::store {

// Lives inside Store::transact(), on its thread.
class TransactionImpl final : public Transaction {
 public:
  TransactionImpl(SharedTree& shared, std::atomic<std::uint64_t>& next_object, std::uint64_t generation)
      : reader_(shared, true), next_object_(next_object), generation_(generation) {}

  Result<std::optional<ByteVector>> get(const Key& key) override;
  Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit) override;
  void put(const Key& key, ConstBytes value) override;
  void erase(const Key& key) override { changes_[key] = std::nullopt; }
  void publish(const Run& run) override;
  void publish(const Run& run, std::uint64_t other_disks) override;
  void free(const Run& run) override;
  std::uint64_t new_object() override;
  void count_objects(std::int64_t change) override { objects_ += change; }
  std::uint64_t generation() const override { return generation_; }

  using Changes = std::map<Key, std::optional<ByteVector>>;  // absent value: erased
  const Changes& changes() const { return changes_; }
  const std::vector<Run>& published() const { return published_; }
  const PublishedData& published_data() const { return published_data_; }  // with what was freed again
  const std::vector<Run>& freed() const { return freed_; }
  const std::vector<Run>& abandoned() const { return abandoned_; }  // published and freed again
  std::int64_t objects() const { return objects_; }
  // A number was asked for, and none is left: the transaction fails.
  bool out_of_objects() const { return out_of_objects_; }
  TreeReader& reader() { return reader_; }
  bool empty() const;

 private:
  TreeReader reader_;
  std::atomic<std::uint64_t>& next_object_;
  std::uint64_t generation_;
  Changes changes_;
  std::vector<Run> published_;
  PublishedData published_data_;
  std::vector<Run> freed_;
  std::vector<Run> abandoned_;
  std::int64_t objects_ = 0;
  bool out_of_objects_ = false;
};

}  // namespace mdfs::store
