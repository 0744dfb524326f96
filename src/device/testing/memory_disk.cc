// Copy-on-write pages in chunks, under one reader-writer lock.
// SPDX-License-Identifier: Apache-2.0
#include "device/testing/memory_disk.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/checked.h"
#include "device/request.h"

namespace mdfs::device {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9e3779b97f4a7c15u;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9u;
  return value ^ (value >> 32);
}

bool all_zero(ConstBytes bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

MemoryDisk::MemoryDisk(std::string name, std::uint64_t size_bytes)
    : name_(std::move(name)), size_bytes_(size_bytes), owner_(new_owner()) {
  MDFS_CHECK(size_bytes % kAlignment == 0);
  chunks_.resize(ceil_div(size_bytes, kPageBytes * kPagesPerChunk));
}

std::uint64_t MemoryDisk::new_owner() {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

std::uint64_t MemoryDisk::size_bytes() const {
  std::shared_lock lock(mutex_);
  return size_bytes_;
}

std::unique_ptr<MemoryDisk> MemoryDisk::clone() const { return clone(name_); }

std::unique_ptr<MemoryDisk> MemoryDisk::clone(std::string name) const {
  auto copy = std::make_unique<MemoryDisk>(std::move(name), 0);
  std::lock_guard lock(mutex_);
  owner_ = new_owner();
  copy->writable_ = writable_.load();
  copy->size_bytes_ = size_bytes_;
  copy->chunks_ = chunks_;
  return copy;
}

void MemoryDisk::resize(std::uint64_t size_bytes) {
  MDFS_CHECK(size_bytes % kAlignment == 0);
  std::lock_guard lock(mutex_);
  if (size_bytes < size_bytes_) clear(size_bytes, size_bytes_ - size_bytes);
  chunks_.resize(ceil_div(size_bytes, kPageBytes * kPagesPerChunk));
  size_bytes_ = size_bytes;
}

void MemoryDisk::submit(std::span<Io* const> batch) {
  for (Io* io : batch) {
    auto status = check_request(*this, *io);
    if (status.ok()) status = transfer(*io);
    complete(*io, std::move(status));
  }
}

Status MemoryDisk::transfer(Io& io) {
  if (io.op == Op::kFlush) return {};
  if (io.op == Op::kRead) {
    std::shared_lock lock(mutex_);
    std::uint64_t offset = io.offset;
    for (auto buffer : io.buffers) {
      copy_out(offset, buffer);
      offset += buffer.size();
    }
    return {};
  }
  std::lock_guard lock(mutex_);
  if (io.op == Op::kDiscard) {
    clear(io.offset, io.discard_bytes);
    return {};
  }
  std::uint64_t offset = io.offset;
  for (auto buffer : io.buffers) {
    copy_in(offset, buffer);
    offset += buffer.size();
  }
  return {};
}

const MemoryDisk::Page* MemoryDisk::find_page(std::uint64_t page) const {
  const auto& chunk = chunks_[page / kPagesPerChunk];
  return chunk ? chunk->pages[page % kPagesPerChunk].get() : nullptr;
}

MemoryDisk::Chunk& MemoryDisk::own_chunk(std::uint64_t index) {
  auto& chunk = chunks_[index];
  if (!chunk || chunk->owner != owner_) {
    auto mine = chunk ? std::make_shared<Chunk>(*chunk) : std::make_shared<Chunk>();
    mine->owner = owner_;
    chunk = std::move(mine);
  }
  return *chunk;
}

MemoryDisk::Page& MemoryDisk::own_page(std::uint64_t index, bool fresh) {
  auto& page = own_chunk(index / kPagesPerChunk).pages[index % kPagesPerChunk];
  if (!page || page->owner != owner_) {
    auto mine = std::make_shared<Page>();
    if (!fresh && page) mine->bytes = page->bytes;
    if (!fresh && !page) mine->bytes.fill(std::byte{0});
    mine->owner = owner_;
    page = std::move(mine);
  }
  page->digest = 0;
  return *page;
}

void MemoryDisk::copy_out(std::uint64_t offset, MutableBytes out) const {
  while (!out.empty()) {
    const std::uint64_t within = offset % kPageBytes;
    const auto part = out.first(std::min<std::uint64_t>(out.size(), kPageBytes - within));
    if (const Page* page = find_page(offset / kPageBytes)) {
      std::memcpy(part.data(), page->bytes.data() + within, part.size());
    } else {
      std::memset(part.data(), 0, part.size());
    }
    offset += part.size();
    out = out.subspan(part.size());
  }
}

void MemoryDisk::copy_in(std::uint64_t offset, ConstBytes bytes) {
  while (!bytes.empty()) {
    const std::uint64_t within = offset % kPageBytes;
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), kPageBytes - within));
    Page& page = own_page(offset / kPageBytes, part.size() == kPageBytes);
    std::memcpy(page.bytes.data() + within, part.data(), part.size());
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
}

void MemoryDisk::clear(std::uint64_t offset, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t within = offset % kPageBytes;
    const std::uint64_t part = std::min(bytes, kPageBytes - within);
    const std::uint64_t page = offset / kPageBytes;
    if (find_page(page) != nullptr) {
      if (part == kPageBytes) {
        own_chunk(page / kPagesPerChunk).pages[page % kPagesPerChunk].reset();
      } else {
        std::memset(own_page(page, false).bytes.data() + within, 0, part);
      }
    }
    offset += part;
    bytes -= part;
  }
}

// Four independent lanes keep the multiplier busy. A page of zeros gives 1, so that it can be told from "not known".
std::uint64_t MemoryDisk::page_digest(const Page& page) {
  if (const std::uint64_t known = page.digest.load()) return known;
  std::uint64_t digest = 1;
  if (!all_zero(page.bytes)) {
    std::array<std::uint64_t, 4> lane{1, 2, 3, 4};
    for (std::size_t at = 0; at < kPageBytes; at += 32) {
      for (std::size_t i = 0; i < 4; ++i) {
        lane[i] = (lane[i] ^ load_le<std::uint64_t>(page.bytes, at + 8 * i)) * 0x9e3779b97f4a7c15u;
        lane[i] ^= lane[i] >> 31;
      }
    }
    digest = mix(mix(mix(mix(lane[0]) ^ lane[1]) ^ lane[2]) ^ lane[3]) | 2;
  }
  page.digest = digest;
  return digest;
}

std::uint64_t MemoryDisk::digest() const {
  std::shared_lock lock(mutex_);
  std::uint64_t digest = mix(size_bytes_ + 1);
  for (std::uint64_t c = 0; c < chunks_.size(); ++c) {
    if (!chunks_[c]) continue;
    for (std::uint64_t p = 0; p < kPagesPerChunk; ++p) {
      const auto& page = chunks_[c]->pages[p];
      if (!page) continue;
      const std::uint64_t value = page_digest(*page);
      if (value != 1) digest += mix(value ^ mix(c * kPagesPerChunk + p + 1));
    }
  }
  return digest;
}

void MemoryDisk::peek(std::uint64_t offset, MutableBytes out) const {
  std::shared_lock lock(mutex_);
  MDFS_CHECK(inside(offset, out.size(), size_bytes_));
  copy_out(offset, out);
}

void MemoryDisk::poke(std::uint64_t offset, ConstBytes bytes) {
  std::lock_guard lock(mutex_);
  MDFS_CHECK(inside(offset, bytes.size(), size_bytes_));
  copy_in(offset, bytes);
}

void MemoryDisk::zero(std::uint64_t offset, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  MDFS_CHECK(inside(offset, bytes, size_bytes_));
  clear(offset, bytes);
}

}  // namespace mdfs::device
