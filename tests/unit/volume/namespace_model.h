// A model of a tree of names, simple enough to be believed, and operations to try on it and on a volume alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "memory_volume.h"
#include "volume/volume.h"

namespace mdfs::volume {

enum class OpKind : std::uint8_t {
  kCreate,
  kMakeDirectory,
  kSymlink,
  kLink,
  kUnlink,
  kRemoveDirectory,
  kRename,
  kRenameNoReplace,
  kExchange,
  kWrite,
  kTruncate,
  kSetXattr,
  kSync,
  kRemount,
};
inline constexpr unsigned kOpKinds = 14;

// Numbers are taken modulo what there is: directories in order of their paths, a few names.
struct Op {
  OpKind kind = OpKind::kCreate;
  std::uint8_t directory = 0, name = 0, other_directory = 0, other_name = 0;
  std::uint16_t size = 0;
};
std::ostream& operator<<(std::ostream& out, const Op& op);

class NamespaceModel {
 public:
  NamespaceModel();
  // Does the same to the volume and to the model; describes how the answers differ, or "". kRemount does nothing.
  std::string apply(const Op& op, Volume& volume);
  test::Tree tree() const;

 private:
  struct Node {
    mode_t mode = 0;
    Ino ino = 0;
    std::uint32_t links = 1;  // of what is not a directory
    std::string text;
    std::map<std::string, std::string> xattrs;
    std::map<std::string, std::shared_ptr<Node>> children;
    Node* parent = nullptr;  // of a directory
    bool is_directory() const;
    std::uint32_t link_count() const;
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Place {
    Node* directory = nullptr;
    std::string name;
    NodePtr found() const;
  };

  Place place(std::uint8_t directory, std::uint8_t name) const;
  static void list(const NodePtr& node, std::vector<Node*>& directories);
  static void show(const NodePtr& node, const std::string& path, test::Tree& tree);
  static bool is_below(const Node* node, const Node* above);
  std::optional<Errc> make(const Place& at, mode_t mode, Ino ino, const std::string& text);
  std::optional<Errc> link(const Place& from, const Place& to);
  std::optional<Errc> remove(const Place& at, bool directory);
  std::optional<Errc> rename(const Place& from, const Place& to, RenameMode mode);

  NodePtr root_;
};

}  // namespace mdfs::volume
