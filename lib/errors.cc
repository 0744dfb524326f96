// The errors of the C interface.
// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

namespace mdfs::client {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

int fail(const Error& error) {
  last_error() = error.message();
  return -error.posix_errno();
}

int fail_errno(int problem, const std::string& where) {
  last_error() = from_errno(problem, where).message();
  return -problem;
}

}  // namespace mdfs::client
