// The lists of system calls, loaded in processes of their own.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/call_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <latch>
#include <string>
#include <thread>

#include "temp_dir.h"

namespace mdfs::fuse {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // then nothing is refused
#else
constexpr bool kSanitized = false;
#endif

struct Outcome {
  int status = 0;  // of waitpid
  std::string said;
};

// Runs `work` in a process that has no new privileges; what it returns is said.
Outcome in_a_process(const std::function<std::string()>& work) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, kRefusedSignal);
    pthread_sigmask(SIG_BLOCK, &told, nullptr);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const std::string said = work();
    const ssize_t count = ::write(ends[1], said.data(), said.size());
    ::_exit(count == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.said.append(buffer, static_cast<std::size_t>(count));
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, &outcome.status, 0), child);
  return outcome;
}

struct Attempt {
  const char* name;  // of the call as it is told; null: it is not told
  std::function<long()> call;
};

std::vector<Attempt> attempts(const std::string& folder) {
  static char program[] = "/bin/true";
  static char* const words[] = {program, nullptr};
  return {
      {"execve", [] { return ::execve(program, words, nullptr); }},
      {"socket", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"openat", [folder] { return ::open((folder + "/new").c_str(), O_WRONLY | O_CREAT, 0600); }},
      {"openat", [] { return ::open("/proc/self/mem", O_RDWR); }},
      {"mmap",
       [] {
         return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1L
                                                                                                               : 0L;
       }},
      {"ptrace", [] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }},
      {"kill", [runner = ::getpid()] { return ::kill(runner, 0); }},
      {"ioctl", [] { return ::ioctl(STDIN_FILENO, TIOCSTI, "x"); }},
      {"prctl", [] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }},
      {"setuid", [] { return ::syscall(SYS_setuid, ::getuid()); }},
      {"umount2", [] { return ::umount2("/nowhere", 0); }},
      {"unshare", [] { return ::unshare(CLONE_NEWUSER); }},
      {"chmod", [folder] { return ::chmod(folder.c_str(), 0777); }},
      {"io_uring_setup", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"io_uring_register", [] { return ::syscall(SYS_io_uring_register, 0, 0, nullptr, 0); }},
      {"setpriority", [] { return ::syscall(SYS_setpriority, PRIO_PROCESS, 1, 0); }},
      {nullptr, [] { return static_cast<long>(::fork()); }},
  };
}

TEST(CallFilter, TheDaemonIsRefusedWhatItDoesNotNeedAndToldOf) {
  if (kSanitized) GTEST_SKIP() << "a build with a sanitizer refuses nothing";
  const test::TempDir folder;
  const std::vector<Attempt> all = attempts(folder.path().string());
  std::string expected;
  for (const Attempt& attempt : all)
    if (attempt.name != nullptr && expected.find(std::string(attempt.name) + '\n') == std::string::npos)
      expected += std::string(attempt.name) + '\n';
  const Outcome outcome = in_a_process([&]() -> std::string {
    const pid_t own = ::getpid();
    if (const Status status = filter_daemon_calls(); !status.ok()) return status.error().message();
    for (const Attempt& attempt : all) {
      errno = 0;
      const long result = attempt.call();
      if (::getpid() != own) ::_exit(0);  // of a fork
      if (result != -1 || errno != ENOSYS)
        return std::string(attempt.name ? attempt.name : "fork") + " returns " + std::to_string(result) + ", errno " +
               std::to_string(errno);
    }
    std::string names;
    for (const std::string& name : refused_calls()) names += name + '\n';
    return names;
  });
  EXPECT_EQ(outcome.said, expected);
  EXPECT_EQ(outcome.status, 0);
}

TEST(CallFilter, TheDaemonMakesThreadsReadsFilesAndTakesMemory) {
  const test::TempDir folder;
  const Outcome outcome = in_a_process([&]() -> std::string {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);  // where a daemon's standard error goes
    if (::dup2(nowhere, STDERR_FILENO) != STDERR_FILENO) return "no standard error";
    if (const Status status = filter_daemon_calls(); !status.ok()) return status.error().message();
    errno = EAGAIN;
    ::perror("as libfuse tells an error of the kernel's device");
    std::string said;
    std::thread([&] { said += std::string(std::size_t{64} << 20, 'x').substr(0, 1); }).join();
    std::thread([&] { said += ::nice(3) == -1 ? "stays" : "nice"; }).join();
    char byte = 0;
    const int status_file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (::read(status_file, &byte, 1) == 1) said += byte;
    const int nameless = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (nameless >= 0 && ::pwrite(nameless, "y", 1, 0) == 1) said += 'y';
    if (nameless < 0 && errno == EOPNOTSUPP) said += 'y';
    ::syslog(LOG_DEBUG, "a line of a test");
    if (::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0) said += 'u';
    for (const std::string& name : refused_calls()) said += ' ' + name;
    return said;
  });
  EXPECT_EQ(outcome.said, "xniceNyu");
  EXPECT_EQ(outcome.status, 0);
}

TEST(CallFilter, AThreadThatWasThereBeforeIsBehindItToo) {
  if (kSanitized) GTEST_SKIP() << "a build with a sanitizer refuses nothing";
  const Outcome outcome = in_a_process([]() -> std::string {
    std::latch loaded(1);
    std::string said;
    std::thread earlier([&] {
      loaded.wait();
      said = ::socket(AF_INET, SOCK_STREAM, 0) == -1 && errno == ENOSYS ? "refused" : "allowed";
    });
    const Status status = filter_daemon_calls();
    loaded.count_down();
    earlier.join();
    return status.ok() ? said : status.error().message();
  });
  EXPECT_EQ(outcome.said, "refused");
}

TEST(CallFilter, TheProcessThatUnmountsMayUnmountAndIsKilledForAnythingElse) {
  const Outcome unmounts = in_a_process([]() -> std::string {
    if (const Status status = filter_helper_calls(); !status.ok()) return status.error().message();
    return ::umount2("/nowhere", 0) == -1 && errno != ENOSYS ? "asked" : "not asked";
  });
  EXPECT_EQ(unmounts.said, "asked");
  EXPECT_EQ(unmounts.status, 0);
  if (kSanitized) return;
  const Outcome opens = in_a_process([]() -> std::string {
    if (const Status status = filter_helper_calls(); !status.ok()) return status.error().message();
    return ::open("/dev/null", O_RDONLY) >= 0 ? "opened" : "refused";
  });
  EXPECT_EQ(opens.said, "");
  EXPECT_TRUE(WIFSIGNALED(opens.status) && WTERMSIG(opens.status) == SIGSYS) << opens.status;
}

}  // namespace
}  // namespace mdfs::fuse
