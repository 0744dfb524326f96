// Mounting, and the daemon's life.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef MDFS_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "device/file_limit.h"
#include "device/find_disks.h"
#include "device/modelled_disk.h"
#include "device/open.h"
#include "device/rados/rados_scheme.h"
#include "fuse/call_filter.h"
#include "fuse/control.h"
#include "fuse/disk_changes.h"
#include "fuse/memory_policy.h"
#include "fuse/memory_watch.h"
#include "fuse/mount_helper.h"
#include "fuse/mountpoint.h"
#include "fuse/privileges.h"
#include "fuse/server.h"
#include "fuse/standby.h"
#include "fuse/trace_recorder.h"
#include "maintenance/maintenance.h"
#include "mdfs/ioctl.h"
#include "store/store.h"
#include "volume/volume.h"

namespace mdfs::fuse {
namespace {

constexpr std::string_view kProgram = "mdfs";
// Of the C library's allocator: few arenas, and buffers of windows go back to the system when they are freed.
constexpr int kArenas = 4;
constexpr int kMmapThresholdBytes = 256 << 10;
constexpr std::uint64_t kModelSeed = 1;
constexpr int kTrimThresholdBytes = 1 << 20;
constexpr std::uint64_t kLeastStreamBytes = 16u << 20, kMostStreamBytes = std::uint64_t{2} << 30;
// From a lazy unmounting to the end of the session, if no file is open.
constexpr auto kUnmountGrace = std::chrono::milliseconds(1000);
// For disks that are in use although no daemon of their volume answers.
constexpr auto kLockGrace = std::chrono::seconds(5);
// The time in which a daemon whose mount is gone must report it.
constexpr int kTriesForEnd = 10;
constexpr auto kBetweenTries = std::chrono::milliseconds(50);
constexpr auto kPollStep = std::chrono::milliseconds(10);
// Of a standby.
constexpr auto kBetweenAttempts = std::chrono::milliseconds(500);

// Called when the mount is ready, with notices for the caller.
using Ready = std::function<void(const std::string& notices)>;

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

sigset_t awaited_signals() {
  sigset_t set = ending_signals();
  sigaddset(&set, kRefusedSignal);
  return set;
}

std::string refused_text() {
  return fmt::format(
      "the daemon's filter refused system calls: {}; report this defect of MDFS, unless an attacker controls the "
      "daemon",
      fmt::join(refused_calls(), ", "));
}

// Waits for a signal that asks the daemon to end, and passes it on; and for the one that tells of refused calls.
class SignalThread {
 public:
  SignalThread(Server& server, MountHelper& helper) : thread_([this, &server, &helper] { wait(server, helper); }) {}
  ~SignalThread() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);  // blocked: it stays pending until the thread takes it
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void wait(Server& server, MountHelper& helper) {
    const sigset_t signals = awaited_signals();
    for (bool asked = false; !ending_;) {
      int number = 0;
      sigwait(&signals, &number);
      if (number == kRefusedSignal) {
        spdlog::error("{}", refused_text());
        continue;
      }
      if (ending_ || asked) continue;
      asked = true;
      spdlog::info("ending on signal {}", number);
      // Served until nothing refers to the mount: what is stored in mappings is still written.
      if (const Status status = helper.unmount_lazily(); !status.ok()) spdlog::warn("{}", status.error().message());
      for (auto waited = kPollStep; server.running() && waited < kUnmountGrace; waited += kPollStep)
        std::this_thread::sleep_for(kPollStep);
      if (server.running()) server.stop();
    }
  }

