// A vector whose first elements need no memory of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace mdfs {

// A list of values. Up to kInline elements are stored in the object itself, more in a std::vector. For lists that each
// extent has, and that nearly always have one element or a few. A moved-from list may be assigned to or destroyed. No
// thread contract. Pointers and iterators end at each change, as those of std::vector do.
template <typename T, std::size_t kInline>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && kInline > 0);

 public:
  using value_type = T;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  template <typename Iterator>
  SmallVector(Iterator first, Iterator last) {
    assign(first, last);
  }

  std::size_t size() const { return many_.empty() ? few_count_ : many_.size(); }
  bool empty() const { return size() == 0; }
  T* data() { return many_.empty() ? few_.data() : many_.data(); }
  const T* data() const { return many_.empty() ? few_.data() : many_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  // The element must be there.
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size() - 1]; }
  const T& back() const { return data()[size() - 1]; }

  void clear() {
    many_.clear();
    few_count_ = 0;
  }
  void push_back(const T& value) {
    if (many_.empty() && few_count_ < kInline) {
      few_[few_count_++] = value;
      return;
    }
    const T copy = value;  // it may be an element
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(copy);
  }
  // The values must not lie in this list.
  template <typename Iterator>
  void append(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  template <typename Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    append(first, last);
  }
  // Bytes beside the object itself.
  std::size_t heap_bytes() const { return many_.capacity() * sizeof(T); }

  bool operator==(const SmallVector& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::array<T, kInline> few_{};
  std::size_t few_count_ = 0;
  std::vector<T> many_;  // of more than kInline elements all, else empty
};

}  // namespace mdfs
