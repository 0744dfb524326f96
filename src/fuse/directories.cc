// Operations on directories.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "fuse/interrupts.h"
#include "fuse/operations.h"
#include "fuse/reply.h"
#include "fuse/view_nodes.h"
#include "fuse/zarr_nodes.h"

namespace mdfs::fuse {
namespace {

using volume::DirectoryEntry;

// Entries asked of the volume at a time.
constexpr std::size_t kBatch = 256;
constexpr std::size_t kMinEntryBytes = 32;

Result<std::vector<DirectoryEntry>> entries_of(Server& server, fuse_ino_t ino, std::uint64_t offset, std::size_t limit,
                                               const engine::Stop& stop) {
  if (!is_virtual(ino)) return server.volume().read_directory(ino, offset, limit);
  const auto node = server.nodes().find(ino);
  if (!node) return Error{Errc::kNotFound, "a virtual directory"};
  return read_view_directory(server, *node, offset, limit, stop);
}

bool is_dot(const std::string& name) { return name == "." || name == ".."; }

// Adds entries until the reply is full.
class Listing {
 public:
  Listing(fuse_req_t req, fuse_ino_t directory, std::size_t size, bool plus)
      : req_(req), server_(server_of(req)), directory_(directory), buffer_(size), plus_(plus) {}

  // False: the reply is full, or its caller has stopped waiting.
  bool add(const DirectoryEntry& entry) {
    if (entry.name.empty()) return true;
    return plus_ ? add_plus(entry) : add_plain(entry);
  }

  void reply() {
    if (fuse_reply_buf(req_, buffer_.data(), used_) == 0) return;
    for (const fuse_ino_t ino : looked_up_) server_.volume().forget(ino, 1);
  }
  // Instead of reply().
  void give_up(const Error& error) {
    for (const fuse_ino_t ino : looked_up_) server_.volume().forget(ino, 1);
    reply_error(req_, error);
  }
  bool empty() const { return used_ == 0; }
  bool stopped() const { return stopped_; }
  std::size_t room() const { return buffer_.size() - used_; }

 private:
  bool add_plain(const DirectoryEntry& entry) {
    struct stat st {};
    st.st_ino = entry.ino;
    st.st_mode = static_cast<mode_t>(entry.type) << 12;
    return took(fuse_add_direntry(req_, buffer_.data() + used_, room(), entry.name.c_str(), &st,
                                  static_cast<off_t>(entry.cookie)));
  }

  bool add_plus(const DirectoryEntry& entry) {
    fuse_entry_param param{};  // node 0: a name without attributes
    param.attr.st_ino = entry.ino;
    param.attr.st_mode = static_cast<mode_t>(entry.type) << 12;
    if (fuse_add_direntry_plus(req_, nullptr, 0, entry.name.c_str(), nullptr, 0) > room()) return false;
    if (!is_dot(entry.name) && !is_virtual(directory_)) {
      const auto attributes = reading(req_, [&] { return server_.volume().lookup(directory_, entry.name); });
      if (!attributes.ok() && attributes.error().code == Errc::kNotFound) return true;  // gone meanwhile
      stopped_ = !attributes.ok() && attributes.error().code == Errc::kCancelled;
      if (stopped_) return false;
      if (attributes.ok()) {
        param = to_entry(*attributes);
        looked_up_.push_back(attributes->ino);
      }
    }
    return took(fuse_add_direntry_plus(req_, buffer_.data() + used_, room(), entry.name.c_str(), &param,
                                       static_cast<off_t>(entry.cookie)));
  }

  bool took(std::size_t bytes) {
    if (bytes > room()) return false;
    used_ += bytes;
    return true;
  }

  fuse_req_t req_;
  Server& server_;
  const fuse_ino_t directory_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  const bool plus_;
  bool stopped_ = false;
  std::vector<fuse_ino_t> looked_up_;
};

void list_now(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, bool plus) {
  Listing listing(req, ino, std::min(size, kMaxTransferBytes), plus);
  auto at = static_cast<std::uint64_t>(offset);
  const engine::Stop stop = stop_of(req);
  for (;;) {
    const std::size_t limit = std::clamp<std::size_t>(listing.room() / kMinEntryBytes, 1, kBatch);
    const auto entries = reading(req, [&] { return entries_of(server_of(req), ino, at, limit, stop); });
    if (!entries.ok()) return listing.give_up(entries.error());
    for (const DirectoryEntry& entry : *entries) {
      if (!listing.add(entry)) return listing.stopped() ? listing.give_up(interrupted()) : listing.reply();
      at = entry.cookie;
    }
    if (entries->empty()) return listing.reply();
  }
}

void list(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, bool plus) {
  Server& server = server_of(req);
  const auto node = is_virtual(ino) ? server.nodes().find(ino) : nullptr;
  if (!node || !lists_records(*node)) return list_now(req, ino, size, offset, plus);
  server.list_queue().post(job_of(req, [=] { list_now(req, ino, size, offset, plus); }));
}

}  // namespace

void op_opendir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  fi->fh = 0;
  fuse_reply_open(req, fi);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info*) {
  list(req, ino, size, offset, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, std::size_t size, off_t offset, fuse_file_info*) {
  list(req, ino, size, offset, true);
}

void op_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info*) { fuse_reply_err(req, 0); }

void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info*) {
  Server& server = server_of(req);
  if (is_virtual(ino)) {
    const auto node = server.nodes().find(ino);
    if (!node || !is_chunk_directory(node->spec)) {
      fuse_reply_err(req, 0);
      return;
    }
    ino = node->spec.ino;  // what has been renamed to a chunk is samples of the image
  }
  server.sync_queue().post(
      [&server, req, ino, data_only] { reply_status(req, server.volume().fsync(ino, data_only != 0)); });
}

}  // namespace mdfs::fuse
