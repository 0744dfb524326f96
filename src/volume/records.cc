// The items of the tree that the volume reads and writes.
// SPDX-License-Identifier: Apache-2.0
#include "volume/records.h"

#include <algorithm>

#include "format/geometry_item.h"

namespace mdfs::volume {
namespace {

std::string object_name(Ino ino) { return "inode " + std::to_string(ino); }

format::Key rest_key(Ino ino, std::uint64_t cookie, unsigned number) {
  return {ino, MDFS_KIND_XATTR_REST + number, cookie};
}

std::uint32_t rest_length_of(const XattrPlace& place) {
  return place.value && place.value->size() > MDFS_XATTR_FIRST
             ? static_cast<std::uint32_t>(place.value->size() - MDFS_XATTR_FIRST)
             : 0;
}

Error at_object(const Error& error, Ino ino) { return Error{error.code, object_name(ino) + ": " + error.where}; }

}  // namespace

template <typename Reader>
Result<std::optional<format::Inode>> find_inode(Reader& reader, Ino ino) {
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> value, reader.get(inode_key(ino)));
  if (!value) return std::optional<format::Inode>();
  auto inode = format::decode_inode(*value);
  if (!inode.ok()) return at_object(inode.error(), ino);
  return std::optional<format::Inode>(*inode);
}

template <typename Reader>
Result<format::Inode> read_inode(Reader& reader, Ino ino) {
  MDFS_TRY_ASSIGN(const std::optional<format::Inode> inode, find_inode(reader, ino));
  if (!inode) return Error{Errc::kNotFound, object_name(ino)};
  return *inode;
}

template <typename Reader>
Result<format::Inode> read_directory_inode(Reader& reader, Ino ino) {
  MDFS_TRY_ASSIGN(const format::Inode inode, read_inode(reader, ino));
  if (!inode.is_directory()) return Error{Errc::kNotDirectory, object_name(ino)};
  if (inode.links == 0) return Error{Errc::kNotFound, object_name(ino) + " has been removed"};
  return inode;
}

template <typename Reader>
Result<geometry::Geometry> read_geometry(Reader& reader, Ino ino) {
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> value, reader.get(geometry_key(ino)));
  if (!value) return Error{Errc::kCorrupt, object_name(ino) + ": an image without a geometry"};
  auto geometry = format::decode_geometry(*value);
  if (!geometry.ok()) return at_object(geometry.error(), ino);
  return std::move(geometry).value();
}

namespace {

// Looks for a name from its first cookie on, as far as the object's names reach, and else for the lowest free cookie.
// `read` tells whether an item has the name, or gives an error. Nearly always one look at one cookie, and for a name
// that is not there another at the inode.
template <typename Reader, typename Place, typename Read>
Status find_by_name(Reader& reader, const format::NameSecret& secret, Ino object, std::uint64_t kind,
                    std::string_view name, Place& place, const Read& read) {
  constexpr std::size_t kAtOnce = 64;
  const std::uint64_t first = format::first_cookie(secret, name);
  std::uint64_t free = first;  // every cookie below is taken
  std::uint64_t next = first;
  std::uint64_t last = first;
  std::optional<std::uint64_t> reach;
  for (;;) {
    MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                    reader.scan({object, kind, next}, {object, kind, last}, kAtOnce));
    for (const store::Item& item : items) {
      MDFS_TRY_ASSIGN(const bool matches, read(item.value));
      if (matches) {
        place.cookie = item.key.offset;
        return {};
      }
      if (item.key.offset == free) ++free;
    }
    next = items.size() == kAtOnce ? items.back().key.offset + 1 : last + 1;
    if (!reach) {
      MDFS_TRY_ASSIGN(const std::optional<format::Inode> inode, find_inode(reader, object));
      reach = inode ? inode->reach : 0;
      last = first + *reach;
    }
    if (next <= last) continue;
    if (free < next) break;
    if (free - first > format::kMaxReach)
      return Error{Errc::kNoSpace, "too many names with equal hashes in one directory"};
    last = next + kAtOnce - 1;
  }
  place.cookie = free;
  place.reach = static_cast<std::uint32_t>(free - first);
  return {};
}

}  // namespace

Result<format::NameSecret> read_secret(store::Items& items) {
  MDFS_TRY_ASSIGN(const std::optional<ByteVector> value, items.get(format::kSecretKey));
  if (!value) return Error{Errc::kCorrupt, "the secret of names is missing; run mdfsck to make a new one"};
  return format::decode_secret(*value);
}

template <typename Reader>
Result<NamePlace> find_name(Reader& reader, const format::NameSecret& secret, Ino directory, std::string_view name) {
  NamePlace place;
  MDFS_TRY(
      find_by_name(reader, secret, directory, MDFS_KIND_DIRENT, name, place, [&](ConstBytes value) -> Result<bool> {
        auto entry = format::decode_dirent(value);
        if (!entry.ok()) return at_object(entry.error(), directory);
        if (entry->name != name) return false;
        place.entry = std::move(*entry);
        return true;
      }));
  return place;
}

