// The least that a FUSE read can cost: one file in memory, each read answered from one contiguous buffer.
// SPDX-License-Identifier: Apache-2.0
//
// usage: trivial_fuse MOUNTPOINT FILE
// Serves MOUNTPOINT/data with the bytes of FILE, read into memory first, until it is unmounted or gets SIGTERM. The
// floor for warm windows.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace {

constexpr fuse_ino_t kFile = 2;
constexpr const char* kName = "data";
constexpr double kTimeoutSeconds = 3600;

std::vector<char> contents;

void attributes(fuse_ino_t node, struct stat& st) {
  st = {};
  st.st_ino = node;
  st.st_mode = node == kFile ? S_IFREG | 0444 : S_IFDIR | 0555;
  st.st_nlink = node == kFile ? 1 : 2;
  st.st_size = node == kFile ? static_cast<off_t>(contents.size()) : 0;
}

void init(void*, fuse_conn_info* connection) {
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, kName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kFile;
  entry.attr_timeout = entry.entry_timeout = kTimeoutSeconds;
  attributes(kFile, entry.attr);
  fuse_reply_entry(request, &entry);
}

void getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  struct stat st {};
  attributes(node, st);
  fuse_reply_attr(request, &st, kTimeoutSeconds);
}

void open_file(fuse_req_t request, fuse_ino_t node, fuse_file_info* info) {
  if (node != kFile) {
    fuse_reply_err(request, EISDIR);
    return;
  }
  info->direct_io = 1;
  fuse_reply_open(request, info);
}

void read_file(fuse_req_t request, fuse_ino_t, size_t length, off_t offset, fuse_file_info*) {
  const auto from = std::min(static_cast<std::size_t>(offset), contents.size());
  fuse_reply_buf(request, contents.data() + from, std::min(length, contents.size() - from));
}

int serve(char* program, const char* mountpoint) {
  fuse_lowlevel_ops operations{};
  operations.init = init;
  operations.lookup = lookup;
  operations.getattr = getattr;
  operations.open = open_file;
  operations.read = read_file;
  char* argv[] = {program, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, argv);
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, nullptr);
  if (session == nullptr) return 1;
  int result = 1;
  if (fuse_set_signal_handlers(session) == 0) {
    if (fuse_session_mount(session, mountpoint) == 0) {
      fuse_loop_config* config = fuse_loop_cfg_create();
      result = fuse_session_loop_mt(session, config);
      fuse_loop_cfg_destroy(config);
      fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
  }
  fuse_session_destroy(session);
  fuse_opt_free_args(&args);
  return result == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: trivial_fuse MOUNTPOINT FILE\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary | std::ios::ate);
  if (file) {
    contents.resize(static_cast<std::size_t>(file.tellg()));
    file.seekg(0).read(contents.data(), static_cast<std::streamsize>(contents.size()));
  }
  if (!file || contents.empty()) {
    std::fprintf(stderr, "trivial_fuse: %s: cannot be read or is empty\n", argv[2]);
    return 1;
  }
  return serve(argv[0], argv[1]);
}
