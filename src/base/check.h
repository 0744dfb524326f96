// Ends the program on programmers' errors (MDFS_CHECK, in release builds too) and when memory runs out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mdfs {

// Both print the reason to standard error, and abort. Any thread; neither allocates memory.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
[[noreturn]] void out_of_memory();

// Installs handlers: a failing `new` calls out_of_memory(), and an uncaught exception ends the program with a message.
// Called once, before other threads start.
void end_when_out_of_memory();

// Sets a second receiver of the last message, because a daemon has no standard error. `say` must not allocate memory,
// and any thread may call it.
void set_last_words(void (*say)(const char* words));

}  // namespace mdfs

#define MDFS_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::mdfs::check_failed(#condition, __FILE__, __LINE__))
