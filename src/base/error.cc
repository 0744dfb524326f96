// The table of errors.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace mdfs {
namespace {

constexpr std::array kTable = {
    ErrcInfo{Errc::kInvalidArgument, "invalid-argument", EINVAL, 2, "invalid argument"},
    ErrcInfo{Errc::kNotFound, "not-found", ENOENT, 1, "not found"},
    ErrcInfo{Errc::kExists, "exists", EEXIST, 1, "already exists"},
    ErrcInfo{Errc::kNotDirectory, "not-a-directory", ENOTDIR, 1, "not a directory"},
    ErrcInfo{Errc::kIsDirectory, "is-a-directory", EISDIR, 1, "is a directory"},
    ErrcInfo{Errc::kNotEmpty, "not-empty", ENOTEMPTY, 1, "directory not empty"},
    ErrcInfo{Errc::kNotPermitted, "not-permitted", EPERM, 1, "not permitted"},
    ErrcInfo{Errc::kAccessDenied, "access-denied", EACCES, 1, "access denied"},
    ErrcInfo{Errc::kNoSpace, "no-space", ENOSPC, 1, "no space left"},
    ErrcInfo{Errc::kReadOnly, "read-only", EROFS, 1, "the volume is read-only"},
    ErrcInfo{Errc::kIo, "io", EIO, 3, "input/output error"},
    ErrcInfo{Errc::kCorrupt, "corrupt", EIO, 3, "damaged data"},
    ErrcInfo{Errc::kTooBig, "too-big", EFBIG, 1, "too big"},
    ErrcInfo{Errc::kNameTooLong, "name-too-long", ENAMETOOLONG, 1, "name too long"},
    ErrcInfo{Errc::kBusy, "busy", EBUSY, 1, "in use"},
    ErrcInfo{Errc::kNotSupported, "not-supported", EOPNOTSUPP, 1, "not supported"},
    ErrcInfo{Errc::kOutOfRange, "out-of-range", ERANGE, 2, "out of range"},
    ErrcInfo{Errc::kNoData, "no-data", ENODATA, 1, "no data"},
    ErrcInfo{Errc::kCrossDevice, "cross-device", EXDEV, 1, "not on the same volume"},
    ErrcInfo{Errc::kTooManyLinks, "too-many-links", EMLINK, 1, "too many links"},
    ErrcInfo{Errc::kLoop, "loop", ELOOP, 1, "too many levels of symbolic links"},
    ErrcInfo{Errc::kNoMemory, "no-memory", ENOMEM, 1, "out of memory"},
    ErrcInfo{Errc::kNotTty, "not-tty", ENOTTY, 1, "not on a mounted MDFS volume"},
    ErrcInfo{Errc::kOverflow, "overflow", EOVERFLOW, 2, "number too large"},
    ErrcInfo{Errc::kForeignDisk, "foreign-disk", EINVAL, 1, "not a disk of this volume"},
    ErrcInfo{Errc::kNewerFormat, "newer-format", EOPNOTSUPP, 1, "made by a newer MDFS"},
    ErrcInfo{Errc::kOlderFormat, "older-format", EOPNOTSUPP, 1,
             "made by an earlier development version of MDFS, which this version cannot use"},
    ErrcInfo{Errc::kStaleDisk, "stale", ESTALE, 1, "out of date"},
    ErrcInfo{Errc::kMissingDisk, "missing-disk", EIO, 3, "a disk is missing"},
    ErrcInfo{Errc::kFork, "fork", EIO, 3, "disks were written apart from each other"},
    ErrcInfo{Errc::kNoQuorum, "no-quorum", EROFS, 1, "fewer than a majority of disks"},
    ErrcInfo{Errc::kCancelled, "cancelled", EINTR, 32, "cancelled"},
    ErrcInfo{Errc::kNoDevice, "no-device", ENXIO, 1, "no such device or address"},
    ErrcInfo{Errc::kNotImage, "not-an-image", EINVAL, 1, "not an image"},
    ErrcInfo{Errc::kUsage, "usage", EINVAL, 2, "usage"},
    ErrcInfo{Errc::kBadData, "bad-data", EINVAL, 3, "bad data"},
    ErrcInfo{Errc::kTooManyFiles, "too-many-files", EMFILE, 1, "too many open files (ulimit -n)"},
    ErrcInfo{Errc::kDiskOut, "disk-out", EIO, 1, "a disk failed meanwhile"},
};

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  return true;
}
static_assert(table_is_in_order());
static_assert(kTable.size() == static_cast<std::size_t>(Errc::kDiskOut) + 1);

}  // namespace

std::span<const ErrcInfo> error_table() { return kTable; }

const ErrcInfo& info(Errc code) {
  const auto i = static_cast<std::size_t>(code);
  MDFS_CHECK(i < kTable.size());
  return kTable[i];
}

std::string Error::message() const {
  std::string text(info(code).text);
  return where.empty() ? text : text + ": " + where;
}

std::string Error::within(Errc outer) const {
  return info(code).text == info(outer).text && !where.empty() ? where : message();
}

Error from_errno(int posix_errno, std::string where) {
  if (posix_errno == ENFILE) posix_errno = EMFILE;
  for (const ErrcInfo& row : kTable)
    if (row.posix_errno == posix_errno) return Error{row.code, std::move(where)};
  if (posix_errno == ENOTCONN)
    return Error{Errc::kIo, std::move(where) + ": the daemon of this mount has died; mount it again, or mdfs umount"};
  return Error{Errc::kIo, std::move(where) + ": " + std::strerror(posix_errno)};
}

}  // namespace mdfs
