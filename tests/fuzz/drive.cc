// Runs a fuzz target over inputs made from seeds, in one process and without sanitizers: many inputs a second.
// usage: drive_NAME [--first SEED] [--inputs N] [--seconds S] [--keep DIRECTORY]
// The last line says how many edges of the program were taken, in a build that counts them (`./dev drive`).
// An input that ends the process is kept as DIRECTORY/SEED (a seed of the target); one that takes more than ten
// seconds counts as found.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "edges.h"
#include "fuzz.h"

namespace {

constexpr unsigned kMostSeconds = 10;  // of one input

char path[4096] = "";
std::vector<std::uint8_t> input;

// Only what is allowed in a handler.
extern "C" void keep_the_input(int signal) {
  const int file = path[0] == 0 ? -1 : ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    ssize_t written = ::write(file, input.data(), input.size());
    written += ::write(2, "kept: ", 6) + ::write(2, path, std::strlen(path)) + ::write(2, "\n", 1);
    if (written < 0) ::_exit(1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 1, inputs = UINT64_MAX;
  double seconds = 10;
  std::string keep = ".";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--first") first = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--inputs") inputs = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seconds") seconds = std::strtod(argv[i + 1], nullptr);
    if (option == "--keep") keep = argv[i + 1];
  }
  // Each input mounts and unmounts. Its few threads wait for each other, which is cheaper on one processor; memory goes
  // from one to the next, and not by way of the kernel.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(static_cast<std::size_t>(std::max(::sched_getcpu(), 0)), &processors);
  (void)::sched_setaffinity(0, sizeof processors, &processors);
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(signal, keep_the_input);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::uint64_t done = 0;
  for (; done < inputs && passed() < seconds; ++done) {
    const std::uint64_t seed = first + done;
    std::snprintf(path, sizeof path, "%s/%llu", keep.c_str(), static_cast<unsigned long long>(seed));
    std::mt19937_64 generator(seed);
    input.resize(4 + generator() % 36);
    for (std::uint8_t& byte : input) byte = static_cast<std::uint8_t>(generator());
    ::alarm(kMostSeconds);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  ::alarm(0);
  const double cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::printf("%llu inputs from seed %llu in %.1f s: %.0f a second, %.0f a second of CPU time\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(first), passed(),
              static_cast<double>(done) / passed(), static_cast<double>(done) / cpu_seconds);
  const mdfs::fuzz::Edges edges = mdfs::fuzz::count_edges();
  if (edges.all > 0)
    std::printf("%llu of %llu edges reached\n", static_cast<unsigned long long>(edges.reached),
                static_cast<unsigned long long>(edges.all));
  else
    std::printf("edges are not counted in this build\n");
  return done > 0 ? 0 : 1;
}
