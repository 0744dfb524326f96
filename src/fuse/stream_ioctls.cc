// Streams of open images.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/stream_ioctls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fuse/interrupts.h"
#include "fuse/ioctl_structs.h"
#include "fuse/reply.h"
#include "streams/streams.h"

namespace mdfs::fuse {
namespace {

using streams::Delivered;
using streams::StreamInfo;
using volume::Ino;

// The bytes of the frame that was delivered last.
class FrameView final : public views::View {
 public:
  explicit FrameView(streams::FrameBytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size_bytes() const override { return bytes_->size(); }
  Result<std::size_t> read(std::uint64_t offset, MutableBytes into, const engine::Stop&) override {
    const MutableBytes wanted = views::cut_to_size(into, offset, bytes_->size());
    if (!wanted.empty()) std::memcpy(wanted.data(), bytes_->data() + offset, wanted.size());
    return wanted.size();
  }

 private:
  const streams::FrameBytes bytes_;
};

void reply_with(fuse_req_t req, int result, const mdfs_ioc_stream& out) {
  fuse_reply_ioctl(req, result, &out, sizeof out);
}

Result<streams::Streams*> streams_of(Server& server) {
  if (server.streams() == nullptr) return Error{Errc::kNotSupported, "the mount has no streams (-o streams=off)"};
  return server.streams();
}

Result<Ino> checked_image(fuse_req_t req, Ino ino, const Handle& handle) {
  if (!can_read(handle.flags)) return Error{Errc::kAccessDenied, "not open for reading"};
  MDFS_TRY(reading(req, [&] { return server_of(req).volume().image_geometry(ino); }));
  if (!handle.direct)
    return Error{Errc::kNotSupported,
                 "this kernel cannot map direct_io files: open the image with O_DIRECT for a stream"};
  return ino;
}

mdfs_ioc_stream state_of(streams::Streams& streams, std::uint64_t id, const mdfs_ioc_stream& asked) {
  const std::optional<StreamInfo> info = streams.find(id);
  return info ? to_ioc_stream(*info, asked) : asked;
}

void put_admission(const streams::Admission& admission, mdfs_ioc_stream& out) {
  out.rate_that_fits = std::min(admission.rate_that_fits, streams::kMostRate);
  out.busiest = admission.busiest;
  out.load = admission.load;
}

// On a thread that may wait for the trial of the disks.
void open_stream(fuse_req_t req, Ino ino, Handle& handle, bool manages, const mdfs_ioc_stream& in) {
  Server& server = server_of(req);
  const engine::Stop stop = stop_of(req);
  const auto open = [&]() -> Result<streams::Opened> {
    MDFS_TRY_ASSIGN(streams::Streams* const streams, streams_of(server));
    MDFS_TRY(checked_image(req, ino, handle));
    MDFS_TRY_ASSIGN(const geometry::Geometry image, server.volume().image_geometry(ino));
    MDFS_TRY_ASSIGN(streams::StreamRequest request, to_stream_request(image, in));
    if (request.unchecked && !manages)
      return Error{Errc::kNotPermitted, "a stream without admission requires root or the owner of the mount"};
    {
      const std::lock_guard lock(handle.mutex);
      if (handle.stream != 0) return Error{Errc::kExists, "the description has a stream"};
    }
    request.ino = ino;
    request.uid = fuse_req_ctx(req)->uid;
    request.pid = fuse_req_ctx(req)->pid;
    return streams->open(request, stop);
  };
  const Result<streams::Opened> opened = open();
  if (!opened.ok()) return reply_error(req, opened.error());
  mdfs_ioc_stream out = in;
  if (opened->stream) {
    bool is_first = false;
    {
      const std::lock_guard lock(handle.mutex);
      is_first = handle.stream == 0;
      if (is_first) handle.stream = opened->stream->id;
    }
    if (!is_first) {
      server.streams()->close(opened->stream->id);
      return reply_error(req, {Errc::kExists, "the description has a stream"});
    }
    out = to_ioc_stream(*opened->stream, in);
  }
  put_admission(opened->admission, out);
  reply_with(req, opened->stream ? 0 : -EBUSY, out);
}

// What the description has, without a wait.
Status change_stream(streams::Streams& streams, std::uint64_t id, const mdfs_ioc_stream& in, mdfs_ioc_stream& out) {
  Status status;
  std::optional<streams::Admission> admission;
  if (in.action == MDFS_IOC_STREAM_PAUSE) status = streams.pause(id);
  if (in.action == MDFS_IOC_STREAM_RESUME) status = streams.resume(id);
  if (in.action == MDFS_IOC_STREAM_SEEK) status = streams.seek(id, in.frame);
  if (in.action == MDFS_IOC_STREAM_PACE) {
    MDFS_TRY_ASSIGN(admission, streams.set_pace(id, in.rate, in.step != 0 ? in.step : 1));
    if (!admission->accepted) status = Error{Errc::kBusy, "the disks have no time left for this rate"};
  }
  out = state_of(streams, id, in);
  if (admission) put_admission(*admission, out);
  return status;
}

}  // namespace

bool is_for_any_file(const mdfs_ioc_stream& in) {
  return in.action == MDFS_IOC_STREAM_LIST || (in.action == MDFS_IOC_STREAM_CLOSE && in.id != 0);
}

void any_stream(fuse_req_t req, bool manages, const mdfs_ioc_stream& in) {
  const auto answer = [&]() -> Result<mdfs_ioc_stream> {
    MDFS_TRY(check_stream_request(in));
    MDFS_TRY_ASSIGN(streams::Streams* const streams, streams_of(server_of(req)));
    const bool closes = in.action == MDFS_IOC_STREAM_CLOSE;
    const std::optional<StreamInfo> info = closes ? streams->find(in.id) : streams->find_from(in.id);
    if (!info) return Error{Errc::kNoData, "there is no such stream"};
    if (!closes) return to_ioc_stream(*info, in);
    if (!manages && fuse_req_ctx(req)->uid != info->request.uid)
      return Error{Errc::kNotPermitted, "another user's stream is closed by root or the owner of the mount"};
    streams->close(info->id);
    return to_ioc_stream(*info, in);
  }();
  if (!answer.ok()) return reply_error(req, answer.error());
  reply_with(req, 0, *answer);
}

void own_stream(fuse_req_t req, Ino ino, Handle& handle, bool manages, const mdfs_ioc_stream& in) {
  if (const Status checked = check_stream_request(in); !checked.ok()) return reply_error(req, checked.error());
  Server& server = server_of(req);
  if (in.action == MDFS_IOC_STREAM_OPEN) {
    server.trial_queue().post(
        job_of(req, [req, ino, &handle, manages, in] { open_stream(req, ino, handle, manages, in); }));
    return;
  }
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(handle.mutex);
    id = in.action == MDFS_IOC_STREAM_CLOSE ? std::exchange(handle.stream, 0) : handle.stream;
  }
  if (id == 0 || server.streams() == nullptr) return reply_error(req, {Errc::kNoData, "the description has no stream"});
  mdfs_ioc_stream out = in;
  if (in.action == MDFS_IOC_STREAM_CLOSE) {
    out = state_of(*server.streams(), id, in);
    server.streams()->close(id);
    handle.bind(nullptr, nullptr);
    return reply_with(req, 0, out);
  }
  const Status status = change_stream(*server.streams(), id, in, out);
  if (!status.ok() && (in.action != MDFS_IOC_STREAM_PACE || status.error().code != Errc::kBusy))
    return reply_error(req, status.error());
  reply_with(req, status.ok() ? 0 : -EBUSY, out);
}

void next_frame(fuse_req_t req, Handle& handle, const mdfs_ioc_frame& in) {
  if (const Status checked = check_frame_request(in); !checked.ok()) return reply_error(req, checked.error());
  Server& server = server_of(req);
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(handle.mutex);
    id = handle.stream;
  }
  if (id == 0 || server.streams() == nullptr) return reply_error(req, {Errc::kNoData, "the description has no stream"});
  server.streams()->next(id, stop_of(req), [req, &handle](Result<std::optional<Delivered>> frame) {
    if (!frame.ok()) return reply_error(req, frame.error());
    mdfs_ioc_frame out{};
    out.struct_bytes = sizeof out;
    int result = 0;
    if (!*frame) {
      out.flags = MDFS_STREAM_ENDED;
    } else {
      const Delivered& delivered = **frame;
      out.frame = delivered.frame;
      out.dropped = delivered.dropped;
      out.deadline_ns = delivered.deadline_ns;
      out.ready_ns = delivered.ready_ns;
      out.level = delivered.level;
      if (delivered.status.ok()) {
        handle.bind(std::make_shared<FrameView>(delivered.bytes), nullptr);
        out.bytes = delivered.bytes->size();
      } else {
        handle.bind(nullptr, nullptr);
        result = -delivered.status.error().posix_errno();
      }
    }
    fuse_reply_ioctl(req, result, &out, sizeof out);
  });
}

void end_stream(Server& server, const Handle& handle) {
  if (handle.stream != 0) server.streams()->close(handle.stream);
}

}  // namespace mdfs::fuse
