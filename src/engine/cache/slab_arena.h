// Memory of the engine's buffers: slabs of huge pages, cut into pieces of one size class each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace mdfs::engine {

// A piece is in use, idle (free, with pages) or empty (free, without pages). Idle pieces are reused first: the kernel
// needs more time for new pages than an NVMe disk needs to fill them.
// A class begins with slabs of small pages. It gets slabs of huge pages once it has as many bytes in use; a few small
// buffers therefore hold no huge pages. A slab without a piece in use serves any class whose slabs have its size.
// A sparse piece has small pages and is filled in parts. Its user reports the filled bytes, and the piece is charged
// for these. Its pages go back to the system with the piece.
// Fragmentation: give_back() returns whole slabs without a piece in use, and the pages of idle pieces of other slabs.
// Only pieces in use keep memory, however they are spread over slabs. A slab that has lost pages counts as one of small
// pages until its last piece is free. Any thread.
class SlabArena {
 public:
  struct Slab {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool huge = false;    // made of huge pages
    bool broken = false;  // made of huge pages, and has lost some of them
    bool sparse = false;
    std::size_t piece = 0, charge = 0;
    std::size_t pieces = 0, used = 0;
    std::vector<std::uint32_t> idle, empty;  // numbers of pieces

    std::byte* at(std::uint32_t number) const { return data + number * piece; }
  };
  struct Piece {
    std::byte* data = nullptr;
    Slab* slab = nullptr;
    std::size_t charge = 0;  // its part of the slab, at least the class; of a sparse piece: the filled bytes
  };

  // Slabs of huge pages have at most `largest_huge_slab` bytes, except those of one piece. 0: small pages only.
  explicit SlabArena(std::size_t largest_huge_slab) : largest_huge_slab_(largest_huge_slab) {}
  SlabArena(const SlabArena&) = delete;
  SlabArena& operator=(const SlabArena&) = delete;
  ~SlabArena();

  // A piece of a size class (slab_classes.h) with undefined bytes. The program ends when memory runs out.
  Piece take(std::size_t size_class);
  Piece take_sparse(std::size_t size_class);
  void put(const Piece& piece);
  // Counts bytes of a sparse piece before they are filled, at most all of it.
  void charge(Piece& piece, std::size_t bytes);
  // The growth of used_bytes() plus idle_bytes() if take() were called now.
  std::size_t growth(std::size_t size_class) const;

  // Of pieces in use, and of idle pieces.
  std::size_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  std::size_t idle_bytes() const { return idle_bytes_.load(std::memory_order_relaxed); }
  // Gives memory of idle pieces back to the system until so many idle bytes are left. Returns the bytes given back.
  std::size_t give_back(std::size_t idle_bytes_left);

 private:
  struct ByAddress {
    bool operator()(const Slab* a, const Slab* b) const;
  };
  using Slabs = std::set<Slab*, ByAddress>;
  // Of slabs as large as each other by address; also finds the first one of a size.
  struct BySize {
    using is_transparent = void;
    bool operator()(const Slab* a, const Slab* b) const;
    bool operator()(const Slab* a, std::size_t bytes) const { return a->bytes < bytes; }
    bool operator()(std::size_t bytes, const Slab* b) const { return bytes < b->bytes; }
  };
  struct SizeClass {
    Slabs with_idle, with_empty;
    std::size_t used_bytes = 0;
  };

  bool takes_huge_slab(const SizeClass& size_class, std::size_t piece) const;
  Slab* reusable_slab(std::size_t piece) const;
  Slab& new_slab(std::size_t piece, bool huge, bool sparse);
  std::byte* take_from(Slab& slab, bool idle);
  void cut(Slab& slab, std::size_t piece);
  // Puts the slab into the sets of its state, and takes it out of all sets.
  void file(Slab& slab);
  void unfile(Slab& slab);
  std::unique_ptr<Slab> remove(Slab& slab);

  const std::size_t largest_huge_slab_;
  mutable std::mutex mutex_;  // guards all below
  SizeClass& class_of_slab(const Slab& slab) { return (slab.sparse ? sparse_classes_ : classes_)[slab.piece]; }
  std::map<std::size_t, SizeClass> classes_, sparse_classes_;
  std::map<std::byte*, std::unique_ptr<Slab>> slabs_;
  // Slabs with idle pieces, in the order in which give_back() takes them: huge pages without a piece in use; small
  // pages; other huge pages.
  std::set<Slab*, BySize> unused_;
  Slabs idle_small_, idle_huge_;
  std::atomic<std::size_t> used_bytes_{0}, idle_bytes_{0};  // changed with the lock held
  std::size_t broken_slabs_ = 0;                            // slabs of huge pages that have lost some
};

}  // namespace mdfs::engine
