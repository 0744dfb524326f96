// The lists of system calls.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/call_filter.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>

namespace mdfs::fuse {

const int kRefusedSignal = SIGUSR2;

namespace {

// The run-time libraries of sanitizers make calls of their own, start processes and look into this one: builds with
// them let the kernel log what the others refuse.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint32_t kDaemonRefusal = SCMP_ACT_LOG, kHelperRefusal = SCMP_ACT_LOG;
#else
constexpr std::uint32_t kDaemonRefusal = SCMP_ACT_TRAP, kHelperRefusal = SCMP_ACT_KILL_PROCESS;
#endif

// One way in which a call is allowed; all conditions hold. A call that stands in several lines is allowed in each way.
struct Rule {
  const char* call;
  std::vector<scmp_arg_cmp> conditions = {};
};

// Of what the C++ library, the allocator and threads need.
std::vector<Rule> common_rules() {
  const auto process = static_cast<scmp_datum_t>(::getpid());
  return {
      // Memory: never executable.
      {"brk"},
      {"munmap"},
      {"madvise"},
      {"mremap"},
      {"mmap", {SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}},
      {"mprotect", {SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)}},
      // Waiting, time, signals to itself, the end.
      {"futex"},
      {"restart_syscall"},
      {"clock_gettime"},
      {"clock_nanosleep"},
      {"gettimeofday"},
      {"nanosleep"},
      {"rt_sigprocmask"},
      {"rt_sigreturn"},
      {"getpid"},
      {"getuid"},
      {"geteuid"},
      {"gettid"},
      {"tgkill", {SCMP_A0_64(SCMP_CMP_EQ, process)}},
      {"kill", {SCMP_A0_64(SCMP_CMP_EQ, process)}},
      {"exit"},
      {"exit_group"},
      // Descriptors that are there.
      {"read"},
      {"write"},
      {"close"},
      {"sendmsg"},
  };
}

/// TCGETS2 of glibc since 2.42, without <asm/termbits.h>, which does not bear <termios.h> beside it.
constexpr unsigned int kTcgets2 = 0x802c542a;

// Of librados: connections by TCP, and its wake-ups.
std::vector<Rule> network_rules() {
  return {
      {"socket", {SCMP_A0_32(SCMP_CMP_EQ, AF_INET)}},
      {"socket", {SCMP_A0_32(SCMP_CMP_EQ, AF_INET6)}},
      {"socket", {SCMP_A0_32(SCMP_CMP_EQ, AF_NETLINK)}},
      {"bind"},
      {"getsockname"},
      {"getpeername"},
      {"epoll_create1"},
      {"epoll_create"},
      {"epoll_ctl"},
      {"epoll_wait"},
      {"epoll_pwait"},
      {"eventfd2"},
      {"pipe2"},
      {"timerfd_create"},
      {"timerfd_settime"},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_SETFL)}},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_SETFD)}},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, FIONBIO)}},
      {"uname"},
      {"sysinfo"},
      {"prlimit64", {SCMP_A0_64(SCMP_CMP_EQ, 0), SCMP_A2_64(SCMP_CMP_EQ, 0)}},
      {"prctl", {SCMP_A0_32(SCMP_CMP_EQ, PR_GET_NAME)}},
      {"readlink"},
      {"getegid"},
      {"getgid"},
  };
}

std::vector<Rule> daemon_rules(Network network) {
  std::vector<Rule> rules = common_rules();
  const std::vector<Rule> more = {
      // Threads, no processes.
      {"clone", {SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)}},
      {"set_robust_list"},
      {"rseq"},
      {"prctl", {SCMP_A0_32(SCMP_CMP_EQ, PR_SET_NAME)}},
      {"prctl", {SCMP_A0_32(SCMP_CMP_EQ, PR_SET_TIMERSLACK)}},
      {"sched_getaffinity"},
      {"sched_setaffinity", {SCMP_A0_64(SCMP_CMP_EQ, 0)}},
      {"getpriority", {SCMP_A0_32(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1_32(SCMP_CMP_EQ, 0)}},
      {"setpriority", {SCMP_A0_32(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1_32(SCMP_CMP_EQ, 0)}},
      // Its own limit on file sizes is read, never set.
      {"prlimit64", {SCMP_A0_64(SCMP_CMP_EQ, 0), SCMP_A1_32(SCMP_CMP_EQ, RLIMIT_FSIZE), SCMP_A2_64(SCMP_CMP_EQ, 0)}},
      {"sched_yield"},
      {"getrandom"},
      {"rt_sigaction"},
      {"rt_sigtimedwait"},
      {"sigaltstack"},
      // The kernel's requests, disks, files of windows that are being written, the trace.
      {"readv"},
      {"writev"},
      {"pread64"},
      {"pwrite64"},
      {"io_uring_enter"},
      {"io_uring_register", {SCMP_A1_32(SCMP_CMP_EQ, IORING_REGISTER_ENABLE_RINGS)}},  // of rings with restrictions
      {"lseek"},
      {"fstat"},
      {"fstatfs"},
      {"newfstatat"},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_GETFL)}},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_GETFD)}},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, BLKGETSIZE64)}},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, BLKSSZGET)}},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, BLKDISCARD)}},
      // Files: read, or made without a name.
      {"openat", {SCMP_A2_32(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY)}},
      {"openat", {SCMP_A2_32(SCMP_CMP_MASKED_EQ, O_TMPFILE, O_TMPFILE)}},
      // The control socket, the system log, the service manager.
      {"poll"},
      {"ppoll"},
      {"accept4"},
      {"recvfrom"},
      {"recvmsg"},
      {"sendto"},
      {"shutdown"},
      {"unlinkat"},
      {"socket", {SCMP_A0_32(SCMP_CMP_EQ, AF_UNIX)}},
      {"connect"},
      {"getsockopt"},
      {"setsockopt"},
      // Memory of channels: made without a name, its size set and sealed.
      {"memfd_create"},
      {"ftruncate"},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_ADD_SEALS)}},
      {"fcntl", {SCMP_A1_32(SCMP_CMP_EQ, F_GET_SEALS)}},
      // The terminal is left, the process that unmounts is waited for. perror(3), by which libfuse tells errors of the
      // kernel's device, duplicates a descriptor and asks whether it is of a terminal.
      {"dup"},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, TCGETS)}},
      {"ioctl", {SCMP_A1_32(SCMP_CMP_EQ, kTcgets2)}},
      {"dup2"},
      {"dup3"},
      {"wait4"},
  };
  rules.insert(rules.end(), more.begin(), more.end());
  if (network == Network::kClient) {
    const std::vector<Rule> client = network_rules();
    rules.insert(rules.end(), client.begin(), client.end());
  }
  return rules;
}

