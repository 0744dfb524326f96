// The end of a program that cannot continue.
// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace mdfs {
namespace {

std::atomic<void (*)(const char*)> last_words = nullptr;

[[noreturn]] void end(const char* words) {
  std::fprintf(stderr, "mdfs: %s\n", words);
  if (const auto say = last_words.load()) say(words);
  std::abort();
}

// Nothing here throws on purpose: what comes is a thread that could not be started, or a library at its end.
[[noreturn]] void end_by_exception() {
  char words[512] = "an unknown exception: the program ends";
  // On its way the exception has reached a thread that still runs, and cannot be told any more.
  if (std::uncaught_exceptions() > 0)
    std::snprintf(words, sizeof words, "out of memory or of threads: the program ends");
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    std::snprintf(words, sizeof words, "out of memory or of threads (%s): the program ends", error.what());
  } catch (const std::exception& error) {
    std::snprintf(words, sizeof words, "an exception (%s): the program ends", error.what());
  } catch (...) {
  }
  end(words);
}

}  // namespace

void check_failed(const char* condition, const char* file, int line) {
  char words[512];
  std::snprintf(words, sizeof words, "%s:%d: check failed: %s", file, line, condition);
  end(words);
}

void out_of_memory() { end("out of memory: the program ends"); }

void end_when_out_of_memory() {
  std::set_new_handler(out_of_memory);
  std::set_terminate(end_by_exception);
}

void set_last_words(void (*say)(const char* words)) { last_words = say; }

}  // namespace mdfs