  std::atomic<bool> ending_{false};
  std::thread thread_;
};

Result<std::vector<device::UniqueFd>> open_descriptors(const std::vector<std::string>& paths, bool read_only) {
  std::vector<device::UniqueFd> descriptors;
  const auto mode = read_only ? device::OpenMode::kReadOnly : device::OpenMode::kReadWrite;
  const auto patience = std::chrono::steady_clock::now() + kLockGrace;
  for (const std::string& path : paths) {
    MDFS_TRY_ASSIGN(auto descriptor, device::open_descriptor_when_free(path, mode, patience));
    descriptors.push_back(std::move(descriptor));
  }
  return descriptors;
}

Result<std::vector<std::unique_ptr<device::Disk>>> adopt_disks(const std::vector<std::string>& paths,
                                                               std::vector<device::UniqueFd> descriptors,
                                                               const std::shared_ptr<device::UringContext>& context) {
  std::vector<std::unique_ptr<device::Disk>> disks;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    MDFS_TRY_ASSIGN(auto disk, device::adopt_disk(paths[i], std::move(descriptors[i]), context));
    disks.push_back(std::move(disk));
  }
  return disks;
}

Result<std::unique_ptr<volume::Volume>> open_volume(std::vector<std::unique_ptr<device::Disk>> disks,
                                                    const MountOptions& options, std::uint64_t cache_bytes,
                                                    Environment& environment) {
  store::StoreOptions store_options;
  store_options.read_only = options.read_only;
  store_options.degraded = options.degraded;
  store_options.rollback = options.rollback;
  store_options.policy = options.policy;
  store_options.discard = options.discard;
  MDFS_TRY_ASSIGN(auto store, store::Store::open(std::move(disks), store_options, environment));
  volume::VolumeOptions volume_options;
  volume_options.engine.cache_bytes = cache_bytes;
  volume_options.engine.grouping = options.grouping;
  volume_options.engine.zeros_for_lost = options.zeros_for_lost;
  volume_options.commit_interval_ns = options.commit_interval_ns;
  volume_options.rebuild_delay_ns = options.rebuild_delay_ns;
  volume_options.atime = options.atime;
  return volume::Volume::open(std::move(store), volume_options, environment, maintenance::make_operations);
}

// What serve() is given: the options, and all that was found by them.
struct Job {
  MountOptions options;
  Uuid volume_uuid;
  std::vector<std::string> paths;         // of disks, absolute
  std::optional<model::Machine> machine;  // whose disks they are to be
};

// Each disk in the place of the machine's disk of that number.
std::vector<std::unique_ptr<device::Disk>> as_modelled(std::vector<std::unique_ptr<device::Disk>> disks,
                                                       const std::shared_ptr<device::ModelledMachine>& machine) {
  unsigned index = 0;
  for (auto& disk : disks) disk = std::make_unique<device::ModelledDisk>(std::move(disk), machine, index++);
  return disks;
}

SessionOptions session_options(const Job& job) {
  SessionOptions session{
      .source = job.paths.front(), .kernel_options = job.options.kernel_options, .read_only = job.options.read_only};
  if (job.options.allow_other.value_or(geteuid() == 0)) session.kernel_options.emplace_back("allow_other");
  return session;
}

ServerOptions server_options(const MountOptions& options, SessionOptions session, uid_t owner) {
  ServerOptions server;
  server.session = std::move(session);
  server.owner = owner;
  server.staging.window_bytes = options.max_window_bytes;
  server.staging.file_bytes = 4 * options.max_window_bytes;
  server.staging_directory = options.staging_directory;
  server.cached_images = options.cached_images;
  return server;
}

// The mounted volume, from ready() to the end. Returns the outcome of closing it.
Status serve_until_unmounted(Server& server, volume::Volume& volume, MountHelper& helper, ControlServer* control) {
  {
    const SignalThread signals(server, helper);
    server.run();
    // Else the dead mount would stay.
    if (server.rings_failed())
      if (const Status status = helper.unmount_lazily(); !status.ok()) spdlog::error("{}", status.error().message());
  }
  if (control != nullptr) {
    control->announce_end();
    control->stop_changes();
  }
  return volume.close();
}

// What is to be said after the unmounting; into the log, too.
std::string last_words(device::ModelledMachine* modelled, TraceRecorder* trace) {
  std::string words;
  if (modelled != nullptr) words += report_text(modelled->report());
  if (!refused_calls().empty()) words += refused_text() + '\n';
  log_report(words);
  if (trace == nullptr) return words;
  const Status status = trace->finish();
  if (status.ok()) return words;
  spdlog::error("{}", status.error().message());
  return words + status.error().message() + '\n';
}

