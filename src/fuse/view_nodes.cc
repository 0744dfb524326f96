// Virtual nodes.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/view_nodes.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "fuse/frame_nodes.h"
#include "fuse/iiif_nodes.h"
#include "fuse/listing.h"
#include "fuse/reply.h"
#include "fuse/shown_image.h"
#include "fuse/zarr_nodes.h"
#include "fuse/zoom_nodes.h"
#include "views/cut_view.h"
#include "views/info_json.h"
#include "views/level_view.h"
#include "views/rendered_view.h"
#include "views/tiff.h"
#include "views/tiff_metadata.h"
#include "views/window_writer.h"

namespace mdfs::fuse {
namespace {

using volume::Attributes;
using volume::Ino;

constexpr mode_t kReadBits = 0444;
constexpr mode_t kWriteBits = 0222;
constexpr const char* kWritable = "only raw and npy windows, and chunks, of the image itself can be written";

Error no_such(std::string_view name) { return {Errc::kNotFound, std::string(name)}; }

bool is_writable(const NodeSpec& spec) {
  return (spec.kind == NodeKind::kWindow && views::is_writable(spec.window)) || is_written_chunk(spec);
}

// Readers and writers of an image may enter its views, readers may list them. Writers may make chunks.
mode_t directory_mode(mode_t image_mode, bool has_chunks) {
  const mode_t readable = image_mode & kReadBits, writable = image_mode & kWriteBits;
  return S_IFDIR | readable | readable >> 2 | writable >> 1 | (has_chunks ? writable : 0);
}

// A chunk that is open is there, even if it is a hole: a descriptor writes it, or keeps the version before the hole.
// The kernel may have cached the name of one that has become a hole: for ESTALE it looks the name up once more, and may
// then create the chunk.
Status check_zarr(Server& server, const Node& node) {
  const Status there = check_zarr_node(server.volume(), node.spec);
  if (there.ok() || there.error().code != Errc::kNotFound || !is_written_chunk(node.spec)) return there;
  return server.nodes().open_size(node.id) ? Status() : Status(Errc::kStaleDisk, node.spec.canonical);
}

struct stat staged_attributes(Server& server, const std::shared_ptr<StagedFile>& file, struct stat st) {
  st.st_mode = S_IFREG | file->mode;
  st.st_uid = file->uid;
  st.st_gid = file->gid;
  st.st_nlink = server.staged_files().has_name(*file) ? 1 : 0;
  st.st_size = static_cast<off_t>(StagedView(file).size_bytes());
  return st;
}

Result<std::unique_ptr<Handle>> open_staged(Server& server, std::shared_ptr<const Node> node, int flags) {
  const auto file = node->spec.staged;
  MDFS_TRY(server.volume().open_file(file->image, false));
  server.staged_files().reopen(*file);
  auto handle = staged_handle(std::move(node), file, flags);
  if ((flags & O_TRUNC) != 0) (void)empty_staged(*file);  // a file that has become a chunk has no bytes
  return handle;
}

constexpr std::string_view kRawSuffix = "raw", kTiffSuffix = "tif";
std::string data_file_of(std::string_view image) { return fmt::format("{}.{}", image, kRawSuffix); }

// Of a kHeader. kNotFound: the format cannot describe the image as it is now.
Result<std::string> header_text(const volume::ImageInfo& info, const NodeSpec& spec) {
  auto text = views::detached_header(info.geometry, spec.header, spec.name);
  if (!text.ok()) return Error{Errc::kNotFound, text.error().where};
  return text;
}

// kNotFound: TIFF cannot hold the image as it is now.
Result<views::TiffLayout> tiff_layout(volume::Volume& volume, Ino image) {
  auto layout = views::tiff_layout(volume, image);
  if (!layout.ok() && layout.error().code == Errc::kInvalidArgument)
    return Error{Errc::kNotFound, layout.error().where};
  return layout;
}

views::ViewFile whole_image(const geometry::Geometry& geometry, NodeKind kind) {
  return kind == NodeKind::kImageRaw ? views::view_image_raw(geometry) : views::view_image_npy(geometry);
}

std::shared_ptr<const Node> node_for(Server& server, NodeSpec spec) { return server.nodes().look_up(std::move(spec)); }

// NAME in a real directory, as the directories of the mirror and as views of images.
Result<std::shared_ptr<const Node>> mirrored(Server& server, NodeId parent, Ino directory, std::string_view name,
                                             bool directories_too) {
  MDFS_TRY_ASSIGN(const Attributes attributes, server.volume().lookup(directory, name));
  // A virtual node holds nothing of the volume: once the image is gone, it answers that it does not exist.
  server.volume().forget(attributes.ino, 1);
  const bool is_directory = S_ISDIR(attributes.mode);
  if (S_ISLNK(attributes.mode) && !directories_too)
    return node_for(
        server,
        {.kind = NodeKind::kLink, .ino = attributes.ino, .parent = 0, .name = {}, .window = {}, .canonical = {}});
  if (!attributes.is_image && !(is_directory && directories_too)) return no_such(name);
  return node_for(server, {.kind = is_directory ? NodeKind::kMirror : NodeKind::kView,
                           .ino = attributes.ino,
                           .parent = parent,
                           .name = std::string(name),
                           .window = {},
                           .canonical = {}});
}

// NAME.npy, NAME.raw, NAME.tif and the headers that lead to NAME.raw.
Result<std::shared_ptr<const Node>> whole_image_file(Server& server, NodeSpec spec, const std::string& image,
                                                     std::string_view suffix) {
  if (suffix == "npy" || suffix == kRawSuffix) {
    spec.kind = suffix == "npy" ? NodeKind::kImageNpy : NodeKind::kImageRaw;
    return node_for(server, std::move(spec));
  }
  if (suffix == kTiffSuffix) {
    MDFS_TRY_ASSIGN(const geometry::Geometry geometry, server.volume().image_geometry(spec.ino));
    if (!views::TiffLayout::of({.image = geometry}).ok()) return no_such(suffix);
    spec.kind = NodeKind::kImageTiff;
    return node_for(server, std::move(spec));
  }
  const auto format = views::parse_header_suffix(suffix);
  if (!format) return no_such(suffix);
  spec.kind = NodeKind::kHeader;
  spec.header = *format;
  spec.name = data_file_of(image);
  spec.canonical = std::string(suffix) + ":" + image;
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(spec.ino));
  if (const Status there = views::check_header(info.geometry, spec.header, spec.name); !there.ok())
    return no_such(there.error().where);
  return node_for(server, std::move(spec));
}

Result<std::shared_ptr<const Node>> in_view(Server& server, const Node& view, std::string_view name) {
  NodeSpec spec{.kind = NodeKind::kInfo, .ino = view.spec.ino, .parent = 0, .name = {}, .window = {}, .canonical = {}};
  if (name == kInfoName) return node_for(server, std::move(spec));
  if (name == kWindowsName) {
    spec.kind = NodeKind::kWindows;
    spec.parent = view.id;
    return node_for(server, std::move(spec));
  }
  if (name == views::kZarrName) return node_for(server, zarr_root(view));
  if (name == views::kFramesName) {
    MDFS_TRY_ASSIGN(NodeSpec frames, frames_in_view(server.volume(), view));
    return node_for(server, std::move(frames));
  }
  Result<NodeSpec> zoom = zoom_in_view(server.volume(), view, name);
  if (zoom.ok()) return node_for(server, std::move(*zoom));
  // Behind the fixed names: an image may be called "ome" or "dz".
  if (name.size() > view.spec.name.size() && name.starts_with(view.spec.name + "."))
    return whole_image_file(server, std::move(spec), view.spec.name, name.substr(view.spec.name.size() + 1));
  return std::move(zoom).error();
}

// Names of windows that depend on the size of the image are dropped when it changes.
std::shared_ptr<const Node> window_node(Server& server, NodeSpec spec, std::uint64_t size_bytes) {
  const Ino image = spec.ino;
  auto node = node_for(server, std::move(spec));
  server.nodes().note_size(image, size_bytes);
  return node;
}

// An entry of a directory whose files are windows.
Result<std::shared_ptr<const Node>> in_zoom(Server& server, const Node& directory, std::string_view name) {
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(directory.spec.ino));
  const auto child = directory.spec.kind == NodeKind::kZoomDirectory   ? zoom_child
                     : directory.spec.kind == NodeKind::kIiifDirectory ? iiif_child
                                                                       : frame_child;
  MDFS_TRY_ASSIGN(NodeSpec spec, child(server.volume(), directory, name));
  if (spec.kind == NodeKind::kWindow) return window_node(server, std::move(spec), info.size_bytes);
  return node_for(server, std::move(spec));
}

