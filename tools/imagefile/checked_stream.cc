// A stream for libraries that overlook failed writes.
// SPDX-License-Identifier: Apache-2.0
#include "imagefile/checked_stream.h"

#include <cerrno>
#include <utility>

namespace mdfs::imagefile {
namespace {

constexpr std::size_t kBufferBytes = 256u << 10;

}  // namespace

Result<std::unique_ptr<CheckedStream>> CheckedStream::create(tools::File& file) {
  std::unique_ptr<CheckedStream> checked(new CheckedStream(file));
  cookie_io_functions_t calls{};
  calls.read = &CheckedStream::read;
  calls.write = &CheckedStream::write;
  calls.seek = &CheckedStream::seek;
  checked->stream_.reset(::fopencookie(checked.get(), "w+", calls));
  if (!checked->stream_ || std::setvbuf(checked->stream(), nullptr, _IOFBF, kBufferBytes) != 0)
    return from_errno(errno, file.name());
  return checked;
}

Status CheckedStream::flush() {
  if (std::fflush(stream()) != 0 && status_.ok()) status_ = from_errno(errno, file_.name());
  return status_;
}

ssize_t CheckedStream::read(void* self, char* into, std::size_t size) {
  auto& checked = *static_cast<CheckedStream*>(self);
  const auto got = checked.file_.read_at(checked.at_, std::as_writable_bytes(std::span(into, size)));
  if (!got.ok()) {
    if (checked.status_.ok()) checked.status_ = got.error();
    errno = EIO;
    return -1;
  }
  checked.at_ += *got;
  return static_cast<ssize_t>(*got);
}

ssize_t CheckedStream::write(void* self, const char* from, std::size_t size) {
  auto& checked = *static_cast<CheckedStream*>(self);
  if (checked.status_.ok()) checked.put(std::as_bytes(std::span(from, size)));
  checked.at_ += size;
  return static_cast<ssize_t>(size);
}

void CheckedStream::put(ConstBytes bytes) {
  if (at_ != sequential_) {  // refused by a pipe
    status_ = file_.write_at(at_, bytes);
    return;
  }
  if (const auto change = std::exchange(change_start_, {}))
    status_ = file_.write(as_bytes(change(bytes)));
  else
    status_ = file_.write(bytes);
  sequential_ += bytes.size();
}

int CheckedStream::seek(void* self, off64_t* offset, int whence) {
  auto& checked = *static_cast<CheckedStream*>(self);
  std::uint64_t base = whence == SEEK_CUR ? checked.at_ : 0;
  if (whence == SEEK_END) {
    const auto size = checked.file_.size_bytes();
    if (!size.ok()) return -1;
    base = *size;
  }
  const auto wanted = static_cast<std::int64_t>(base) + *offset;
  if (wanted < 0) return -1;
  checked.at_ = static_cast<std::uint64_t>(wanted);
  *offset = wanted;
  return 0;
}

}  // namespace mdfs::imagefile