std::uint64_t cache_bytes(const MountOptions& options) {
  if (options.cache_bytes) return *options.cache_bytes;
  const UsableMemory usable = usable_memory();
  return default_cache_bytes(usable.machine_bytes, usable.cgroup_limit_bytes);
}

// For frames that are read ahead, beside the cache.
std::uint64_t stream_memory_bytes(std::uint64_t cache_bytes) {
  return std::clamp<std::uint64_t>(cache_bytes / 4, kLeastStreamBytes, kMostStreamBytes);
}

WatchedCache watched(engine::Engine& engine) {
  return {[&engine] { return engine.cache_stats().bytes; },
          [&engine] { return engine.idle_ns(); },
          [&engine](std::uint64_t bytes) { engine.set_cache_limit(bytes); },
          [&engine](std::uint64_t bytes) { engine.trim_cache(bytes); },
          [&engine] { engine.give_back_memory(); },
          [] { return std::uint64_t{mallinfo2().fordblks}; },
          [] { malloc_trim(0); }};
}

// Notices for the mounting user, a line each.
std::string notices(store::Store& store, const MountOptions& options) {
  std::string lines;
  const auto add = [&](const std::string& line) { lines += (lines.empty() ? "" : "\n") + line; };
  for (unsigned i = 0; i < store.disk_count(); ++i) {
    const store::DiskInfo disk = store.disk_info(i);
    if (disk.is_out)
      add(fmt::format("disk {} is out: it failed, and commits continue without it; run 'mdfs disk replace'", i));
    if (disk.state == store::DiskState::kStale)
      add(fmt::format("disk {} ({}) is stale: the volume was written without it; it counts as missing and is only read",
                      i, disk.name));
    if (disk.state == store::DiskState::kMissing && !disk.is_out && !store.read_only())
      add(fmt::format("disk {} is missing: writes without it make it stale; mount with -o ro until it is back", i));
    if (disk.state == store::DiskState::kFailed)
      add(fmt::format("disk {} ({}) has failed: it is smaller than its label says", i, disk.name));
    if (options.zeros_for_lost && disk.is_lost())
      add(fmt::format("errors=zero: data on disk {} read as zeros; 'mdfs volume lost' lists the files", i));
  }
  if (store.read_only() && !options.read_only) add("mounted read-only: " + store.read_only_reason());
  return lines;
}

void notify(const std::string& lines, const Notice& notice) {
  for (const std::string& line : lines_of(lines)) notice(line);
}

// Tells the service manager about the state, if the program was started as a service that asked for it.
void tell_service_manager([[maybe_unused]] const char* state) {
#ifdef MDFS_SYSTEMD
  sd_notify(0, state);
#endif
}

// Resources that the mounting user's process opens, before the daemon changes its user.
struct Belongings {
  uid_t owner = geteuid();
  SessionOptions session;
  std::unique_ptr<MountHelper> helper;
  std::shared_ptr<TraceRecorder> trace;       // null: nothing is recorded
  std::vector<device::UniqueFd> descriptors;  // of disks
  std::unique_ptr<ControlServer> control;     // null: there is no runtime directory
  std::shared_ptr<device::UringContext> context;
  std::unique_ptr<RequestRings> rings;      // null: all requests come from /dev/fuse
  std::shared_ptr<ChannelServer> channels;  // null: windows come through the kernel alone
  std::uint64_t cache_bytes = 0;
  PressureFiles pressure;
  device::UniqueFd memory_wake;  // eventfd
};

// Null: without rings.
Result<std::unique_ptr<RequestRings>> make_rings(RingUse use, bool offered) {
  if (!offered) {
    if (use == RingUse::kAuto)
      spdlog::info("requests come through /dev/fuse: {} is not Y, and cannot be written", kRingParameter);
    return std::unique_ptr<RequestRings>();
  }
  auto rings = RequestRings::create();
  if (rings.ok()) return rings;
  if (use == RingUse::kOn) return Error{rings.error().code, "io_uring=on: " + rings.error().where};
  spdlog::info("requests come through /dev/fuse: {}", rings.error().message());
  return std::unique_ptr<RequestRings>();
}

