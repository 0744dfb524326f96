// A transaction's own view of the tree.
// SPDX-License-Identifier: Apache-2.0
#include "store/transaction.h"

#include <algorithm>

#include "base/check.h"
#include "format/layout.h"

namespace mdfs::store {

Result<std::optional<ByteVector>> TransactionImpl::get(const Key& key) {
  const auto found = changes_.find(key);
  if (found != changes_.end()) return found->second;
  return reader_.get(key);
}

Result<std::vector<Item>> TransactionImpl::scan(const Key& first, const Key& last, std::size_t limit) {
  std::vector<Item> merged;
  if (last < first || limit == 0) return merged;
  const auto begin = changes_.lower_bound(first);
  const auto end = changes_.upper_bound(last);
  // Each change in the range hides at most one item of the tree.
  const auto hidden = static_cast<std::size_t>(std::distance(begin, end));
  const std::size_t wanted = limit > SIZE_MAX - hidden ? SIZE_MAX : limit + hidden;
  MDFS_TRY_ASSIGN(std::vector<Item> items, reader_.scan(first, last, wanted));
  auto change = begin;
  std::size_t i = 0;
  while (merged.size() < limit && (i < items.size() || change != end)) {
    if (change == end || (i < items.size() && items[i].key < change->first)) {
      merged.push_back(std::move(items[i++]));
      continue;
    }
    if (i < items.size() && items[i].key == change->first) ++i;
    if (change->second) merged.push_back({change->first, *change->second});
    ++change;
  }
  return merged;
}

// Transactions run one after another, so no other one takes the last number meanwhile.
std::uint64_t TransactionImpl::new_object() {
  if (next_object_ < format::kMaxObject) return next_object_.fetch_add(1);
  out_of_objects_ = true;
  return format::kMaxObject - 1;  // never stored
}

void TransactionImpl::put(const Key& key, ConstBytes value) {
  MDFS_CHECK(value.size() <= MDFS_MAX_ITEM);
  changes_[key] = ByteVector(value.begin(), value.end());
}

void TransactionImpl::publish(const Run& run) {
  published_.push_back(run);
  published_data_.add(run.disk);
}

void TransactionImpl::publish(const Run& run, std::uint64_t other_disks) {
  published_.push_back(run);
  published_data_.add(run.disk, other_disks);
}

void TransactionImpl::free(const Run& run) {
  const auto found = std::find(published_.begin(), published_.end(), run);
  if (found == published_.end()) {
    // Records of older volumes have runs on two bitmap pages.
    const std::vector<Run> parts = format::parts_on_pages(run);
    freed_.insert(freed_.end(), parts.begin(), parts.end());
    return;
  }
  abandoned_.push_back(run);
  published_.erase(found);
}

bool TransactionImpl::empty() const {
  return changes_.empty() && published_.empty() && freed_.empty() && abandoned_.empty() && objects_ == 0;
}

}  // namespace mdfs::store
