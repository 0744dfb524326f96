// The virtual nodes that the kernel knows: their numbers, look-up counts and names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "views/detached_header.h"
#include "views/iiif_name.h"
#include "views/view.h"
#include "views/view_file.h"
#include "views/zarr_name.h"
#include "views/zoom_name.h"
#include "volume/volume.h"

namespace mdfs::fuse {

struct StagedFile;

using NodeId = std::uint64_t;
// Real files have their inode number as node; virtual ones have this bit set.
inline constexpr NodeId kVirtualBit = NodeId{1} << 63;
constexpr bool is_virtual(NodeId id) { return (id & kVirtualBit) != 0; }

inline constexpr std::string_view kWindowsName = "win";

enum class NodeKind : std::uint8_t {
  kControl,        // /.mdfs
  kMirror,         // /.mdfs/img and the directories under it: `ino` is the real directory
  kView,           // NAME@ and .mdfs/img/../NAME: `ino` is the image, as in all that follow
  kWindows,        // win/: `zoom` has the plane if it is one's
  kZarrDirectory,  // ome.zarr/ and the directories in it
  kZoomDirectory,  // plane/, dz_files/ and the directories in them
  kIiifDirectory,  // iiif/ and the directories in it: `zoom` has the plane
  kFrames,         // frames/: `name` is that of the image
  kInfo,           // info.json
  kImageNpy,       // NAME.npy
  kImageRaw,       // NAME.raw
  kImageTiff,      // NAME.tif
  kHeader,         // NAME.nhdr and the like: `name` is the file with the samples
  kWindow,         // win/<spec>.<suffix>
  kZarrFile,       // a file in ome.zarr/
  kStagedFile,     // a file that will become a chunk: `staged`
  kZoomFile,       // dz.dzi; tiles are kWindow
  kIiifFile,       // info.json of iiif/; pictures are kWindow
  kLink,           // NAME@ of a symbolic link, `ino`: a link to the views of its target
};
constexpr bool is_directory(NodeKind kind) { return kind < NodeKind::kInfo; }
constexpr bool is_whole_image(NodeKind kind) { return kind == NodeKind::kImageNpy || kind == NodeKind::kImageRaw; }

// Identity of a node; two look-ups with equal specifications are one node.
struct NodeSpec {
  NodeKind kind = NodeKind::kControl;
  volume::Ino ino = 0;
  NodeId parent = 0;             // directories have one place in the tree; 0 for files
  std::string name;              // directories: their name there, or that of the image where `canonical` is given
  views::HeaderFormat header{};  // kHeader
  views::WindowName window;      // kWindow
  std::string canonical;   // kWindow, kHeader, of Zarr, staged, Deep Zoom and IIIF: stands for all that the kind adds,
                           // in comparisons
  views::ZarrName zarr{};  // kZarrDirectory, kZarrFile
  std::shared_ptr<StagedFile> staged{};  // kStagedFile
  views::ZoomName zoom{};                // kZoomDirectory, kZoomFile, kIiifDirectory, kWindows of a plane
  views::IiifName iiif{};                // kIiifDirectory, kIiifFile
};

// Of a window, under whichever name.
NodeSpec window_spec(volume::Ino image, const views::WindowName& window);

struct Node {
  NodeId id = 0;
  NodeSpec spec;
};

// An entry of a virtual directory that the kernel may hold.
struct CachedName {
  NodeId parent = 0;
  std::string name;
};

// Any thread may call any method; none blocks for long. Numbers are never reused.
class NodeTable {
 public:
  // Largest number of names for a node that the table remembers to invalidate; further names must not be cached.
  static constexpr std::size_t kMaxNames = 4;

  // Adds a look-up to the node, and creates the node if necessary.
  std::shared_ptr<const Node> look_up(NodeSpec spec);
  std::shared_ptr<const Node> find(NodeId id) const;
  // Removes look-ups; a node without look-ups is deleted.
  void forget(NodeId id, std::uint64_t lookups);

  // True if the kernel may cache this name of the node, which the table then remembers.
  bool remember_name(NodeId id, NodeId parent, const std::string& name);
  // Call before the kernel gets attributes or bytes of the node: it must be notified when they change.
  void mark_fresh(NodeId id);
  // The image's nodes marked since the last call; they count as notified.
  std::vector<NodeId> take_fresh(volume::Ino image);
  bool has_nodes(volume::Ino image) const;

  // Views that were opened through this node, and are open: for nodes whose size is unknown before, and for chunks,
  // which stay while they are open. Each descriptor may have another version; the kernel has one size for all. Nothing:
  // none is open. Else the largest size: a reader of a smaller version meets its end earlier.
  void note_open(NodeId id, const std::shared_ptr<const views::View>& view);
  std::optional<std::uint64_t> open_size(NodeId id) const;

  // A chunk of an image with a codec is shown as its stored frame, or as a plain frame, which is larger. One that is
  // not stored is plain. It stays plain for kPlainTime after the last such call, and while a plain frame is open, so
  // that a write-back between stat(2) and open(2) does not change its size.
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPlainTime{5};
  bool shows_plain(NodeId id, bool is_stored, std::uint64_t plain_bytes, Clock::time_point now);

  // The size of the image when names under win/ were handed out, and the names whose window depends on it.
  void note_size(volume::Ino image, std::uint64_t size_bytes);
  std::vector<CachedName> take_names_if_size_changed(volume::Ino image, std::uint64_t size_bytes);

  std::size_t size() const;
  // Names of the oldest nodes. The table forgets them, and the caller tells the kernel to drop them.
  std::vector<CachedName> take_oldest_names(std::size_t nodes);

 private:
  struct Entry {
    std::shared_ptr<const Node> node;
    std::uint64_t lookups = 0;
    bool fresh = false;
    std::vector<CachedName> names;
    std::vector<std::weak_ptr<const views::View>> open;
    Clock::time_point plain_until{};
    std::list<NodeId>::iterator age;
  };
  struct Image {
    std::vector<NodeId> nodes;
    std::vector<NodeId> fresh;
    std::optional<std::uint64_t> size_bytes;
  };
  static std::string key_of(const NodeSpec& spec);

  mutable std::mutex mutex_;  // guards everything below
  NodeId next_ = kVirtualBit + 1;
  std::unordered_map<NodeId, Entry> entries_;
  std::unordered_map<std::string, NodeId> by_key_;
  std::unordered_map<volume::Ino, Image> images_;
  std::list<NodeId> by_age_;  // oldest first
};

}  // namespace mdfs::fuse
