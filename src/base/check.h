// How a program ends that cannot go on: MDFS_CHECK for programmers' errors, in release builds too, and no memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mdfs {

// Both say why, and abort.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
[[noreturn]] void out_of_memory();

// From now on `new` that finds no memory calls out_of_memory(), and an exception that nobody catches ends likewise.
void end_when_out_of_memory();

// Where last words go besides standard error, which a daemon does not have. `say` must do without memory.
void set_last_words(void (*say)(const char* words));

}  // namespace mdfs

#define MDFS_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::mdfs::check_failed(#condition, __FILE__, __LINE__))
