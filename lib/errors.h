// The errors of the C interface: numbers to return, and the message of the last call of each thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <new>
#include <string>

#include "base/result.h"

namespace mdfs::client {

// Of this thread; mdfs_last_error() returns it.
std::string& last_error();

// Keep the message, and return the negative error number.
int fail(const Error& error);
// Keeps the errno of the daemon, which is part of the interface.
int fail_errno(int problem, const std::string& where);

// No exception leaves the library.
template <typename Function>
auto guarded(Function function) -> decltype(function()) {
  try {
    last_error().clear();
    return function();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (...) {
    return -EIO;
  }
}

}  // namespace mdfs::client