template <typename Reader>
Result<XattrPlace> find_xattr(Reader& reader, const format::NameSecret& secret, Ino ino, std::string_view name) {
  XattrPlace place;
  std::uint32_t rest_length = 0;
  MDFS_TRY(find_by_name(reader, secret, ino, MDFS_KIND_XATTR, name, place, [&](ConstBytes value) -> Result<bool> {
    auto xattr = format::decode_xattr(value);
    if (!xattr.ok()) return at_object(xattr.error(), ino);
    if (xattr->name != name) return false;
    place.value = std::move(xattr->first);
    rest_length = xattr->rest_length;
    return true;
  }));
  for (unsigned number = 0; number < format::xattr_rests(rest_length); ++number) {
    MDFS_TRY_ASSIGN(const std::optional<ByteVector> rest, reader.get(rest_key(ino, place.cookie, number)));
    if (!rest || rest->size() != format::xattr_rest_bytes(rest_length, number))
      return at_object({Errc::kCorrupt, "xattr.rest"}, ino);
    place.value->insert(place.value->end(), rest->begin(), rest->end());
  }
  return place;
}

void put_inode(store::Transaction& transaction, Ino ino, const format::Inode& inode) {
  transaction.put(inode_key(ino), format::encode(inode));
}

void put_entry(store::Transaction& transaction, Ino directory, std::uint64_t cookie, const format::Dirent& entry) {
  transaction.put({directory, MDFS_KIND_DIRENT, cookie}, format::encode(entry));
}

void erase_entry(store::Transaction& transaction, Ino directory, std::uint64_t cookie) {
  transaction.erase({directory, MDFS_KIND_DIRENT, cookie});
}

void put_xattr(store::Transaction& transaction, Ino ino, format::Inode& inode, const XattrPlace& place,
               std::string_view name, ConstBytes value) {
  inode.reach = std::max(inode.reach, place.reach);
  const format::Xattr xattr = format::make_xattr(name, value);
  transaction.put({ino, MDFS_KIND_XATTR, place.cookie}, format::encode(xattr));
  const unsigned rests = format::xattr_rests(xattr.rest_length);
  for (unsigned number = 0; number < rests; ++number)
    transaction.put(rest_key(ino, place.cookie, number),
                    value.subspan(MDFS_XATTR_FIRST + std::size_t{number} * MDFS_MAX_ITEM,
                                  format::xattr_rest_bytes(xattr.rest_length, number)));
  for (unsigned number = rests; number < format::xattr_rests(rest_length_of(place)); ++number)
    transaction.erase(rest_key(ino, place.cookie, number));
}

void erase_xattr(store::Transaction& transaction, Ino ino, const XattrPlace& place) {
  transaction.erase({ino, MDFS_KIND_XATTR, place.cookie});
  for (unsigned number = 0; number < format::xattr_rests(rest_length_of(place)); ++number)
    transaction.erase(rest_key(ino, place.cookie, number));
}

#define MDFS_FOR_READER(Reader)                                                                            \
  template Result<std::optional<format::Inode>> find_inode<Reader>(Reader&, Ino);                          \
  template Result<format::Inode> read_inode<Reader>(Reader&, Ino);                                         \
  template Result<format::Inode> read_directory_inode<Reader>(Reader&, Ino);                               \
  template Result<geometry::Geometry> read_geometry<Reader>(Reader&, Ino);                                 \
  template Result<NamePlace> find_name<Reader>(Reader&, const format::NameSecret&, Ino, std::string_view); \
  template Result<XattrPlace> find_xattr<Reader>(Reader&, const format::NameSecret&, Ino, std::string_view);
MDFS_FOR_READER(store::Store)
MDFS_FOR_READER(store::Transaction)
#undef MDFS_FOR_READER

// The inode is the first item of its object; behind the last object that was seen the next one begins.
Result<std::vector<FileItem>> next_files(store::Items& tree, Ino& next) {
  constexpr std::size_t kFilesAtOnce = 64;
  MDFS_TRY_ASSIGN(const std::vector<store::Item> items,
                  tree.scan({next, 0, 0}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}, kFilesAtOnce));
  std::vector<FileItem> files;
  for (const store::Item& item : items) {
    if (item.key.object == MDFS_OBJECT_VOLUME || item.key.kind != MDFS_KIND_INODE) continue;
    const Result<format::Inode> inode = format::decode_inode(item.value);
    if (!inode.ok()) continue;  // what is damaged others report
    if (inode->is_regular() && inode->links > 0) files.push_back({item.key.object, *inode});
  }
  next = items.size() < kFilesAtOnce ? 0 : items.back().key.object + 1;
  return files;
}

bool is_passed_over(const Error& error) {
  return error.code == Errc::kNotFound || error.code == Errc::kCorrupt || error.code == Errc::kIsDirectory ||
         error.code == Errc::kInvalidArgument;
}

}  // namespace mdfs::volume
