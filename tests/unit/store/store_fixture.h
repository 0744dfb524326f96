// A volume on disks in memory, for tests of the store.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/environment.h"
#include "borrowed_disk.h"
#include "device/testing/memory_disk.h"
#include "store/format_volume.h"
#include "store/store.h"

namespace mdfs::store {

using test::BorrowedDisk;
using Disks = std::vector<std::unique_ptr<device::MemoryDisk>>;
using Model = std::map<Key, ByteVector>;

inline Disks make_disks(std::size_t count, std::uint64_t bytes) {
  Disks disks;
  for (std::size_t i = 0; i < count; ++i)
    disks.push_back(std::make_unique<device::MemoryDisk>("disk" + std::to_string(i), bytes));
  return disks;
}

inline Result<FormattedVolume> format_disks(const Disks& disks, Environment& environment,
                                            const FormatOptions& options = {}) {
  std::vector<device::Disk*> borrowed;
  for (const auto& disk : disks) borrowed.push_back(disk.get());
  return format_volume(borrowed, options, environment);
}

// Without those that are absent.
inline std::vector<std::unique_ptr<device::Disk>> borrow(const Disks& disks) {
  std::vector<std::unique_ptr<device::Disk>> borrowed;
  for (const auto& disk : disks)
    if (disk) borrowed.push_back(std::make_unique<BorrowedDisk>(*disk));
  return borrowed;
}

inline Result<std::unique_ptr<Store>> open_disks(const Disks& disks, Environment& environment,
                                                 const StoreOptions& options = {}) {
  return Store::open(borrow(disks), options, environment);
}

inline Disks clone_disks(const Disks& disks) {
  Disks clones;
  for (const auto& disk : disks) clones.push_back(disk ? disk->clone() : nullptr);
  return clones;
}

inline ByteVector value_of(std::size_t size, std::uint64_t seed) {
  ByteVector value(size);
  for (std::size_t i = 0; i < size; ++i) value[i] = static_cast<std::byte>((seed * 31 + i * 7 + (seed >> 8)) & 0xff);
  return value;
}

// All items but those that format_volume made.
inline Model read_all(Store& store) {
  Model model;
  auto items = store.scan({MDFS_OBJECT_FIRST, 0, 0}, format::kMaxKey, SIZE_MAX);
  EXPECT_TRUE(items.ok()) << items.error().message();
  if (items.ok())
    for (Item& item : *items) model[item.key] = std::move(item.value);
  return model;
}

inline Key item_key(std::uint64_t n) { return {MDFS_OBJECT_FIRST + n / 16, 1 + n % 4, n % 16 / 4}; }

// The message of an error, or "".
template <typename T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? std::string() : result.error().message();
}

#define ASSERT_OK(expression) ASSERT_EQ(::mdfs::store::message_of(expression), "")
#define EXPECT_OK(expression) EXPECT_EQ(::mdfs::store::message_of(expression), "")

inline void move_all_nodes_off(Store& store, unsigned disk) {
  NodePosition at;
  for (bool done = false; !done;) {
    const auto moved = store.move_nodes_off(disk, at);
    ASSERT_OK(moved);
    done = *moved;
  }
}

}  // namespace mdfs::store