Result<std::shared_ptr<const Node>> in_windows(Server& server, const Node& windows, std::string_view name) {
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(windows.spec.ino));
  if (windows.spec.zoom.plane) {
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), windows.spec.ino));
    const auto parsed = views::parse_plane_window(image, *windows.spec.zoom.plane, name);
    if (!parsed.ok()) return Error{Errc::kNotFound, parsed.error().message()};
    return window_node(server, window_spec(windows.spec.ino, *parsed), info.size_bytes);
  }
  auto parsed = views::parse_window_name(info.geometry, name);
  if (!parsed.ok()) {  // a picture that only a range of display makes possible?
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), windows.spec.ino));
    if (image.display) parsed = views::parse_window_name(image, name);
  }
  if (!parsed.ok()) return Error{Errc::kNotFound, parsed.error().message()};
  return window_node(server, window_spec(windows.spec.ino, *parsed), info.size_bytes);
}

struct stat control_attributes(NodeId id) {
  struct stat st {};
  st.st_ino = id;
  st.st_mode = S_IFDIR | 0555;
  st.st_nlink = 2;
  st.st_blksize = kFileBlockBytes;
  return st;
}

ShowsPlain shows_plain(Server& server, const Node& node) {
  return [&server, id = node.id](bool is_stored, std::uint64_t plain_bytes) {
    return server.nodes().shows_plain(id, is_stored, plain_bytes, NodeTable::Clock::now());
  };
}

