// Virtual nodes: looking them up, their attributes, and opening them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/handles.h"
#include "fuse/server.h"

namespace mdfs::fuse {

inline constexpr std::string_view kControlName = ".mdfs";
inline constexpr std::string_view kMirrorName = "img";
inline constexpr std::string_view kInfoName = "info.json";
inline constexpr char kViewMark = '@';

// Names that lead from a real directory into virtual ones.
bool is_view_name(volume::Ino parent, std::string_view name);

// Looks `name` up in a real directory (is_view_name holds) or a virtual one. The node found has one more look-up. It
// holds nothing of the volume.
Result<std::shared_ptr<const Node>> look_up_view(Server& server, NodeId parent, std::string_view name);

// kNotFound if the node no longer exists: the image was truncated, or is gone.
Result<struct stat> view_attributes(Server& server, const Node& node);

// How long the kernel may keep the attributes of a node.
double attribute_seconds(const Node& node);

// Target of NAME@ of a symbolic link: the target of the link, with the mark.
Result<std::string> view_link(Server& server, NodeId id);
// True if the kernel may cache the entry that it has just received: only inside a view.
bool may_cache_name(Server& server, const Node& node, NodeId parent, const std::string& name);

// True if opening the virtual file encodes or computes it, which may take long.
bool is_rendered(const NodeSpec& spec);

// A handle for a virtual file; checks the caller's permission on the image itself, and opens it: release_file() with
// the handle's end. `stop` ends the encoding of a rendered file.
Result<std::unique_ptr<Handle>> open_view(Server& server, std::shared_ptr<const Node> node, int flags,
                                          const volume::Caller& caller, const engine::Stop& stop);

// A handle for a staged file that is open (StagedFiles), of an image that is.
std::unique_ptr<Handle> staged_handle(std::shared_ptr<const Node> node, std::shared_ptr<StagedFile> file, int flags);
// For the bytes that a caller writes through the handle; of its window or chunk. The mutex of a handle that others have
// is held.
Result<std::unique_ptr<views::StagedWrite>> new_writer(Server& server, const Handle& handle, uid_t owner,
                                                       bool truncated);

// True if listing the directory may look through many records, which takes long.
bool lists_records(const Node& node);

// The entries of a virtual directory after `offset` (0 = from the start), with "." and "..".
Result<std::vector<volume::DirectoryEntry>> read_view_directory(Server& server, const Node& node, std::uint64_t offset,
                                                                std::size_t limit, const engine::Stop& stop);

}  // namespace mdfs::fuse
