// A model of a tree of names.
// SPDX-License-Identifier: Apache-2.0
#include "namespace_model.h"

#include <sys/stat.h>

#include <array>

namespace mdfs::volume {
namespace {

constexpr std::array<const char*, 5> kNames{"a", "b", "c", "d", "a longer name of an entry"};
constexpr std::array<const char*, kOpKinds> kOpNames{
    "create",           "mkdir",    "symlink", "link",     "unlink",   "rmdir", "rename",
    "rename-noreplace", "exchange", "write",   "truncate", "setxattr", "sync",  "remount"};

std::string code(const std::optional<Errc>& errc) { return errc ? std::string(info(*errc).name) : "ok"; }

template <typename T>
std::optional<Errc> code_of(const Result<T>& result) {
  return result.ok() ? std::optional<Errc>() : result.error().code;
}

std::string bytes_for(const Op& op) {
  std::string text(op.size, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + (i * 7 + op.name + op.size) % 26);
  return text;
}

// Looks up, and leaves no count behind.
Ino find(Volume& volume, Ino parent, const std::string& name) {
  const auto found = volume.lookup(parent, name);
  if (!found.ok()) return 0;
  volume.forget(found->ino, 1);
  return found->ino;
}

template <typename T>
std::optional<Errc> forgotten(Volume& volume, const Result<T>& made, Ino& ino) {
  if (made.ok()) {
    ino = made->ino;
    volume.forget(ino, 1);
  }
  return code_of(made);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Op& op) {
  return out << kOpNames[static_cast<unsigned>(op.kind)] << "(" << int{op.directory} << "/" << int{op.name} << ", "
             << int{op.other_directory} << "/" << int{op.other_name} << ", " << op.size << ")";
}

bool NamespaceModel::Node::is_directory() const { return S_ISDIR(mode); }

std::uint32_t NamespaceModel::Node::link_count() const {
  if (!is_directory()) return links;
  std::uint32_t count = 2;
  for (const auto& [name, child] : children) count += child->is_directory() ? 1 : 0;
  return count;
}

NamespaceModel::NodePtr NamespaceModel::Place::found() const {
  const auto child = directory->children.find(name);
  return child == directory->children.end() ? nullptr : child->second;
}

NamespaceModel::NamespaceModel() : root_(std::make_shared<Node>()) {
  root_->mode = S_IFDIR | 0755;
  root_->ino = kRootIno;
  root_->parent = root_.get();
}

void NamespaceModel::list(const NodePtr& node, std::vector<Node*>& directories) {
  directories.push_back(node.get());
  for (const auto& [name, child] : node->children)
    if (child->is_directory()) list(child, directories);
}

NamespaceModel::Place NamespaceModel::place(std::uint8_t directory, std::uint8_t name) const {
  std::vector<Node*> directories;
  list(root_, directories);
  return {directories[directory % directories.size()], kNames[name % kNames.size()]};
}

void NamespaceModel::show(const NodePtr& node, const std::string& path, test::Tree& tree) {
  tree[path] = {node->ino,  node->mode,  node->link_count(), 0, 0, node->is_directory() ? 0 : node->text.size(),
                node->text, node->xattrs};
  for (const auto& [name, child] : node->children) show(child, path + "/" + name, tree);
}

test::Tree NamespaceModel::tree() const {
  test::Tree tree;
  show(root_, "", tree);
  return tree;
}

bool NamespaceModel::is_below(const Node* node, const Node* above) {
  for (;; node = node->parent) {
    if (node == above) return true;
    if (node == node->parent) return false;
  }
}

std::optional<Errc> NamespaceModel::make(const Place& at, mode_t mode, Ino ino, const std::string& text) {
  if (at.found()) return Errc::kExists;
  auto node = std::make_shared<Node>();
  node->mode = mode;
  node->ino = ino;
  node->text = text;
  node->parent = at.directory;
  at.directory->children[at.name] = std::move(node);
  return {};
}

std::optional<Errc> NamespaceModel::link(const Place& from, const Place& to) {
  if (from.found()->is_directory()) return Errc::kNotPermitted;
  if (to.found()) return Errc::kExists;
  ++from.found()->links;
  to.directory->children[to.name] = from.found();
  return {};
}

std::optional<Errc> NamespaceModel::remove(const Place& at, bool directory) {
  const NodePtr node = at.found();
  if (!node) return Errc::kNotFound;
  if (directory && !node->is_directory()) return Errc::kNotDirectory;
  if (!directory && node->is_directory()) return Errc::kIsDirectory;
  if (!node->children.empty()) return Errc::kNotEmpty;
  --node->links;
  at.directory->children.erase(at.name);
  return {};
}

std::optional<Errc> NamespaceModel::rename(const Place& from, const Place& to, RenameMode mode) {
  const NodePtr moved = from.found();
  const NodePtr target = to.found();
  if (!moved) return Errc::kNotFound;
  if (target && mode == RenameMode::kNoReplace) return Errc::kExists;
  if (!target && mode == RenameMode::kExchange) return Errc::kNotFound;
  if (moved->is_directory() && is_below(to.directory, moved.get())) return Errc::kInvalidArgument;
  if (target == moved) return {};
  if (mode == RenameMode::kExchange) {
    if (target->is_directory() && is_below(from.directory, target.get())) return Errc::kInvalidArgument;
    from.directory->children[from.name] = target;
    target->parent = from.directory;
  } else {
    if (target && moved->is_directory() && !target->is_directory()) return Errc::kNotDirectory;
    if (target && !moved->is_directory() && target->is_directory()) return Errc::kIsDirectory;
    if (target && !target->children.empty()) return Errc::kNotEmpty;
    if (target) --target->links;
    from.directory->children.erase(from.name);
  }
  to.directory->children[to.name] = moved;
  moved->parent = to.directory;
  return {};
}

std::string NamespaceModel::apply(const Op& op, Volume& volume) {
  const Caller root;
  const Place at = place(op.directory, op.name);
  const Place other = place(op.other_directory, op.other_name);
  const NodePtr node = at.found();
  const bool is_file = node && S_ISREG(node->mode);
  const Ino parent = at.directory->ino;
  std::optional<Errc> expected, got;
  Ino ino = 0;
  switch (op.kind) {
    case OpKind::kCreate:
      got = forgotten(volume, volume.make_node(parent, at.name, S_IFREG | 0640, 0, root), ino);
      expected = make(at, S_IFREG | 0640, ino, "");
      break;
    case OpKind::kMakeDirectory:
      got = forgotten(volume, volume.make_directory(parent, at.name, 0750, root), ino);
      expected = make(at, S_IFDIR | 0750, ino, "");
      break;
    case OpKind::kSymlink: {
      const std::string target = "to " + bytes_for(op);
      got = forgotten(volume, volume.make_symlink(parent, at.name, target.substr(0, 4095), root), ino);
      expected = make(at, S_IFLNK | 0777, ino, target.substr(0, 4095));
      break;
    }
    case OpKind::kLink:
      if (!node) return "";
      got = forgotten(volume, volume.link(node->ino, other.directory->ino, other.name), ino);
      expected = link(at, other);
      break;
    case OpKind::kUnlink:
      got = code_of(volume.unlink(parent, at.name));
      expected = remove(at, false);
      break;
    case OpKind::kRemoveDirectory:
      got = code_of(volume.remove_directory(parent, at.name));
      expected = remove(at, true);
      break;
    case OpKind::kRename:
    case OpKind::kRenameNoReplace:
    case OpKind::kExchange: {
      const RenameMode mode = op.kind == OpKind::kRename     ? RenameMode::kReplace
                              : op.kind == OpKind::kExchange ? RenameMode::kExchange
                                                             : RenameMode::kNoReplace;
      got = code_of(volume.rename(parent, at.name, other.directory->ino, other.name, mode));
      expected = rename(at, other, mode);
      break;
    }
    case OpKind::kWrite: {
      if (!is_file) return "";
      const std::string text = bytes_for(op);
      const std::size_t offset = op.other_name * 300u;
      got = code_of(volume.write(node->ino, offset, as_bytes(text), false));
      if (!text.empty()) {
        node->text.resize(std::max(node->text.size(), offset + text.size()));
        node->text.replace(offset, text.size(), text);
      }
      break;
    }
    case OpKind::kTruncate:
      if (!is_file) return "";
      got = code_of(volume.set_attributes(node->ino, {.size_bytes = op.size}));
      node->text.resize(op.size);
      break;
    case OpKind::kSetXattr:
      if (!node || S_ISLNK(node->mode)) return "";
      // From nothing to the longest value, often beyond what one item holds.
      node->xattrs["user.x"] =
          std::string(std::min<std::size_t>(op.size * 7u, MDFS_MAX_XATTR), static_cast<char>('a' + op.name));
      got = code_of(volume.set_xattr(node->ino, "user.x", as_bytes(node->xattrs["user.x"]), XattrMode::kSet));
      break;
    case OpKind::kSync:
      got = code_of(volume.sync());
      break;
    case OpKind::kRemount:
      return "";
  }
  if (got != expected) return "got " + code(got) + " instead of " + code(expected);
  const NodePtr now = at.found();
  if (find(volume, parent, at.name) != (now ? now->ino : 0)) return "the name leads elsewhere";
  return "";
}

}  // namespace mdfs::volume