Result<std::uint64_t> size_of(Server& server, const Node& node) {
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(node.spec.ino));
  if (node.spec.kind == NodeKind::kInfo) return std::uint64_t{views::info_json(info).size()};
  if (is_whole_image(node.spec.kind)) return whole_image(info.geometry, node.spec.kind).size_bytes();
  if (node.spec.kind == NodeKind::kHeader) {
    MDFS_TRY_ASSIGN(const std::string text, header_text(info, node.spec));
    return std::uint64_t{text.size()};
  }
  if (node.spec.kind == NodeKind::kImageTiff) {
    MDFS_TRY_ASSIGN(const views::TiffLayout layout, tiff_layout(server.volume(), node.spec.ino));
    return layout.size_bytes();
  }
  if (node.spec.kind == NodeKind::kZarrFile) {
    MDFS_TRY_ASSIGN(const std::uint64_t size, zarr_file_size(server.volume(), node.spec, shows_plain(server, node)));
    if (node.spec.zarr.kind != views::ZarrKind::kChunk) return size;
    return std::max(size, server.nodes().open_size(node.id).value_or(0));
  }
  if (node.spec.kind == NodeKind::kZoomFile) {
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), node.spec.ino));
    MDFS_TRY_ASSIGN(const std::string text, zoom_text(image, node.spec));
    return std::uint64_t{text.size()};
  }
  if (node.spec.kind == NodeKind::kIiifFile) {
    MDFS_TRY_ASSIGN(const std::string text, iiif_text(server.volume(), node.spec));
    return std::uint64_t{text.size()};
  }
  views::ShownImage image = info.geometry;
  if (views::is_rendered(node.spec.window.format)) {
    MDFS_TRY_ASSIGN(image, shown_image(server.volume(), node.spec.ino));
  }
  const auto size = views::known_size(image, node.spec.window);
  if (!size.ok()) return Error{Errc::kNotFound, size.error().message()};
  if (*size) return **size;
  // As for files of procfs: size 0 by name, the exact size by an open descriptor.
  return server.nodes().open_size(node.id).value_or(0);
}

}  // namespace