// Opens all that takes rights to open, and gives the rights up. Nothing that a disk holds has been looked at but
// labels, and no thread of the daemon is ever anything but this.
Result<Belongings> pack_and_confine(const Job& job, Environment& environment) {
  const MountOptions& options = job.options;
  Belongings with;
  with.session = session_options(job);
  MDFS_TRY_ASSIGN(const bool rings_offered, kernel_offers_rings(options.io_uring, kRingParameter));
  MDFS_TRY_ASSIGN(const Identity identity, daemon_identity());
  MDFS_TRY_ASSIGN(with.helper, MountHelper::start(options.mountpoint, with.session, identity));
  with.cache_bytes = cache_bytes(options);
  if (!options.trace.empty()) {
    MDFS_TRY_ASSIGN(with.trace, TraceRecorder::create(options.trace, with.cache_bytes));
  }
  MDFS_TRY_ASSIGN(with.descriptors, open_descriptors(job.paths, options.read_only));
  auto control = ControlServer::listen(job.volume_uuid, identity);
  if (!control.ok() && control.error().code != Errc::kNotFound) return control.error();
  if (control.ok()) {
    with.control = std::move(*control);
  } else {
    spdlog::warn("no control socket: {}", control.error().message());
  }
  with.pressure = PressureFiles::open();
  with.memory_wake.reset(eventfd(0, EFD_CLOEXEC));
  if (!with.memory_wake.open()) return from_errno(errno, "eventfd");
  if (options.channel) {
    auto channels = ChannelServer::listen(environment, with.cache_bytes);
    if (channels.ok()) {
      with.channels = std::move(*channels);
    } else {
      spdlog::warn("no channels: {}", channels.error().message());
    }
  }
  MDFS_TRY(become(identity, {}));
  MDFS_TRY_ASSIGN(with.context, device::UringContext::create());
  MDFS_TRY_ASSIGN(with.rings, make_rings(options.io_uring, rings_offered));
  const bool is_remote = std::any_of(job.paths.begin(), job.paths.end(), device::is_remote);
  if (!is_remote) device::refuse_rados();
  MDFS_TRY(filter_daemon_calls(is_remote ? Network::kClient : Network::kNone));
  return with;
}

// The life of the daemon: everything between finding the disks and the last commit.
Status serve(const Job& job, const Ready& ready) {
  const MountOptions& options = job.options;
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  mallopt(M_ARENA_MAX, kArenas);
  mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
  mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
  umask(077);
  SystemEnvironment environment;
  MDFS_TRY_ASSIGN(Belongings with, pack_and_confine(job, environment));

  MDFS_TRY_ASSIGN(auto disks, adopt_disks(job.paths, std::move(with.descriptors), with.context));
  device::SystemWaiter waiter;
  std::shared_ptr<device::ModelledMachine> modelled;
  if (job.machine) {
    const auto count = static_cast<unsigned>(disks.size());
    MDFS_TRY_ASSIGN(modelled, device::ModelledMachine::start(*job.machine, count, kModelSeed, waiter));
    disks = as_modelled(std::move(disks), modelled);
  }
  MDFS_TRY_ASSIGN(auto volume, open_volume(std::move(disks), options, with.cache_bytes, environment));
  if (volume->store().volume_uuid() != job.volume_uuid)
    return Error{Errc::kCorrupt, fmt::format("the disks are of volume {}, not {}",
                                             volume->store().volume_uuid().to_string(), job.volume_uuid.to_string())};
  with.session.read_only = volume->store().read_only();
  ServerOptions server_settings = server_options(options, with.session, with.owner);
  server_settings.modelled = modelled;
  server_settings.trace = with.trace;
  server_settings.channels = with.channels;
  if (options.streams_limit)
    server_settings.streams = streams::StreamOptions{*options.streams_limit, stream_memory_bytes(with.cache_bytes)};
  MDFS_TRY_ASSIGN(auto server, Server::create(*volume, server_settings));
  // Ends before the volume does.
  const std::unique_ptr<ControlServer> control = std::move(with.control);
  if (control)
    control->serve([&](ControlRequest request) {
      return change_disks(*volume, modelled ? nullptr : with.context, std::move(request));
    });
  MDFS_TRY_ASSIGN(auto requests, with.helper->mount(with.session.read_only));
  MDFS_TRY(server->attach(std::move(requests), std::move(with.rings)));

  auto memory = std::make_unique<MemoryWatch>(std::move(with.pressure), std::move(with.memory_wake), with.cache_bytes,
                                              watched(volume->engine()), environment);

  ready(notices(volume->store(), options));
  const Status outcome = serve_until_unmounted(*server, *volume, *with.helper, control.get());
  if (!outcome.ok()) spdlog::error("{}", outcome.error().message());
  // Waiting programs may take the disks at once.
  memory.reset();
  server.reset();
  volume.reset();
  const std::string notes = last_words(modelled.get(), with.trace.get());
  if (control) control->finish(outcome, notes);
  return outcome;
}

