// Making, enlarging and removing disks in RADOS.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "device/rados/rados_disk.h"

namespace mdfs::device {
namespace {

constexpr const char* kAttribute = "mdfs.disk";

librados::bufferlist to_bytes(const std::string& text) {
  librados::bufferlist bytes;
  bytes.append(text);
  return bytes;
}

struct Place {
  RadosName name;
  std::shared_ptr<RadosConnection> connection;
  librados::IoCtx io;
};

Result<Place> place_of(const RadosDescription& description) {
  Place place;
  MDFS_TRY_ASSIGN(place.name, RadosName::parse(description.disk));
  MDFS_TRY_ASSIGN(place.connection, RadosConnection::get(description));
  MDFS_TRY_ASSIGN(place.io, place.connection->pool(description.disk, place.name));
  return place;
}

// Waits for the oldest removal.
int end_one(std::deque<librados::AioCompletion*>& removals) {
  librados::AioCompletion* const first = removals.front();
  removals.pop_front();
  first->wait_for_complete();
  const int result = first->get_return_value();
  first->release();
  return result == -ENOENT ? 0 : result;
}

// Removes all objects of a disk that this process has locked: those that exist, because there may be millions of names.
Status empty(Place& place, const std::string& disk) {
  constexpr std::size_t kNamesAtOnce = 1000, kRemovalsAtOnce = 64;
  std::deque<librados::AioCompletion*> removals;
  int failed = 0;
  const auto note = [&](int result) { failed = failed == 0 ? std::min(result, 0) : failed; };
  const librados::ObjectCursor end = place.io.object_list_end();
  for (librados::ObjectCursor at = place.io.object_list_begin(); failed == 0 && !place.io.object_list_is_end(at);) {
    std::vector<librados::ObjectItem> found;
    librados::ObjectCursor next;
    note(place.io.object_list(at, end, kNamesAtOnce, {}, &found, &next));
    for (const librados::ObjectItem& one : found) {
      if (failed != 0 || one.nspace != place.name.name_space || !place.name.is_data_object(one.oid)) continue;
      if (removals.size() == kRemovalsAtOnce) note(end_one(removals));
      removals.push_back(librados::Rados::aio_create_completion());
      note(place.io.aio_remove(one.oid, removals.back()));
      if (failed != 0) {
        removals.back()->release();
        removals.pop_back();
      }
    }
    at = next;
  }
  while (!removals.empty()) note(end_one(removals));
  return failed == 0 ? Status{} : rados_error(failed, disk + ": removing its objects");
}

// A disk that has lost its header still has the label at its beginning.
Status check_unused(Place& place, const std::string& disk) {
  const std::string header = place.name.header_object(), first = place.name.data_object(0);
  std::uint64_t bytes = 0;
  std::time_t changed{};
  if (place.io.stat(first, &bytes, &changed) == -ENOENT || place.io.stat(header, &bytes, &changed) != -ENOENT)
    return {};
  return {Errc::kExists, fmt::format("{}: object {} exists: a disk has lost its header here, and can be given it back "
                                     "(doc/SCALE.md); --force makes a new disk in its place",
                                     disk, first)};
}

// The maps of free space are written at once, twice: two bits for each block of 4096 bytes.
Status check_room(Place& place, const std::string& disk, std::uint64_t size_bytes) {
  const std::optional<std::uint64_t> room = place.connection->room(place.name.pool, kRadosObjectBytes);
  const std::uint64_t maps = size_bytes / 4096 / 4;
  if (!room || maps < *room / 2) return {};
  return {Errc::kNoSpace, fmt::format("{}: the maps of a disk of {} take {}; the pool has {} left", disk,
                                      format_size(size_bytes), format_size(maps), format_size(*room))};
}

}  // namespace

RadosHeaderQuestion::RadosHeaderQuestion(librados::IoCtx& io, std::string disk, const RadosName& name)
    : disk_(std::move(disk)), completion_(librados::Rados::aio_create_completion()) {
  librados::ObjectReadOperation read;
  read.getxattr(kAttribute, &bytes_, nullptr);
  result_ = io.aio_operate(name.header_object(), completion_, &read, nullptr);
}

RadosHeaderQuestion::~RadosHeaderQuestion() {
  if (result_ == 0) completion_->wait_for_complete();
  completion_->release();
}

Result<RadosHeader> RadosHeaderQuestion::answer() {
  if (result_ == 0) completion_->wait_for_complete();
  const int result = result_ == 0 ? completion_->get_return_value() : result_;
  if (result == -ENOENT) return Error{Errc::kNotFound, disk_ + ": there is no such disk in the pool (mkmdfs --size)"};
  if (result == -ENODATA) return decode_rados_header(disk_, "");
  if (result < 0) return rados_error(result, disk_ + ": reading its header");
  return decode_rados_header(disk_, bytes_.to_str());
}

Status create_rados_disk(const RadosDescription& description, std::uint64_t size_bytes, bool replace) {
  const std::string& disk = description.disk;
  const RadosHeader header{size_bytes, kRadosObjectBytes};
  MDFS_TRY(check_rados_header(disk, header));
  MDFS_TRY_ASSIGN(Place place, place_of(description));
  MDFS_TRY(check_room(place, disk, size_bytes));
  const librados::bufferlist text = to_bytes(encode_rados_header(header));
  if (!replace) MDFS_TRY(check_unused(place, disk));
  librados::ObjectWriteOperation make;
  make.create(true);
  make.setxattr(kAttribute, text);
  const int made = place.io.operate(place.name.header_object(), &make);
  if (made == 0) return {};
  if (made != -EEXIST) return rados_error(made, disk + ": making its header");
  MDFS_TRY(read_rados_header(place.io, disk, place.name));  // an object of another program is never replaced
  if (!replace) return Error{Errc::kExists, disk + ": leave out --size, or give --force to replace it"};
  MDFS_TRY_ASSIGN(const auto held, RadosDisk::open(description));
  MDFS_TRY(empty(place, description.disk));
  if (const int result =
          place.io.setxattr(place.name.header_object(), kAttribute, *const_cast<librados::bufferlist*>(&text));
      result < 0)
    return rados_error(result, disk + ": writing its header");
  return {};
}

Status grow_rados_disk(const RadosDescription& description, std::uint64_t size_bytes) {
  const std::string& disk = description.disk;
  MDFS_TRY_ASSIGN(Place place, place_of(description));
  MDFS_TRY_ASSIGN(const RadosHeader before, read_rados_header(place.io, disk, place.name));
  if (size_bytes <= before.size_bytes) return {};
  const RadosHeader after{size_bytes, before.object_bytes};
  MDFS_TRY(check_rados_header(disk, after));
  librados::ObjectWriteOperation change;
  change.cmpxattr(kAttribute, LIBRADOS_CMPXATTR_OP_EQ, to_bytes(encode_rados_header(before)));
  change.setxattr(kAttribute, to_bytes(encode_rados_header(after)));
  const int result = place.io.operate(place.name.header_object(), &change);
  if (result == -ECANCELED) return Error{Errc::kBusy, disk + ": another program changes its size"};
  if (result < 0) return rados_error(result, disk + ": writing its header");
  return {};
}

Status remove_rados_disk(const RadosDescription& description) {
  MDFS_TRY_ASSIGN(Place place, place_of(description));
  MDFS_TRY_ASSIGN(const auto held, RadosDisk::open(description));
  MDFS_TRY(empty(place, description.disk));
  // The lock goes with the object.
  if (const int result = place.io.remove(place.name.header_object()); result < 0)
    return rados_error(result, description.disk + ": removing its header");
  return {};
}

Result<std::vector<std::string>> take_over_rados_disk(const RadosDescription& description) {
  MDFS_TRY_ASSIGN(Place place, place_of(description));
  MDFS_TRY(read_rados_header(place.io, description.disk, place.name));
  return RadosGuard::evict_writers(place.connection, place.io, description.disk, place.name.header_object());
}

}  // namespace mdfs::device
