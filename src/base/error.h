// The one table of errors: each has a name, an errno for callers, an exit code for commands and a text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mdfs {

// Codes of errors, in the order of the table in error.cc. Names never change their meaning.
enum class Errc : std::uint8_t {
  kInvalidArgument,
  kNotFound,
  kExists,
  kNotDirectory,
  kIsDirectory,
  kNotEmpty,
  kNotPermitted,
  kAccessDenied,
  kNoSpace,
  kReadOnly,
  kIo,
  kCorrupt,
  kTooBig,
  kNameTooLong,
  kBusy,
  kNotSupported,
  kOutOfRange,
  kNoData,
  kCrossDevice,
  kTooManyLinks,
  kLoop,
  kNoMemory,
  kNotTty,
  kOverflow,
  kForeignDisk,
  kNewerFormat,
  kOlderFormat,
  kStaleDisk,
  kMissingDisk,
  kFork,
  kNoQuorum,
  kCancelled,
  kNoDevice,
  kNotImage,
  kUsage,
  kBadData,  // bad contents of an input file
  kTooManyFiles,
  kDiskOut,  // a disk failed after data had been written to it: other disks may take them
};

struct ErrcInfo {
  Errc code;
  std::string_view name;  // stable, kebab-case
  int posix_errno;
  int exit_code;  // of a command that fails with this error
  std::string_view text;
};

// True for errors that another version of the format causes.
constexpr bool is_other_version(Errc code) { return code == Errc::kNewerFormat || code == Errc::kOlderFormat; }

// One row for each code, in the order of Errc. The rows live as long as the program.
std::span<const ErrcInfo> error_table();
const ErrcInfo& info(Errc code);

// An error is a value: the code, and a text that names the file, the field and the allowed range.
struct Error {
  Errc code = Errc::kIo;
  std::string where;

  int posix_errno() const { return info(code).posix_errno; }
  // "text: where", one line.
  std::string message() const;
  // For the text of an error of the code `outer`: without "text: ", where that would come twice.
  std::string within(Errc outer) const;
};

// The error for an errno of the operating system: the first row with that number, else kIo with the system's text.
Error from_errno(int posix_errno, std::string where);

}  // namespace mdfs