// ---- the two processes of a mount in the background

constexpr char kReadyMark = 'R';
constexpr char kErrorMark = 'E';

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // no process listens any more
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void detach_from_terminal(int null) {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (dup2(null, standard) < 0) spdlog::warn("leaving the terminal: errno {}", errno);
  close(null);
}

[[noreturn]] void run_child(const Job& job, int report) {
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (chdir("/") != 0 || null < 0) _exit(1);
  start_syslog(std::string(kProgram));
  bool reported = false;
  const Status outcome = serve(job, [&](const std::string& notice) {
    detach_from_terminal(null);
    write_all(report, kReadyMark + notice);
    close(report);
    reported = true;
  });
  if (!reported) {
    const Error& error = outcome.error();
    write_all(report,
              fmt::format("{}{}{}", kErrorMark, static_cast<char>('A' + static_cast<int>(error.code)), error.where));
  }
  _exit(outcome.ok() ? 0 : 1);
}

std::string read_all(int fd) {
  std::string text;
  char buffer[1024];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

Status mount_in_background(const Job& job, const Notice& notice) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return from_errno(errno, "pipe");
  const pid_t child = fork();
  if (child < 0) return from_errno(errno, "fork");
  if (child == 0) {
    close(report[0]);
    run_child(job, report[1]);
  }
  close(report[1]);
  const std::string text = read_all(report[0]);
  close(report[0]);
  if (text.starts_with(kReadyMark)) {
    notify(text.substr(1), notice);
    return {};
  }
  waitpid(child, nullptr, 0);
  if (text.size() < 2 || text[0] != kErrorMark) return Error{Errc::kIo, "the mount daemon died; see the system log"};
  const auto code = static_cast<std::size_t>(text[1] - 'A');
  if (code >= error_table().size()) return Error{Errc::kIo, text.substr(2)};
  return Error{static_cast<Errc>(code), text.substr(2)};
}

// The place to mount on, alive and a directory.
Result<std::string> prepare_mountpoint(const std::string& path, const Notice& notice) {
  MDFS_TRY_ASSIGN(std::string absolute, absolute_path(path));
  if (is_dead_mount(absolute)) {
    notice(absolute + ": the daemon of an earlier mount has died; unmounted it");
    MDFS_TRY(unmount_path(absolute, Unmount::kLazily));
  }
  struct stat st {};
  if (stat(absolute.c_str(), &st) != 0) return from_errno(errno, absolute);
  if (!S_ISDIR(st.st_mode)) return Error{Errc::kInvalidArgument, absolute + ": the mount point must be a directory"};
  MDFS_TRY(check_mountpoint(absolute));
  return absolute;
}