std::vector<Rule> helper_rules() {
  std::vector<Rule> rules = common_rules();
  rules.push_back({"umount2"});
  return rules;
}

struct Release {
  void operator()(void* filter) const { seccomp_release(filter); }
};

Status failed(int status, const std::string& what) { return from_errno(-status, "filter of system calls: " + what); }

// The C library forks with all signals blocked, where a trap would be the end. It makes threads by clone where there is
// no clone3, whose flags no filter sees.
Status refuse_processes(scmp_filter_ctx filter) {
  constexpr std::uint32_t kRefusal = SCMP_ACT_ERRNO(ENOSYS);
  int status = seccomp_rule_add(filter, kRefusal, SCMP_SYS(clone), 1, SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  if (status == 0) status = seccomp_rule_add(filter, kRefusal, SCMP_SYS(clone3), 0);
  if (status != 0) return failed(status, "clone");
  return {};
}

// librados names its threads by files of /proc: without a name they work as well.
Status refuse_names(scmp_filter_ctx filter) {
  const int status =
      seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 1, SCMP_A2_64(SCMP_CMP_EQ, O_RDWR));
  return status == 0 ? Status{} : failed(status, "openat");
}

Status load(std::uint32_t otherwise, const std::vector<Rule>& rules, Network network) {
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, Release> filter(seccomp_init(otherwise));
  if (filter == nullptr) return Error{Errc::kNoMemory, "filter of system calls"};
  const std::array<std::pair<scmp_filter_attr, std::uint32_t>, 3> attributes = {
      {{SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS}, {SCMP_FLTATR_CTL_NNP, 1}, {SCMP_FLTATR_CTL_TSYNC, 1}}};
  for (const auto& [attribute, value] : attributes)
    if (const int status = seccomp_attr_set(filter.get(), attribute, value); status != 0)
      return failed(status, "an attribute");
  for (const Rule& rule : rules) {
    const int number = seccomp_syscall_resolve_name(rule.call);
    if (number == __NR_SCMP_ERROR)
      return Error{Errc::kNotSupported, std::string("libseccomp does not know ") + rule.call};
    const int status = seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, number,
                                              static_cast<unsigned>(rule.conditions.size()), rule.conditions.data());
    if (status != 0) return failed(status, rule.call);
  }
  if (otherwise == SCMP_ACT_TRAP) MDFS_TRY(refuse_processes(filter.get()));
  if (network == Network::kClient) MDFS_TRY(refuse_names(filter.get()));
  if (const int status = seccomp_load(filter.get()); status != 0) return failed(status, "loading");
  return {};
}

// ---- calls that were refused

constexpr std::size_t kMaxRefused = 64;
std::array<std::atomic<int>, kMaxRefused> refused;  // numbers + 1; 0: free
pid_t own_process = 0;

void note_refused(int number) {
  for (std::atomic<int>& place : refused) {
    int seen = 0;
    if (place.compare_exchange_strong(seen, number + 1)) {
      kill(own_process, kRefusedSignal);
      return;
    }
    if (seen == number + 1) return;
  }
}

// The call that was not made returns -ENOSYS.
void on_refused(int /*signal*/, siginfo_t* info, void* context) {
  auto* const state = static_cast<ucontext_t*>(context);
  note_refused(info->si_syscall);
#if defined(__x86_64__)
  state->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
  state->uc_mcontext.regs[0] = static_cast<unsigned long long>(-ENOSYS);
#elif defined(__riscv)
  state->uc_mcontext.__gregs[REG_A0] = static_cast<unsigned long>(-ENOSYS);
#else
#error "where does a system call leave its result on this processor?"
#endif
}

}  // namespace

Status filter_daemon_calls(Network network) {
  own_process = ::getpid();
  struct sigaction action {};
  action.sa_sigaction = on_refused;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return from_errno(errno, "filter of system calls");
  return load(kDaemonRefusal, daemon_rules(network), network);
}

Status filter_helper_calls() { return load(kHelperRefusal, helper_rules(), Network::kNone); }

std::vector<std::string> refused_calls() {
  std::vector<std::string> names;
  for (const std::atomic<int>& place : refused) {
    const int number = place.load() - 1;
    if (number < 0) break;
    char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    names.push_back(name != nullptr ? name : "call " + std::to_string(number));
    std::free(name);
  }
  return names;
}

}  // namespace mdfs::fuse
