// A disk in memory: sparse, completing inline, and cheap to copy, so that tests can fork states of a volume.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device/disk.h"

namespace mdfs::device {

// Unwritten and discarded bytes read as zeros. Every request completes before submit() returns. clone() costs one
// pointer for each 4 MiB; the two disks then share pages until one of them writes there. Clones may be used from
// different threads at the same time.
class MemoryDisk final : public Disk {
 public:
  // size_bytes is a multiple of kAlignment.
  MemoryDisk(std::string name, std::uint64_t size_bytes);

  const std::string& name() const override { return name_; }
  std::uint64_t size_bytes() const override;
  Result<Condition> condition() override { return Condition{size_bytes(), deleted_}; }
  std::uint64_t room_bytes() override { return room_bytes_; }
  bool writable() const override { return writable_; }
  void submit(std::span<Io* const> batch) override;

  std::unique_ptr<MemoryDisk> clone() const;
  std::unique_ptr<MemoryDisk> clone(std::string name) const;

  void set_writable(bool writable) { writable_ = writable; }
  void set_deleted(bool deleted) { deleted_ = deleted; }  // see condition()
  void set_room_bytes(std::uint64_t bytes) { room_bytes_ = bytes; }
  // Truncates the disk, or extends it with zeros. A multiple of kAlignment.
  void resize(std::uint64_t size_bytes);

  // Equal sizes and contents give equal digests, after any history of writes and discards. 64 bits, not cryptographic.
  // Pages that have not changed since the last digest, here or in a clone, are not read again.
  std::uint64_t digest() const;

  // Any offset and length inside the disk, without the checks of requests: for tests that inspect or damage the disk.
  void peek(std::uint64_t offset, MutableBytes out) const;
  void poke(std::uint64_t offset, ConstBytes bytes);
  void zero(std::uint64_t offset, std::uint64_t bytes);

 private:
  static constexpr std::uint64_t kPageBytes = 16384;
  static constexpr std::uint64_t kPagesPerChunk = 256;

  // `owner` is the only disk that may change the object in place; clone() leaves the old objects without one.
  struct Page {
    Page() {}  // the bytes are undefined
    std::uint64_t owner = 0;
    mutable std::atomic<std::uint64_t> digest{0};  // 0: unknown
    std::array<std::byte, kPageBytes> bytes;
  };
  struct Chunk {
    std::uint64_t owner = 0;
    std::array<std::shared_ptr<Page>, kPagesPerChunk> pages;
  };

  static std::uint64_t page_digest(const Page& page);
  static std::uint64_t new_owner();
  const Page* find_page(std::uint64_t page) const;  // null: zeros
  Chunk& own_chunk(std::uint64_t chunk);
  // `fresh`: all of its bytes will be overwritten.
  Page& own_page(std::uint64_t page, bool fresh);
  // The caller holds mutex_.
  void copy_out(std::uint64_t offset, MutableBytes out) const;
  void copy_in(std::uint64_t offset, ConstBytes bytes);
  void clear(std::uint64_t offset, std::uint64_t bytes);
  Status transfer(Io& io);

  const std::string name_;
  std::atomic<bool> writable_{true};
  std::atomic<bool> deleted_{false};
  std::atomic<std::uint64_t> room_bytes_ = UINT64_MAX;
  mutable std::shared_mutex mutex_;  // guards all below, and the contents of owned pages
  std::uint64_t size_bytes_;
  mutable std::uint64_t owner_;  // renewed by clone()
  std::vector<std::shared_ptr<Chunk>> chunks_;
};

}  // namespace mdfs::device