bool is_rendered(const NodeSpec& spec) {
  return spec.kind == NodeKind::kWindow &&
         (spec.window.level > 0 || spec.window.cut || views::is_rendered(spec.window.format));
}

// The size of a rendered or staged file changes with its opens. A chunk of zeros becomes a hole when it is written
// back, and the kernel is not told.
double attribute_seconds(const Node& node) {
  const bool is_chunk = node.spec.kind == NodeKind::kZarrFile && node.spec.zarr.kind == views::ZarrKind::kChunk;
  return is_chunk || node.spec.kind == NodeKind::kStagedFile || is_rendered(node.spec) ? 0 : kAttributeSeconds;
}

bool is_view_name(Ino parent, std::string_view name) {
  return name.ends_with(kViewMark) || (parent == volume::kRootIno && name == kControlName);
}

Result<std::shared_ptr<const Node>> look_up_view(Server& server, NodeId parent, std::string_view name) {
  if (!is_virtual(parent)) {
    if (parent == volume::kRootIno && name == kControlName) {
      return node_for(server, {.kind = NodeKind::kControl,
                               .ino = volume::kRootIno,
                               .parent = parent,
                               .name = std::string(name),
                               .window = {},
                               .canonical = {}});
    }
    name.remove_suffix(1);
    if (name.empty()) return no_such("@");
    return mirrored(server, parent, parent, name, false);
  }
  const auto node = server.nodes().find(parent);
  if (!node) return no_such(name);
  switch (node->spec.kind) {
    case NodeKind::kControl:
      if (name != kMirrorName) return no_such(name);
      return node_for(server, {.kind = NodeKind::kMirror,
                               .ino = volume::kRootIno,
                               .parent = parent,
                               .name = std::string(name),
                               .window = {},
                               .canonical = {}});
    case NodeKind::kMirror:
      return mirrored(server, parent, node->spec.ino, name, true);
    case NodeKind::kView:
      return in_view(server, *node, name);
    case NodeKind::kWindows:
      return in_windows(server, *node, name);
    case NodeKind::kZarrDirectory: {
      auto spec = zarr_child(server.volume(), *node, name);
      if (spec.ok()) return node_for(server, std::move(*spec));
      const auto staged = server.staged_files().find(staged_key(node->spec, name));
      if (!staged) return std::move(spec).error();
      return node_for(server, staged_spec(staged));
    }
    case NodeKind::kZoomDirectory:
    case NodeKind::kIiifDirectory:
    case NodeKind::kFrames:
      return in_zoom(server, *node, name);
    case NodeKind::kInfo:
    case NodeKind::kImageNpy:
    case NodeKind::kImageRaw:
    case NodeKind::kImageTiff:
    case NodeKind::kHeader:
    case NodeKind::kWindow:
    case NodeKind::kZarrFile:
    case NodeKind::kStagedFile:
    case NodeKind::kZoomFile:
    case NodeKind::kIiifFile:
    case NodeKind::kLink:
      break;
  }
  return Error{Errc::kNotDirectory, std::string(name)};
}

