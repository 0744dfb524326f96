// Reads the tree beside its writer. Nodes that are not in memory are loaded without a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/items.h"
#include "store/node_cache.h"
#include "store/node_io.h"
#include "store/tree.h"

namespace mdfs::store {

// The tree and its lock. `mutex` is held for moments only, never during I/O.
struct SharedTree {
  SharedTree(const Uuid& volume_uuid, const format::Root& root, std::size_t cache_bytes, std::uint32_t block_size,
             std::vector<device::Disk*> disks, std::uint64_t salt)
      : tree(volume_uuid, root), cache(cache_bytes), io(volume_uuid, block_size, std::move(disks), salt) {}

  mutable std::shared_mutex mutex;  // guards tree and version
  Tree tree;
  std::uint64_t version = 0;  // counts changes of items
  NodeCache cache;
  NodeIo io;
};

// One read, or the reads of one transaction. Keeps every node that it has loaded in memory, so that it makes progress
// with any size of the cache. One thread.
class TreeReader final : public NodeSource {
 public:
  // keep_all: also keeps nodes that were in memory already, for a change after the reads.
  explicit TreeReader(SharedTree& shared, bool keep_all = false) : shared_(shared), keep_all_(keep_all) {}

  Result<std::optional<ByteVector>> get(const Key& key);
  // All items as they are at one moment.
  Result<std::vector<Item>> scan(const Key& first, const Key& last, std::size_t limit);
  // Keeps all nodes on the path to `key`. Adds the nodes that a change would copy to `footprint`, with the growth by a
  // value of `put_bytes` there.
  Status load_path(const Key& key, Footprint& footprint, std::optional<std::size_t> put_bytes = std::nullopt);

  // As Tree::nodes_from(). A node that would have to be read and cannot be is named in `missing`.
  Tree::NodesFound nodes_from(const Key& from, std::size_t leaves);
  // Keeps the nodes on the path to `key`. Returns whether `pointer` still names the node at `level` on it.
  Result<bool> hold_node(const Key& key, std::uint16_t level, const format::Pointer& pointer);
  // As they are at one moment.
  Result<Tree::NodesWhere> nodes_where(const Tree::PointerTest& test, std::uint16_t level, const Key& from);
  Status check_root();

  ConstNodePtr find(const format::Pointer& pointer) override;

 private:
  Status load(const std::vector<NodeWanted>& wanted);
  // Takes items of the range while their nodes are in memory. True when the range or the limit is done.
  bool take_items(Key& next, const Key& last, std::size_t limit, std::vector<Item>& items,
                  std::vector<NodeWanted>& wanted);

  SharedTree& shared_;
  const bool keep_all_;
  struct Hash {
    std::size_t operator()(const format::Pointer& pointer) const {
      return std::hash<std::uint64_t>()(pointer.address[0].packed() ^ (std::uint64_t{pointer.crc32c} << 32));
    }
  };
  // The key is the whole pointer: on a damaged volume two nodes of one path may have the same first address.
  std::unordered_map<format::Pointer, ConstNodePtr, Hash> kept_;
  format::Pointer failed_;  // could not be loaded at the last attempt
};

}  // namespace mdfs::store
