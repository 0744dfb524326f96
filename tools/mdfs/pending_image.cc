// An image that is being written to a mounted volume.
// SPDX-License-Identifier: Apache-2.0
#include "pending_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "convert.h"
#include "write_back.h"

namespace mdfs::tools {
namespace {

// The hidden name means nothing to the reader of an error.
Error named_as(Error error, const std::string& hidden, const std::string& path) {
  if (const std::size_t at = error.where.find(hidden); at != std::string::npos)
    error.where.replace(at, hidden.size(), path);
  return error;
}

}  // namespace

PendingImage::PendingImage(std::string path, FilePlace place, ExclusiveFile pending, Image image,
                           geometry::Geometry geometry)
    : path_(std::move(path)),
      place_(std::move(place)),
      pending_(std::move(pending)),
      image_(std::move(image)),
      geometry_(std::move(geometry)) {}

Status PendingImage::check_name(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && S_ISDIR(there.st_mode))
    return {Errc::kIsDirectory, path + ": name the image in it"};
  if (path.ends_with('@')) return {Errc::kInvalidArgument, path + ": names that end in @ lead to windows"};
  return {};
}

bool PendingImage::is_taken(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0;
}

Result<PendingImage> PendingImage::create(const std::string& path, const mdfs_ioc_geometry& request) {
  MDFS_TRY_ASSIGN(FilePlace place, FilePlace::of(path));
  MDFS_TRY_ASSIGN(ExclusiveFile pending, ExclusiveFile::create(place, [&](const std::string& hidden) -> Status {
                    const int created = mdfs_create(hidden.c_str(), &request, 0666);
                    return created < 0 ? Status(named_as(library_error(created, path), hidden, path)) : Status();
                  }));
  MDFS_TRY_ASSIGN(Image image, open_image(path_of_descriptor(pending.file().fd()), O_RDWR));
  MDFS_TRY_ASSIGN(const mdfs_ioc_geometry made, image_info(*image, path));
  MDFS_TRY_ASSIGN(geometry::Geometry geometry, client::to_geometry(made));
  return PendingImage(path, std::move(place), std::move(pending), std::move(image), std::move(geometry));
}

Status PendingImage::sync() {
  const int synced = mdfs_sync(image_.get());
  return synced < 0 ? Status(library_error(synced, path_)) : Status();
}

Status PendingImage::finish(bool force, bool shows_bar) {
  MDFS_TRY(wait_with_bar(descriptor_path(), shows_bar, [&] { return sync(); }));
  MDFS_TRY(pending_.commit(place_, force));
  return sync();
}

}  // namespace mdfs::tools
