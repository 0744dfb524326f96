// The extent map: the places of stored bytes, read from the tree, with a small cache of extent pages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/open_object.h"
#include "engine/strips/strips.h"
#include "format/cell_copies.h"
#include "format/extent_copies.h"
#include "format/extents.h"
#include "format/file_cell.h"
#include "mdfs/ondisk.h"
#include "store/store.h"

namespace mdfs::engine {

format::Key page_key(const OpenObject& object, std::uint64_t page);
format::Key strip_key(const OpenObject& object, std::uint64_t page, unsigned number);
format::Key cell_key(const OpenObject& object, std::uint64_t cell);
format::Key copies_key(const OpenObject& object, std::uint64_t page);
format::Key inline_key(const OpenObject& object);

using format::StoredExtent;

// Bytes of an extent that lie in a strip. They replace the bytes at the same place of the extent's record.
struct StripPart {
  StoredExtent stored;  // contiguous; each part is a block
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;
  std::uint32_t end() const { return begin + bytes; }
  const store::Run& run() const { return stored.first(); }
};

// One extent, as readers see it. Without a record and parts it is a hole.
struct MappedExtent {
  StoredExtent record;
  std::vector<StripPart> parts;  // disjoint
  bool has_record() const { return record.is_stored(); }
  bool is_hole() const { return !has_record() && parts.empty(); }
  bool has_copied_part() const;  // in a strip
  // Of its record and its strips: a whole write of the extent frees these.
  std::uint64_t blocks() const;
  // The same blocks, appended to a list.
  void append_runs(std::vector<store::Run>& all) const;
};

// The content of the tree for the extents of a page.
struct KnownPage {
  std::shared_ptr<const format::ExtentPage> page;
  std::shared_ptr<const Strips> strips;
  std::shared_ptr<const format::CopyPage> copies;  // null: none
};

// A record says that its extent is scattered, and the item with the runs is not there.
Error runs_missing(const OpenObject& object);

// The strips of a page, from the items of a scan over its keys.
Result<Strips> strips_of(const OpenObject& object, const std::vector<store::Item>& items);

// The extent map of images and files. Decoded extent pages are cached up to a bound. A thread that changes a page in
// the tree calls replace() before the cache can evict extents that depend on the page. The data of a deleted object may
// be freed without replace(), because object numbers are never reused. Any thread.
class ExtentMap {
 public:
  explicit ExtentMap(store::Store& store);

  // The copies of a page of records, if the volume has any; Reader is store::Store or store::Transaction.
  template <typename Reader>
  Result<std::shared_ptr<const format::CopyPage>> copies_of(Reader& reader, const OpenObject& object,
                                                            std::uint64_t page) const {
    if (!has_copies()) return std::shared_ptr<const format::CopyPage>();
    MDFS_TRY_ASSIGN(const auto value, reader.get(copies_key(object, page)));
    if (!value) return std::shared_ptr<const format::CopyPage>();
    MDFS_TRY_ASSIGN(format::CopyPage copies, format::CopyPage::decode(*value, object.table));
    return std::make_shared<const format::CopyPage>(std::move(copies));
  }

  // `fresh`: read the tree even if the page is cached.
  Result<MappedExtent> extent(const OpenObject& object, const geometry::Coord& extent, bool fresh);
  Result<format::FileCell> cell(const OpenObject& object, std::uint64_t index);
  // With the second copies of its blocks; also of an item that has just been read.
  Result<format::CellPieces> cell_pieces(const OpenObject& object, std::uint64_t index);
  Result<format::CellPieces> cell_pieces(const OpenObject& object, const store::Item& item);
  Result<std::optional<ByteVector>> inline_bytes(const OpenObject& object);
  Result<KnownPage> page(const OpenObject& object, std::uint64_t number, bool fresh);
  // The cached page, without a look into the tree; nulls if the page is not cached. A caller that holds `publishing` of
  // the object, and has changed nothing in its transaction, sees the state of the tree.
  KnownPage kept_page(const OpenObject& object, std::uint64_t number);

  // Extents and cells of this volume may have second copies.
  bool has_copies() const { return (store_.features_ro_compat() & MDFS_RO_COMPAT_PROTECTION) != 0; }

  // Checks that the blocks of a record exist on the volume.
  Status check(const store::Run& run) const;
  Status check(const StoredExtent& extent) const;

  // Sets the cached page; nulls: read it again.
  void replace(const OpenObject& object, std::uint64_t number, KnownPage page);
  void forget_all(const OpenObject& object);

 private:
  static constexpr std::size_t kLimitBytes = 8u << 20;
  static constexpr std::size_t kPageOverheadBytes = 192;  // of a strip as well
  static constexpr std::size_t kCopyBytes = 80;           // of a copy
  struct Name {
    std::uint64_t object;
    std::uint64_t number;
    bool operator==(const Name&) const = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const { return name.object * 0x9E3779B97F4A7C15ull ^ name.number; }
  };
  struct Entry {
    Name name;
    KnownPage known;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;

  static std::size_t cost(const KnownPage& known);
  void insert(const Name& name, KnownPage known);
  void erase(Entries::iterator entry);

  store::Store& store_;
  mutable std::array<std::atomic<std::uint64_t>, MDFS_MAX_DISKS> disk_blocks_{};  // as last seen
  std::mutex mutex_;                                                              // guards all below
  Entries entries_;                                                               // most recently used first
  std::unordered_map<Name, Entries::iterator, NameHash> map_;
  std::size_t bytes_ = 0;
  std::uint64_t version_ = 0;  // counts replacements: a page that was read before one is not cached
};

}  // namespace mdfs::engine
