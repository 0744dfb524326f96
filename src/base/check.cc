// The end of a program that cannot go on.
// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace mdfs {
namespace {

std::atomic<void (*)(const char*)> last_words = nullptr;

[[noreturn]] void end(const char* words) {
  std::fprintf(stderr, "mdfs: %s\n", words);
  if (const auto say = last_words.load()) say(words);
  std::abort();
}

}  // namespace

void check_failed(const char* condition, const char* file, int line) {
  char words[512];
  std::snprintf(words, sizeof words, "%s:%d: check failed: %s", file, line, condition);
  end(words);
}

void out_of_memory() { end("out of memory: the program ends"); }

void end_when_out_of_memory() { std::set_new_handler(out_of_memory); }

void set_last_words(void (*say)(const char* words)) { last_words = say; }

}  // namespace mdfs
