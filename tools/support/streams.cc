// SPDX-License-Identifier: Apache-2.0
#include "support/streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace mdfs::tools {
namespace {

int output_errno = 0;

void keep_errno() {
  if (output_errno == 0) output_errno = errno != 0 ? errno : EIO;
}

}  // namespace

void open_standard_streams() {
  ::signal(SIGXFSZ, SIG_IGN);
  constexpr int kNoStreams = 1;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. The wrong mode lets every use fail, as a closed descriptor does.
    if (::open("/dev/null", standard == STDIN_FILENO ? O_WRONLY : O_RDONLY) != standard) ::_exit(kNoStreams);
  }
}

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_errno();
}

Status finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) keep_errno();
  if (output_errno == 0) return {};
  return from_errno(output_errno, "standard output");
}

void write_error(std::string_view text) {
  errno = 0;
  if (std::fflush(stdout) != 0) keep_errno();
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace mdfs::tools