Result<struct stat> view_attributes(Server& server, const Node& node) {
  server.nodes().mark_fresh(node.id);
  const NodeSpec& spec = node.spec;
  if (spec.kind == NodeKind::kControl) return control_attributes(node.id);
  if (is_of_zarr(spec)) MDFS_TRY(check_zarr(server, node));
  if (is_of_zoom(spec)) MDFS_TRY(check_zoom_node(server.volume(), spec));
  if (is_of_iiif(spec)) MDFS_TRY(check_iiif_node(server.volume(), spec));
  if (spec.kind == NodeKind::kFrames) MDFS_TRY(check_frames_node(server.volume(), spec));
  MDFS_TRY_ASSIGN(const Attributes attributes, server.volume().attributes(spec.ino));
  struct stat st = to_stat(attributes);
  st.st_ino = node.id;
  st.st_nlink = 1;
  st.st_blocks = 0;
  if (spec.kind == NodeKind::kMirror) {
    st.st_mode = S_IFDIR | (attributes.mode & 0555);
    return st;
  }
  st.st_atim = st.st_mtim;
  if (spec.kind == NodeKind::kStagedFile) return staged_attributes(server, spec.staged, st);
  if (is_directory(spec.kind)) {
    st.st_mode = directory_mode(attributes.mode, is_chunk_directory(spec));
    st.st_size = 0;
    return st;
  }
  if (spec.kind == NodeKind::kLink) {
    MDFS_TRY_ASSIGN(const std::string target, view_link(server, node.id));
    st.st_mode = S_IFLNK | 0777;
    st.st_size = static_cast<off_t>(target.size());
    return st;
  }
  st.st_mode = S_IFREG | (attributes.mode & (is_writable(spec) ? kReadBits | kWriteBits : kReadBits));
  MDFS_TRY_ASSIGN(const std::uint64_t size, size_of(server, node));
  st.st_size = static_cast<off_t>(size);
  st.st_blocks = static_cast<blkcnt_t>((size + 511) / 512);
  return st;
}

Result<std::string> view_link(Server& server, NodeId id) {
  const auto node = server.nodes().find(id);
  if (!node || node->spec.kind != NodeKind::kLink) return Error{Errc::kInvalidArgument, "not a symbolic link"};
  MDFS_TRY_ASSIGN(std::string target, server.volume().read_symlink(node->spec.ino));
  while (target.ends_with('/')) target.pop_back();
  return target + kViewMark;
}

bool may_cache_name(Server& server, const Node& node, NodeId parent, const std::string& name) {
  // Below a view names mean what they mean as long as the view is this one; the view itself, and the directories of the
  // mirror, follow real names. A name of a staged file is another one's after a rename.
  if (node.spec.kind == NodeKind::kStagedFile) return false;
  const bool below_view = node.spec.kind == NodeKind::kWindows || node.spec.kind == NodeKind::kFrames ||
                          node.spec.kind == NodeKind::kZarrDirectory || node.spec.kind == NodeKind::kZoomDirectory ||
                          node.spec.kind == NodeKind::kIiifDirectory ||
                          (!is_directory(node.spec.kind) && node.spec.kind != NodeKind::kLink);
  return below_view && server.nodes().remember_name(node.id, parent, name);
}

