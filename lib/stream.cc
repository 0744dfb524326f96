// Streams through the kernel.
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "errors.h"
#include "image.h"
#include "window_calls.h"

namespace {

using mdfs::client::fail_errno;

// The field that is wrong, as far as the request shows it; else empty.
std::string wrong_field(const mdfs_ioc_stream& asked) {
  if (!(asked.rate >= MDFS_STREAM_MIN_RATE && asked.rate <= MDFS_STREAM_MAX_RATE))
    return fmt::format("rate {}: must be {} to {:.0f} frames per second", asked.rate, MDFS_STREAM_MIN_RATE,
                       MDFS_STREAM_MAX_RATE);
  if (asked.lookahead > MDFS_STREAM_MAX_LOOKAHEAD)
    return fmt::format("lookahead {}: must be at most {} frames", asked.lookahead, MDFS_STREAM_MAX_LOOKAHEAD);
  if (asked.step == INT64_MIN) return "step: out of range";
  if (asked.action != MDFS_IOC_STREAM_OPEN) return {};
  if (asked.axis >= asked.window.rank)
    return fmt::format("axis {}: the window has {} axes, from 0", asked.axis, asked.window.rank);
  if (const std::uint64_t length = asked.window.length[asked.axis];
      length > 0 && asked.window.start[asked.axis] % length != 0)
    return fmt::format("the window begins at {} along its axis: must be a multiple of its length there, {}",
                       asked.window.start[asked.axis], length);
  if ((asked.flags & MDFS_STREAM_COARSER) != 0)
    return fmt::format("no level is stored that is coarser than level {} (mdfs image levels)", asked.window.level);
  return {};
}

// What is wrong with a request, as far as it and the answer say.
std::string reason(int problem, const mdfs_ioc_stream& asked, const mdfs_ioc_stream& answer) {
  if (problem == EBUSY && answer.rate_that_fits < asked.rate)
    return fmt::format("{:.6g} frames per second: disk {} has time for {:.6g}", asked.rate, answer.busiest,
                       answer.rate_that_fits);
  if (problem == EFBIG)
    return fmt::format(
        "the frames that are read ahead need more memory than is left for streams: {}, or a larger "
        "cache",
        asked.lookahead > 0 ? fmt::format("a lookahead below {}", asked.lookahead) : "smaller frames");
  if (problem == EMFILE) return "64 streams are open, or 32 of this user, and no more can be";
  if (problem == ERANGE && asked.action == MDFS_IOC_STREAM_SEEK)
    return fmt::format("frame {}: the axis has fewer frames", asked.frame);
  if (problem == ERANGE && asked.window.level > 0)
    return fmt::format("level {} is not stored (mdfs image levels), or the window is not in it", asked.window.level);
  if (problem == EINVAL) return wrong_field(asked);
  if (problem == EOPNOTSUPP) return "the mount has no streams (-o streams=off)";
  return {};
}

int refuse(int problem, const std::string& path, const mdfs_ioc_stream& asked, const mdfs_ioc_stream& answer) {
  const std::string why = reason(problem, asked, answer);
  if (problem != EMFILE) return fail_errno(problem, why.empty() ? path : path + ": " + why);
  mdfs::client::last_error() = path + ": " + why;  // its usual text is about descriptors
  return -problem;
}

}  // namespace

int mdfs_stream::open(mdfs_image& image, mdfs_ioc_stream& request, std::unique_ptr<mdfs_stream>& stream) {
  request.struct_bytes = sizeof request;
  request.action = MDFS_IOC_STREAM_OPEN;
  const mdfs_ioc_stream asked = request;
  const std::string& path = image.pool->path();
  const auto fd = image.pool->open_for(MDFS_IOC_STREAM, &request);
  if (!fd.ok()) return refuse(fd.error().posix_errno(), path, asked, request);
  stream = std::make_unique<mdfs_stream>(*fd, path);
  return 0;
}

mdfs_stream::~mdfs_stream() { ::close(fd_); }

ssize_t mdfs_stream::next(std::byte* buffer, std::size_t buffer_bytes, mdfs_ioc_frame& frame) {
  frame = {};
  frame.struct_bytes = sizeof frame;
  if (::ioctl(fd_, MDFS_IOC_FRAME, &frame) != 0)
    return fail_errno(errno, fmt::format("{}: frame {} of the stream", path_, frame.frame));
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
  return refuse(errno, path_, asked, request);
}
