// Writes and reads the lines of a description: comments before the text of the configuration, which librados reads.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_description.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/text.h"

namespace mdfs::device {
namespace {

constexpr std::string_view kDescriptionMagic = "# mdfs rados 1";
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
constexpr std::size_t kMaxBytes = kMaxCephConfBytes + 4096;
constexpr std::array<std::string_view, 3> kModes = {"rw", "ro", "look"};

Error unreadable() { return {Errc::kInvalidArgument, "the descriptor of a disk in RADOS cannot be read"}; }

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_comment(std::string_view& text) {
  const std::string_view line = take_line(text);
  return line.starts_with("# ") ? line.substr(2) : std::string_view();
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

Result<UniqueFd> make_rados_descriptor(const RadosDescription& description) {
  for (const std::string& line : {description.disk, description.user, description.key})
    if (line.find('\n') != std::string::npos) return unreadable();
  const std::string text = fmt::format("{}\n# {}\n# {}\n# {}\n# {}\n{}", kDescriptionMagic, description.disk,
                                       kModes[static_cast<std::size_t>(description.mode)], description.user,
                                       description.key, description.conf);
  if (text.size() > kMaxBytes)
    return Error{Errc::kTooBig,
                 fmt::format("{}: a configuration of more than {} bytes", description.disk, kMaxCephConfBytes)};
  UniqueFd fd(::memfd_create("mdfs-rados", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.open()) return from_errno(errno, description.disk);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return from_errno(errno, description.disk);
  return fd;
}

bool is_rados_descriptor(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

Result<RadosDescription> read_rados_descriptor(int fd) {
  struct stat st {};
  if (!is_rados_descriptor(fd) || ::fstat(fd, &st) != 0 || st.st_size > static_cast<off_t>(kMaxBytes))
    return unreadable();
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  if (::pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return unreadable();
  std::string_view left = text;
  if (take_line(left) != kDescriptionMagic) return unreadable();
  RadosDescription description;
  description.disk = take_comment(left);
  const std::string_view mode = take_comment(left);
  std::size_t number = 0;
  while (number < kModes.size() && kModes[number] != mode) ++number;
  if (number == kModes.size()) return unreadable();
  description.mode = static_cast<OpenMode>(number);
  description.user = take_comment(left);
  description.key = take_comment(left);
  description.conf = left;
  return description;
}

std::string key_in_keyring(std::string_view keyring, std::string_view user) {
  bool in_section = false;
  while (!keyring.empty()) {
    const std::string_view line = trimmed(take_line(keyring));
    if (line.starts_with('[')) {
      in_section = line == fmt::format("[{}]", user);
      continue;
    }
    const std::size_t equals = line.find('=');
    if (in_section && equals != std::string_view::npos && trimmed(line.substr(0, equals)) == "key")
      return std::string(trimmed(line.substr(equals + 1)));
  }
  return {};
}

}  // namespace mdfs::device