// umount(8) returns while the daemon still writes: a mount that follows at once waits for it.
Status wait_for_earlier_mount(const Uuid& volume, const Notice& notice) {
  for (int tries = 0; tries < kTriesForEnd; ++tries) {
    auto control = ControlClient::connect(volume);
    if (!control.ok()) return {};
    const auto ending = control->is_ending();
    if (!ending.ok() && ending.error().code == Errc::kBusy)
      return Error{Errc::kBusy,
                   fmt::format("volume {} is mounted already, and its daemon does not answer", volume.to_string())};
    if (ending.ok() && *ending && control->ask_for_end().ok()) {
      notice("an earlier mount of this volume is still being written; waiting for it");
      const Status outcome = control->wait_for_end(notice);
      if (!outcome.ok()) notice("the earlier mount: " + outcome.error().message());
      return {};
    }
    std::this_thread::sleep_for(kBetweenTries);  // it may be between its unmounting and saying so
  }
  return Error{Errc::kBusy, "volume " + volume.to_string() + " is mounted already"};
}

// All disks at once, so that their locks are free, and those of the dead are broken.
Status check_free(const std::vector<std::string>& paths) {
  MDFS_TRY_ASSIGN(const auto context, device::UringContext::create());
  std::vector<std::unique_ptr<device::Disk>> disks;
  for (const std::string& path : paths) {
    MDFS_TRY_ASSIGN(auto disk, device::open_disk(path, device::OpenMode::kReadWrite, context));
    disks.push_back(std::move(disk));
  }
  return {};
}

Status find_volume(Job& job, const Notice& notice) {
  MDFS_TRY_ASSIGN(const device::FoundDisks found, device::find_disks(job.options.disks));
  job.volume_uuid = found.volume_uuid;
  MDFS_TRY(wait_for_earlier_mount(job.volume_uuid, notice));
  for (const std::string& missing : found.missing) notice(missing + " was not found");
  job.paths.clear();
  for (const std::string& path : found.paths) {
    MDFS_TRY_ASSIGN(std::string full, device::full_name(path));
    job.paths.push_back(std::move(full));
  }
  return job.options.standby ? check_free(job.paths) : Status{};
}

Status wait_as_standby(Job& job, const Notice& notice) {
  const auto tell = [&](const std::string& line) {
    notice(line);
    tell_service_manager(("STATUS=" + line).c_str());
  };
  return stand_by([&] { return find_volume(job, notice); }, tell,
                  [] { std::this_thread::sleep_for(kBetweenAttempts); });
}

}  // namespace

Status run_mount(const MountOptions& asked, const Notice& notice) {
  Job job{.options = asked, .volume_uuid = {}, .paths = {}, .machine = {}};
  MountOptions& options = job.options;
  MDFS_TRY(set_log_level(options.log_level));
  device::raise_file_limit();
  if (!options.model.empty()) {
    MDFS_TRY_ASSIGN(job.machine, model::find_machine(options.model));
  }
  if (!options.trace.empty()) {
    std::error_code problem;
    options.trace = std::filesystem::absolute(options.trace, problem).string();
    if (problem) return from_errno(problem.value(), options.trace);
  }
  if (!options.ceph_conf.empty()) {
    std::error_code problem;
    options.ceph_conf = std::filesystem::absolute(options.ceph_conf, problem).string();
    if (problem) return from_errno(problem.value(), options.ceph_conf);
  }
  device::set_rados_cluster({options.ceph_conf, options.ceph_id});
  MDFS_TRY_ASSIGN(options.mountpoint, prepare_mountpoint(options.mountpoint, notice));
  for (;;) {
    MDFS_TRY(options.standby ? wait_as_standby(job, notice) : find_volume(job, notice));
    if (options.foreground) break;
    const Status mounted = mount_in_background(job, notice);
    const bool was_beaten = !mounted.ok() && mounted.error().code == Errc::kBusy;  // by another standby
    if (!options.standby || !was_beaten) return mounted;
  }
  return serve(job, [&](const std::string& lines) {
    notify(lines, notice);
    tell_service_manager("READY=1");
  });
}

}  // namespace mdfs::fuse