Result<std::unique_ptr<Handle>> open_view(Server& server, std::shared_ptr<const Node> node, int flags,
                                          const volume::Caller& caller, const engine::Stop& stop) {
  const NodeSpec& spec = node->spec;
  if (is_directory(spec.kind)) return Error{Errc::kIsDirectory, spec.name};
  const bool writes_chunk = is_written_chunk(spec) && can_write(flags);
  if (is_of_zarr(spec) && !writes_chunk) MDFS_TRY(check_zarr(server, *node));
  if (is_of_zoom(spec)) MDFS_TRY(check_zoom_node(server.volume(), spec));
  if (is_of_iiif(spec)) MDFS_TRY(check_iiif_node(server.volume(), spec));
  if (spec.kind == NodeKind::kLink) return Error{Errc::kInvalidArgument, "a symbolic link"};
  const int mask = (can_read(flags) ? R_OK : 0) | (can_write(flags) ? W_OK : 0);
  MDFS_TRY(server.volume().check_access(spec.ino, mask, caller));
  if (spec.kind == NodeKind::kStagedFile) return open_staged(server, std::move(node), flags);
  MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(spec.ino));

  auto handle = std::make_unique<Handle>();
  handle->ino = spec.ino;
  handle->flags = flags;
  if (spec.kind == NodeKind::kInfo) {
    handle->view = std::make_shared<views::TextView>(views::info_json(info));
  } else if (spec.kind == NodeKind::kHeader) {
    MDFS_TRY_ASSIGN(std::string text, header_text(info, spec));
    handle->view = std::make_shared<views::TextView>(std::move(text));
  } else if (spec.kind == NodeKind::kZoomFile) {
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), spec.ino));
    MDFS_TRY_ASSIGN(std::string text, zoom_text(image, spec));
    handle->view = std::make_shared<views::TextView>(std::move(text));
  } else if (spec.kind == NodeKind::kIiifFile) {
    MDFS_TRY_ASSIGN(std::string text, iiif_text(server.volume(), spec));
    handle->view = std::make_shared<views::TextView>(std::move(text));
  } else if (spec.kind == NodeKind::kImageTiff) {
    MDFS_TRY_ASSIGN(views::TiffLayout layout, tiff_layout(server.volume(), spec.ino));
    handle->view =
        std::make_shared<views::TiffView>(server.volume(), spec.ino, std::move(layout), server.staging(), caller.uid);
  } else if (spec.kind == NodeKind::kZarrFile) {
    MDFS_TRY_ASSIGN(handle->view, open_zarr_file(server.volume(), spec, server.staging(), caller.uid,
                                                 shows_plain(server, *node), stop));
    handle->chunk = chunk_window(info.geometry, spec.zarr);
  } else if (is_rendered(spec)) {
    if (can_write(flags)) return Error{Errc::kAccessDenied, kWritable};
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), spec.ino));
    volume::Volume& volume = server.volume();
    const auto open = [&]() -> Result<std::shared_ptr<views::View>> {
      views::StagingPool& pool = server.staging();
      if (views::is_rendered(spec.window.format))
        return views::RenderedView::open(volume, spec.ino, image, spec.window, pool, caller.uid, stop);
      if (spec.window.cut) return views::open_cut(volume, spec.ino, info.geometry, spec.window, pool, caller.uid, stop);
      return views::open_level(volume, spec.ino, info.geometry, spec.window, pool, caller.uid, stop);
    };
    auto view = open();
    if (!view.ok() && view.error().code == Errc::kOutOfRange) return Error{Errc::kNotFound, view.error().message()};
    if (!view.ok()) return view.error();
    handle->view = std::move(*view);
  } else {
    views::ViewFile file;
    if (is_whole_image(spec.kind)) {
      file = whole_image(info.geometry, spec.kind);
    } else {
      auto window = views::view_window(info.geometry, spec.window);
      if (!window.ok()) return Error{Errc::kNotFound, window.error().message()};
      file = std::move(*window);
    }
    handle->window = std::make_shared<views::WindowReader>(server.volume(), spec.ino,
                                                           std::make_shared<const views::ViewFile>(std::move(file)));
    handle->view = handle->window;
  }
  if (can_write(flags)) {
    if (!is_writable(spec)) return Error{Errc::kAccessDenied, kWritable};
    handle->node = node;
    MDFS_TRY_ASSIGN(handle->writer, new_writer(server, *handle, caller.uid, (flags & O_TRUNC) != 0));
  }
  MDFS_TRY(server.volume().open_file(spec.ino, false));
  if (!handle->view->may_cache() || is_written_chunk(spec)) server.nodes().note_open(node->id, handle->view);
  handle->node = std::move(node);
  return handle;
}

std::unique_ptr<Handle> staged_handle(std::shared_ptr<const Node> node, std::shared_ptr<StagedFile> file, int flags) {
  auto handle = std::make_unique<Handle>();
  handle->ino = file->image;
  handle->flags = flags;
  handle->view = std::make_shared<StagedView>(file);
  handle->staged = std::move(file);
  handle->node = std::move(node);
  return handle;
}

