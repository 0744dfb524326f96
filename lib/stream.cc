// Streams through the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "errors.h"
#include "image.h"
#include "window_calls.h"

namespace {

using mdfs::client::fail_errno;

// Why a rate is refused, as far as the answer says.
std::string reason(int problem, const std::string& path, const mdfs_ioc_stream& answer) {
  if (problem == EBUSY && answer.rate_that_fits < answer.rate)
    return fmt::format("{}: {:.6g} frames per second: disk {} has time for {:.6g}", path, answer.rate, answer.busiest,
                       answer.rate_that_fits);
  if (problem == EFBIG) return path + ": the frames that are read ahead need more memory than is left for streams";
  if (problem == EOPNOTSUPP) return path + ": the mount has no streams (-o streams=off)";
  return path;
}

}  // namespace

int mdfs_stream::open(mdfs_image& image, mdfs_ioc_stream& request, std::unique_ptr<mdfs_stream>& stream) {
  request.struct_bytes = sizeof request;
  request.action = MDFS_IOC_STREAM_OPEN;
  const std::string& path = image.pool->path();
  const auto fd = image.pool->open_for(MDFS_IOC_STREAM, &request);
  if (!fd.ok()) {
    const int problem = fd.error().posix_errno();
    return fail_errno(problem, reason(problem, path, request));
  }
  stream = std::make_unique<mdfs_stream>(*fd, path);
  return 0;
}

mdfs_stream::~mdfs_stream() { ::close(fd_); }

ssize_t mdfs_stream::next(std::byte* buffer, std::size_t buffer_bytes, mdfs_ioc_frame& frame) {
  frame = {};
  frame.struct_bytes = sizeof frame;
  if (::ioctl(fd_, MDFS_IOC_FRAME, &frame) != 0) return fail_errno(errno, path_ + ": the next frame of the stream");
  if ((frame.flags & MDFS_STREAM_ENDED) != 0) return 0;
  if (frame.bytes > buffer_bytes)
    return fail_errno(EINVAL,
                      fmt::format("{}: a frame has {} bytes; the buffer has {}", path_, frame.bytes, buffer_bytes));
  const int result = mdfs::client::read_bound(fd_, path_, buffer, frame.bytes);
  return result < 0 ? result : static_cast<ssize_t>(frame.bytes);
}

int mdfs_stream::change(mdfs_ioc_stream& request) {
  request.struct_bytes = sizeof request;
  const mdfs_ioc_stream asked = request;
  if (::ioctl(fd_, MDFS_IOC_STREAM, &request) == 0) return 0;
  const int problem = errno;
  mdfs_ioc_stream answer = request;
  answer.rate = asked.rate;
  return fail_errno(problem, reason(problem, path_, answer));
}
