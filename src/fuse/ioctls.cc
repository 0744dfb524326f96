// The commands of include/mdfs/ioctl.h.
// SPDX-License-Identifier: Apache-2.0
#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "fuse/handles.h"
#include "fuse/interrupts.h"
#include "fuse/ioctl_structs.h"
#include "fuse/operations.h"
#include "fuse/reply.h"
#include "fuse/stream_ioctls.h"
#include "fuse/trims.h"
#include "fuse/view_nodes.h"
#include "geometry/level.h"
#include "mdfs/ioctl.h"
#include "views/level_source.h"
#include "views/level_view.h"

namespace mdfs::fuse {
namespace {

using volume::Ino;

// What an answer to an ioctl has before the caller's bytes.
constexpr std::size_t kBeforeIoctlBytes = sizeof(fuse_ioctl_out);
constexpr const char* kLargerThanBuffer = "the window is larger than its buffer";

template <typename T>
void reply_with(fuse_req_t req, const T& out) {
  static_assert(std::is_trivially_copyable_v<T>);
  fuse_reply_ioctl(req, 0, &out, sizeof out);
}

void set_geometry(fuse_req_t req, Ino ino, const Handle& handle, const mdfs_ioc_geometry& in) {
  Server& server = server_of(req);
  const auto set = [&]() -> Status {
    if (!can_write(handle.flags)) return Error{Errc::kAccessDenied, "not open for writing"};
    MDFS_TRY_ASSIGN(const volume::ImageOptions options, to_image_options(in));
    return server.volume().make_image(ino, options);
  };
  if (const Status status = set(); !status.ok()) return reply_error(req, status.error());
  reply_to_new_image(server, ino, [req] { fuse_reply_ioctl(req, 0, nullptr, 0); });
}

void get_geometry(fuse_req_t req, Ino ino) {
  const auto info = reading(req, [&] { return server_of(req).volume().image_info(ino); });
  if (!info.ok()) return reply_error(req, info.error());
  reply_with(req, to_ioc_geometry(*info));
}

// Windows of levels are read, or computed, before the answer, as those of files are when they are opened.
void bind_level(fuse_req_t req, Ino ino, Handle& handle, const geometry::Geometry& image, const views::WindowName& name,
                const mdfs_ioc_window& in) {
  Server& server = server_of(req);
  server.render_queue().post(job_of(req, [&server, &handle, req, ino, image, name, in] {
    const auto view = reading(req, [&] {
      return views::open_level(server.volume(), ino, image, name, server.staging(), fuse_req_ctx(req)->uid,
                               stop_of(req));
    });
    if (!view.ok()) return reply_error(req, view.error());
    handle.bind(*view, nullptr);
    mdfs_ioc_window out = in;
    out.bytes = (*view)->size_bytes();
    reply_with(req, out);
  }));
}

void bind(fuse_req_t req, Ino ino, Handle& handle, const mdfs_ioc_window& in) {
  Server& server = server_of(req);
  geometry::Geometry geometry;
  views::WindowName name;
  views::ViewFile file;
  const auto check = [&]() -> Status {
    MDFS_TRY_ASSIGN(geometry, reading(req, [&] { return server.volume().image_geometry(ino); }));
    MDFS_TRY_ASSIGN(name, to_window(geometry, in));
    if (!handle.direct)
      return Error{Errc::kNotSupported, "this kernel cannot map direct_io files: open the image with O_DIRECT to bind"};
    if ((handle.flags & O_APPEND) != 0)
      return Error{Errc::kInvalidArgument, "a window cannot be bound to a file opened with O_APPEND"};
    if (name.level > 0 && !can_read(handle.flags)) return Error{Errc::kAccessDenied, "not open for reading"};
    MDFS_TRY_ASSIGN(file, views::view_window(geometry, name));
    return {};
  };
  if (const Status status = check(); !status.ok()) return reply_error(req, status.error());
  if (name.level > 0) return bind_level(req, ino, handle, geometry, name, in);
  mdfs_ioc_window out = in;
  out.bytes = file.data_bytes;
  const auto reader = std::make_shared<views::WindowReader>(server.volume(), ino,
                                                            std::make_shared<const views::ViewFile>(std::move(file)));
  handle.bind(reader, reader);
  if (can_read(handle.flags)) {
    if (TraceRecorder* const trace = server.trace(); trace != nullptr)
      trace->window(server.volume(), ino, name.window, false, TraceRecorder::Clock::now(), fuse_req_ctx(req)->pid);
    (void)server.volume().start_window(ino, name.window);  // an error shows when it is read
  }
  reply_with(req, out);
}

// A small window of a level at once.
void read_level_now(fuse_req_t req, Ino ino, const mdfs_ioc_window& asked, std::size_t room) {
  Server& server = server_of(req);
  server.render_queue().post(job_of(req, [&server, req, ino, window = asked, room]() mutable {
    ByteVector answer;
    const auto read = [&]() -> Status {
      MDFS_TRY_ASSIGN(const geometry::Geometry image, server.volume().image_geometry(ino));
      MDFS_TRY_ASSIGN(const views::WindowName name, to_window(image, window));
      MDFS_TRY_ASSIGN(const views::ViewFile file, views::view_window(image, name));
      window.bytes = file.data_bytes;
      if (window.bytes > room) return Error{Errc::kTooBig, kLargerThanBuffer};
      answer.resize(sizeof window + static_cast<std::size_t>(window.bytes));
      std::memcpy(answer.data(), &window, sizeof window);
      return views::read_level_window(server.volume(), ino, image, name, server.staging(), fuse_req_ctx(req)->uid,
                                      MutableBytes(answer).subspan(sizeof window), stop_of(req));
    };
    if (const Status status = reading(req, read); !status.ok()) return reply_error(req, status.error());
    fuse_reply_ioctl(req, 0, answer.data(), answer.size());
  }));
}

// A small window at once: one request instead of two.
void read_now(fuse_req_t req, Ino ino, const Handle& handle, const void* in, std::size_t size) {
  Server& server = server_of(req);
  mdfs_ioc_window window{};
  std::memcpy(&window, in, sizeof window);  // the command word promises more than that
  if (window.level > 0 && can_read(handle.flags)) return read_level_now(req, ino, window, size - sizeof window);
  ReplyBuffer buffer = server.reply_buffer(kBeforeIoctlBytes);  // may be the memory of `in`, which is not used again
  const auto read = [&]() -> Result<std::size_t> {
    if (!can_read(handle.flags)) return Error{Errc::kAccessDenied, "not open for reading"};
    MDFS_TRY_ASSIGN(const geometry::Geometry geometry, server.volume().image_geometry(ino));
    MDFS_TRY_ASSIGN(const views::WindowName name, to_window(geometry, window));
    const geometry::Window& wanted = name.window;
    window.bytes = geometry::window_bytes(geometry, wanted);
    if (window.bytes > size - sizeof window) return Error{Errc::kTooBig, kLargerThanBuffer};
    if (TraceRecorder* const trace = server.trace(); trace != nullptr)
      trace->window(server.volume(), ino, wanted, false, TraceRecorder::Clock::now(), fuse_req_ctx(req)->pid);
    const MutableBytes answer = buffer.bytes().first(sizeof window + static_cast<std::size_t>(window.bytes));
    MDFS_TRY(server.volume().read_window(ino, wanted, 0, answer.subspan(sizeof window), stop_of(req)));
    std::memcpy(answer.data(), &window, sizeof window);
    return answer.size();
  };
  const auto bytes = reading(req, read);
  if (!bytes.ok()) return reply_error(req, bytes.error());
  fuse_reply_ioctl(req, 0, buffer.bytes().data(), *bytes);
}

// Read access through shared memory, for this open file description.
void channel_token(fuse_req_t req, Ino ino, const Handle& handle, const mdfs_ioc_channel& in) {
  Server& server = server_of(req);
  mdfs_ioc_channel out{};
  const auto grant = [&]() -> Status {
    MDFS_TRY(check_channel_request(in));
    if (!can_read(handle.flags)) return Error{Errc::kAccessDenied, "not open for reading"};
    if (server.channels() == nullptr) return Error{Errc::kNotSupported, "the mount has no channel"};
    MDFS_TRY(server.volume().image_geometry(ino));
    MDFS_TRY_ASSIGN(const ChannelToken token,
                    server.channels()->grant(server.volume(), &handle, ino, fuse_req_ctx(req)->uid));
    std::copy(token.begin(), token.end(), out.token);
    return {};
  };
  if (const Status status = reading(req, grant); !status.ok()) return reply_error(req, status.error());
  out.struct_bytes = sizeof out;
  const std::string& name = server.channels()->name();
  std::copy_n(name.begin(), std::min(name.size(), sizeof out.socket - 1), out.socket);
  reply_with(req, out);
}

void unbind(fuse_req_t req, Handle& handle) {
  handle.bind(nullptr, nullptr);
  fuse_reply_ioctl(req, 0, nullptr, 0);
}

void apply(fuse_req_t req, Handle& handle) {
  std::unique_ptr<views::StagedWrite> writer;
  bool bound = false;
  {
    const std::lock_guard lock(handle.mutex);
    bound = handle.view != nullptr;
    if (handle.writer && !handle.writer->empty()) writer = handle.take_staged();
  }
  if (!bound) return reply_error(req, {Errc::kInvalidArgument, "no window is bound"});
  if (!writer) {
    fuse_reply_ioctl(req, 0, nullptr, 0);
    return;
  }
  Server& server = server_of(req);
  const auto done = [req](const Status& status) {
    if (!status.ok()) return reply_error(req, status.error());
    fuse_reply_ioctl(req, 0, nullptr, 0);
  };
  apply_and_reply(req, handle, std::move(writer),
                  [&server, done, image = handle.ino, flags = handle.flags](const Status& status) {
                    if (!status.ok()) return done(status);
                    sync_if_asked(server, image, flags, done);
                  });
}

// List requests look through the tree, and any reader may ask for as many of them as it has threads: they run on a work
// queue of few threads, so that what they need in memory is bounded and fsync waits for none of them. A job keeps what
// its caller asks for, not the structure, while it waits its turn. `answer` is given what ends it with its caller, and
// waits for no disk once it has replied.
template <typename Answer>
void list(fuse_req_t req, Answer answer) {
  server_of(req).list_queue().post(job_of(req, [req, answer = std::move(answer)] {
    const engine::Stop stop = stop_of(req);
    const StopScope scope(stop);
    Status status = engine::stopped(stop);
    if (status.ok()) status = answer(stop);
    if (!status.ok()) reply_error(req, status.error());
  }));
}

// What a read of the window asks of the disks. A level that is not stored is made of the coarsest one that is.
Result<engine::WindowPlan> plan_of(volume::Volume& volume, Ino ino, const geometry::Geometry& image,
                                   const views::WindowName& name, const engine::Stop& stop) {
  if (name.level == 0) return volume.plan_window(ino, name.window, stop);
  MDFS_TRY_ASSIGN(const auto stored, volume.stored_levels(ino));
  const unsigned level = std::min(stored.first, name.level);
  const geometry::Window window = views::level_source(image, name, level).window;
  return level == 0 ? volume.plan_window(ino, window, stop) : volume.plan_level(ino, level, window, stop);
}

void plan(fuse_req_t req, Ino ino, const mdfs_ioc_plan& in) {
  if (in.reserved0 != 0) return reply_error(req, {Errc::kInvalidArgument, "ioctl: reserved fields must be zero"});
  Server& server = server_of(req);
  list(req, [&server, req, ino, asked = in.window](const engine::Stop& stop) -> Status {
    MDFS_TRY_ASSIGN(const volume::ImageInfo info, server.volume().image_info(ino));
    MDFS_TRY_ASSIGN(const views::WindowName name, to_window(info.geometry, asked));
    MDFS_TRY_ASSIGN(const engine::WindowPlan found, plan_of(server.volume(), ino, info.geometry, name, stop));
    mdfs_ioc_plan out = to_ioc_plan(found);
    out.window = asked;
    MDFS_TRY_ASSIGN(const views::ViewFile file, views::view_window(info.geometry, name));
    out.window.bytes = file.data_bytes;
    out.largest_request_bytes = server.largest_request_bytes();
    reply_with(req, out);
    return {};
  });
}

// Nothing is kept between the pages: the cursor says where the next one begins.
void layout(fuse_req_t req, Ino ino, const mdfs_ioc_layout& in) {
  Server& server = server_of(req);
  list(req, [&server, req, ino, from = engine::LayoutCursor{in.next, in.next_row}](const engine::Stop& stop) -> Status {
    MDFS_TRY_ASSIGN(const volume::LayoutPage page, server.volume().layout(ino, from, MDFS_IOC_LAYOUT_ROWS, stop));
    reply_with(req, to_ioc_layout(page));
    return {};
  });
}

void sync(fuse_req_t req) {
  Server& server = server_of(req);
  server.sync_queue().post([&server, req] {
    if (const Status status = server.volume().sync(); !status.ok()) return reply_error(req, status.error());
    fuse_reply_ioctl(req, 0, nullptr, 0);
  });
}

// Of the image, or of the volume.
void fragmentation(fuse_req_t req, Ino ino, bool of_volume) {
  Server& server = server_of(req);
  list(req, [&server, req, ino, of_volume](const engine::Stop& stop) -> Status {
    volume::VolumeFragmentation found;
    if (of_volume) {
      MDFS_TRY_ASSIGN(found, server.volume().volume_fragmentation(stop));
    } else {
      MDFS_TRY_ASSIGN(found.fragmentation, server.volume().fragmentation(ino, stop));
      found.images = found.fragmentation.extents > 0 ? 1 : 0;
      found.complete = true;
      found.worst_factor = found.fragmentation.factor();
      found.worst = ino;
    }
    const volume::HomeState home = of_volume ? server.volume().operations().home_state() : volume::HomeState{};
    reply_with(req, to_ioc_fragmentation(found, home));
    return {};
  });
}

// `count` and `reduction` as in mdfs_ioc_levels.
Status set_levels(volume::Volume& volume, Ino ino, std::uint32_t count, std::uint32_t reduction) {
  MDFS_TRY_ASSIGN(const geometry::Geometry geometry, volume.image_geometry(ino));
  MDFS_TRY_ASSIGN(const auto stored, volume.stored_levels(ino));
  if (count == 0 && reduction != 0) return {Errc::kInvalidArgument, "a reduction is kept with stored levels only"};
  if (count == MDFS_IOC_LEVELS_AUTO) {
    const unsigned least = reduction == 0 ? 0 : std::min(1u, geometry::level_count(geometry));  // keeps the reduction
    count = std::max(geometry::useful_level_count(geometry), least);
  }
  return volume.set_levels(ino, count, reduction == 0 ? stored.second : static_cast<geometry::Reduction>(reduction));
}

void levels(fuse_req_t req, Ino ino, const Handle& handle, const mdfs_ioc_levels& in) {
  if (const Status checked = check_levels_request(in); !checked.ok()) return reply_error(req, checked.error());
  if (in.action == MDFS_IOC_LEVELS_SET && !can_write(handle.flags))
    return reply_error(req, {Errc::kAccessDenied, "not open for writing"});
  Server& server = server_of(req);
  list(req,
       [&server, req, ino, action = in.action, count = in.count,
        reduction = in.reduction](const engine::Stop& stop) -> Status {
         if (action == MDFS_IOC_LEVELS_SET) {
           const StopScope whole([] { return false; });
           MDFS_TRY(set_levels(server.volume(), ino, count, reduction));
         }
         MDFS_TRY_ASSIGN(const volume::LevelsInfo info, server.volume().levels_info(ino, stop));
         const auto reply = [req, answer = to_ioc_levels(info)] { reply_with(req, answer); };
         if (action == MDFS_IOC_LEVELS_SET)
           reply_after_change(server, ino, reply);
         else
           reply();
         return {};
       });
}

void lost(fuse_req_t req, const mdfs_ioc_lost& in) {
  const Status checked = check_lost_request(in);
  if (!checked.ok()) return reply_error(req, checked.error());
  Server& server = server_of(req);
  list(req, [&server, req, from = in.next](const engine::Stop& stop) -> Status {
    MDFS_TRY_ASSIGN(const volume::LostFiles found, server.volume().lost_files(from, MDFS_IOC_LOST_ROWS, stop));
    reply_with(req, to_ioc_lost(found));
    return {};
  });
}

void zones(fuse_req_t req, const mdfs_ioc_zones& in) {
  const Status checked = check_zones_request(in);
  if (!checked.ok()) return reply_error(req, checked.error());
  Server& server = server_of(req);
  list(req, [&server, req, disk = in.disk, first = in.next](const engine::Stop&) -> Status {
    store::Store& store = server.volume().store();
    MDFS_TRY_ASSIGN(const mdfs_ioc_zones out, next_zones(store, store, disk, first));
    reply_with(req, out);
    return {};
  });
}

void model_report(fuse_req_t req) {
  const auto& modelled = server_of(req).modelled();
  if (!modelled) return reply_error(req, {Errc::kNoData, "the disks are not modelled"});
  reply_with(req, to_ioc_model(modelled->report()));
}

// True for callers that may start and stop long work on the volume.
bool owns_the_mount(fuse_req_t req) {
  const uid_t caller = fuse_req_ctx(req)->uid;
  return caller == 0 || caller == server_of(req).owner();
}

Result<mdfs_ioc_operation> run_operation(volume::Volume& volume, Ino ino, bool may_change,
                                         const mdfs_ioc_operation& in) {
  MDFS_TRY_ASSIGN(const volume::OperationRequest request, to_operation_request(in, ino));
  volume::Operations& operations = volume.operations();
  if (in.action != MDFS_IOC_OPERATION_STATUS && !may_change)
    return Error{Errc::kNotPermitted, "an operation requires root or the owner of the mount"};
  if (in.action == MDFS_IOC_OPERATION_START) MDFS_TRY(operations.start(request));
  if (in.action == MDFS_IOC_OPERATION_CANCEL) MDFS_TRY(operations.cancel(request.kind));
  if (in.action == MDFS_IOC_OPERATION_RESUME) {
    std::optional<std::uint64_t> budget;
    if (in.budget_bytes_s != 0) budget = in.budget_bytes_s == MDFS_IOC_NO_BUDGET ? 0 : in.budget_bytes_s;
    MDFS_TRY(operations.resume(request.kind, budget));
  }
  MDFS_TRY_ASSIGN(const volume::OperationRecord record, operations.status(request.kind));
  return to_ioc_operation(record, in, volume.store().block_size());
}

Status fill_disks(volume::Volume& volume, bool may_change, mdfs_ioc_disks& disks) {
  MDFS_TRY(check_disks_request(disks));
  const bool reset = (disks.flags & MDFS_IOC_DISKS_RESET) != 0;
  if (reset && !may_change)
    return Error{Errc::kNotPermitted, "a reset of the error counts requires root or the owner of the mount"};
  if (reset) MDFS_TRY(volume.disk_statistics().reset());
  disks = to_ioc_disks(volume.disk_statistics().now(), disks.flags);
  return {};
}

void disk_statistics(fuse_req_t req, const mdfs_ioc_disks& in) {
  Server& server = server_of(req);
  const bool may_change = owns_the_mount(req);
  server.sync_queue().post([&server, req, may_change, disks = in]() mutable {
    const Status status = fill_disks(server.volume(), may_change, disks);
    if (!status.ok()) return reply_error(req, status.error());
    reply_with(req, disks);
  });
}

// Waits for disks, or for a step to end.
void operation(fuse_req_t req, Ino ino, const mdfs_ioc_operation& in) {
  Server& server = server_of(req);
  const bool may_change = owns_the_mount(req);
  server.sync_queue().post([&server, req, ino, may_change, in] {
    const auto answer = run_operation(server.volume(), ino, may_change, in);
    if (!answer.ok()) return reply_error(req, answer.error());
    reply_with(req, *answer);
  });
}

Result<mdfs_ioc_protection> run_protection(volume::Volume& volume, Ino ino, const volume::Caller& caller,
                                           const mdfs_ioc_protection& in, const engine::Stop& stop) {
  if (in.action == MDFS_IOC_PROTECTION_SET) {
    MDFS_TRY(volume.check_access(ino, W_OK, caller));
    const unsigned groups =
        in.group_members == MDFS_IOC_PROTECTION_USUAL_GROUPS ? volume.usual_group_members() : in.group_members;
    if (in.group_members == MDFS_IOC_PROTECTION_USUAL_GROUPS && groups < 2)
      return Error{Errc::kNotSupported, "a parity needs three disks for data"};
    MDFS_TRY(volume.set_protection(ino, {in.copies == 2, std::max(1u, groups)}));
  }
  MDFS_TRY_ASSIGN(const volume::Protection protection, volume.protection(ino, stop));
  const auto operation = volume.operations().status(volume::OperationKind::kProtect);
  return to_ioc_protection(protection, operation.ok() && operation->state == MDFS_OPERATION_RUNNING);
}

// Of files and directories. Looks through all records of an image.
void protection(fuse_req_t req, Ino ino, const mdfs_ioc_protection& in) {
  if (const Status checked = check_protection_request(in); !checked.ok()) return reply_error(req, checked.error());
  Server& server = server_of(req);
  list(req, [&server, req, ino, in, caller = caller_with_groups(req)](const engine::Stop& stop) -> Status {
    MDFS_TRY_ASSIGN(const mdfs_ioc_protection out, run_protection(server.volume(), ino, caller, in, stop));
    if (in.action == MDFS_IOC_PROTECTION_SET)
      reply_after_change(server, ino, [req, out] { reply_with(req, out); });
    else
      reply_with(req, out);
    return {};
  });
}

// The input as T, if its size is right and it names that size itself.
template <typename T>
Result<T> input_as(const void* in, std::size_t size) {
  T value{};
  if (in == nullptr || size != sizeof value) return Error{Errc::kInvalidArgument, "ioctl: size of the structure"};
  std::memcpy(&value, in, sizeof value);
  return value;
}

// Commands on a real file. True: answered.
bool file_ioctl(fuse_req_t req, Ino ino, unsigned command, Handle& handle, const void* in, std::size_t in_size) {
  const auto with = [&]<typename T>(std::type_identity<T>, auto&& call) {
    const Result<T> value = input_as<T>(in, in_size);
    if (value.ok()) {
      call(*value);
    } else {
      reply_error(req, value.error());
    }
  };
  if (_IOC_NR(command) == MDFS_IOC_READ_NUMBER && _IOC_DIR(command) == (_IOC_READ | _IOC_WRITE) &&
      in_size > sizeof(mdfs_ioc_window)) {
    read_now(req, ino, handle, in, in_size);
    return true;
  }
  switch (command) {
    case MDFS_IOC_SET_GEOMETRY:
      with(std::type_identity<mdfs_ioc_geometry>{}, [&](const auto& value) { set_geometry(req, ino, handle, value); });
      return true;
    case MDFS_IOC_GET_GEOMETRY:
      get_geometry(req, ino);
      return true;
    case MDFS_IOC_BIND:
      with(std::type_identity<mdfs_ioc_window>{}, [&](const auto& value) { bind(req, ino, handle, value); });
      return true;
    case MDFS_IOC_UNBIND:
      unbind(req, handle);
      return true;
    case MDFS_IOC_APPLY:
      apply(req, handle);
      return true;
    case MDFS_IOC_CHANNEL:
      with(std::type_identity<mdfs_ioc_channel>{}, [&](const auto& value) { channel_token(req, ino, handle, value); });
      return true;
    case MDFS_IOC_PLAN:
      with(std::type_identity<mdfs_ioc_plan>{}, [&](const auto& value) { plan(req, ino, value); });
      return true;
    case MDFS_IOC_LEVELS:
      with(std::type_identity<mdfs_ioc_levels>{}, [&](const auto& value) { levels(req, ino, handle, value); });
      return true;
    case MDFS_IOC_FRAME:
      with(std::type_identity<mdfs_ioc_frame>{}, [&](const auto& value) { next_frame(req, handle, value); });
      return true;
    case MDFS_IOC_STREAM:
      with(std::type_identity<mdfs_ioc_stream>{},
           [&](const auto& value) { own_stream(req, ino, handle, owns_the_mount(req), value); });
      return true;
    case MDFS_IOC_FRAGMENTATION:
      fragmentation(req, ino, false);
      return true;
    case MDFS_IOC_LAYOUT:
      with(std::type_identity<mdfs_ioc_layout>{}, [&](const auto& value) { layout(req, ino, value); });
      return true;
    default:
      return false;
  }
}

}  // namespace

void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void*, fuse_file_info* fi, unsigned flags,
              const void* in, std::size_t in_size, std::size_t out_size) {
  if (command == FITRIM) {
    const auto range = input_as<fstrim_range>(in, in_size);
    if (!range.ok() || out_size < sizeof(fstrim_range)) return reply_error(req, {Errc::kInvalidArgument, "FITRIM"});
    return trim_range(req, owns_the_mount(req), *range);
  }
  // The direction and the size are part of the command word; the kernel's buffers must agree with it.
  const std::size_t wanted_in = (_IOC_DIR(command) & _IOC_WRITE) != 0 ? _IOC_SIZE(command) : 0;
  const std::size_t wanted_out = (_IOC_DIR(command) & _IOC_READ) != 0 ? _IOC_SIZE(command) : 0;
  if (_IOC_TYPE(command) != MDFS_IOC_MAGIC || in_size != wanted_in || out_size < wanted_out) {
    fuse_reply_err(req, ENOTTY);
    return;
  }
  if (command == MDFS_IOC_VOLUME) return reply_with(req, to_ioc_volume(server_of(req).volume()));
  if (command == MDFS_IOC_SYNC) return sync(req);
  if (command == MDFS_IOC_MODEL) return model_report(req);
  if (command == MDFS_IOC_VOLUME_FRAGMENTATION) return fragmentation(req, ino, true);
  if (command == MDFS_IOC_OPERATION && !is_virtual(ino)) {
    const auto value = input_as<mdfs_ioc_operation>(in, in_size);
    return value.ok() ? operation(req, ino, *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_PROTECTION && !is_virtual(ino)) {
    const auto value = input_as<mdfs_ioc_protection>(in, in_size);
    return value.ok() ? protection(req, ino, *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_DISKS && !is_virtual(ino)) {
    const auto value = input_as<mdfs_ioc_disks>(in, in_size);
    return value.ok() ? disk_statistics(req, *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_ZONES) {
    const Result<mdfs_ioc_zones> value = input_as<mdfs_ioc_zones>(in, in_size);
    return value.ok() ? zones(req, *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_LOST) {
    const Result<mdfs_ioc_lost> value = input_as<mdfs_ioc_lost>(in, in_size);
    return value.ok() ? lost(req, *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_TRIM) {
    const Result<mdfs_ioc_trim> value = input_as<mdfs_ioc_trim>(in, in_size);
    return value.ok() ? trim(req, owns_the_mount(req), *value) : reply_error(req, value.error());
  }
  if (command == MDFS_IOC_STREAM) {
    const Result<mdfs_ioc_stream> value = input_as<mdfs_ioc_stream>(in, in_size);
    if (!value.ok()) return reply_error(req, value.error());
    if (is_for_any_file(*value)) return any_stream(req, owns_the_mount(req), *value);
  }
  const bool on_a_file = (flags & FUSE_IOCTL_DIR) == 0 && !is_virtual(ino);
  if (on_a_file && file_ioctl(req, ino, command, handle_of(fi), in, in_size)) return;
  fuse_reply_err(req, ENOTTY);
}

}  // namespace mdfs::fuse