Result<std::unique_ptr<views::StagedWrite>> new_writer(Server& server, const Handle& handle, uid_t owner,
                                                       bool truncated) {
  std::unique_ptr<views::StagedWrite> made;
  if (handle.window) {
    MDFS_TRY_ASSIGN(made, views::WindowWriter::create(server.volume(), handle.ino, *handle.window->file(),
                                                      server.staging(), owner, truncated));
  } else if (handle.chunk) {
    MDFS_TRY_ASSIGN(
        made, chunk_writer(server.volume(), handle.ino, handle.node->spec.zarr, server.staging(), owner, truncated));
  } else {
    return Error{Errc::kInvalidArgument, "a window of a level, or a frame of a stream, is only read"};
  }
  return made;
}

bool lists_records(const Node& node) {
  return node.spec.kind == NodeKind::kZarrDirectory && node.spec.zarr.kind == views::ZarrKind::kChunks;
}

Result<std::vector<volume::DirectoryEntry>> read_view_directory(Server& server, const Node& node, std::uint64_t offset,
                                                                std::size_t limit, const engine::Stop& stop) {
  if (node.spec.kind == NodeKind::kZarrDirectory)
    return read_zarr_directory(server.volume(), node, offset, limit, stop);
  if (node.spec.kind == NodeKind::kIiifDirectory) return read_iiif_directory(node, offset, limit);
  if (node.spec.kind == NodeKind::kFrames) return read_frames_directory(server.volume(), node, offset, limit);
  if (node.spec.kind == NodeKind::kZoomDirectory) return read_zoom_directory(server.volume(), node, offset, limit);
  if (node.spec.kind == NodeKind::kMirror) {
    MDFS_TRY_ASSIGN(auto real, server.volume().read_directory(node.spec.ino, offset, limit));
    std::vector<volume::DirectoryEntry> entries;
    for (volume::DirectoryEntry& entry : real) {
      if (entry.type == DT_REG) {
        const auto attributes = server.volume().attributes(entry.ino);
        if (!attributes.ok() || !attributes->is_image) entry.name.clear();
        entry.type = DT_DIR;
      } else if (entry.type != DT_DIR) {
        entry.name.clear();
      }
      // An entry without a name keeps its cookie, so that the reader continues behind it.
      entries.push_back(std::move(entry));
    }
    return entries;
  }
  std::vector<ListedEntry> names;
  if (node.spec.kind == NodeKind::kControl) names.push_back({std::string(kMirrorName), DT_DIR});
  if (node.spec.kind == NodeKind::kView) {
    names.push_back({std::string(kInfoName), DT_REG});
    names.push_back({node.spec.name + ".npy", DT_REG});
    names.push_back({data_file_of(node.spec.name), DT_REG});
    MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(node.spec.ino));
    if (views::TiffLayout::of({.image = info.geometry}).ok())
      names.push_back({fmt::format("{}.{}", node.spec.name, kTiffSuffix), DT_REG});
    for (const views::HeaderFormat format : views::kHeaderFormats)
      if (views::check_header(info.geometry, format, data_file_of(node.spec.name)).ok())
        names.push_back({fmt::format("{}.{}", node.spec.name, views::suffix(format)), DT_REG});
    names.push_back({std::string(kWindowsName), DT_DIR});
    names.push_back({std::string(views::kZarrName), DT_DIR});
    MDFS_TRY_ASSIGN(const views::ShownImage image, shown_image(server.volume(), node.spec.ino));
    if (has_frames(image, node.spec.name)) names.push_back({std::string(views::kFramesName), DT_DIR});
    for (const auto& [name, type] : zoom_names_in_view(image)) names.push_back({std::string(name), type});
    // A program cannot open a longer name.
    std::erase_if(names, [](const auto& entry) { return entry.name.size() > NAME_MAX; });
  }
  return list_directory(node, names.size(), offset, limit, [&](std::uint64_t number) { return names[number]; });
}

}  // namespace mdfs::fuse
