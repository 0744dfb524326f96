// A progress bar on standard error, shown only on a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace mdfs::tools {

// One bar. Any thread may call add(); the line is redrawn at most five times a second and removed at the end.
class Progress {
 public:
  enum class Unit { kBytes, kCount };
  // total 0: unknown, shows the amount only. `wanted` false shows nothing.
  Progress(std::string label, std::uint64_t total_bytes, bool wanted = true);
  Progress(std::string label, std::uint64_t total, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t amount);
  void finish();

 private:
  Progress(std::string label, std::uint64_t total, Unit unit, bool wanted);
  void draw(std::int64_t now_ns);

  const std::string label_;
  const std::uint64_t total_;
  const Unit unit_;
  const bool shown_;
  const std::int64_t start_ns_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::int64_t> drawn_ns_{0};
  std::mutex mutex_;  // guards the terminal line
  bool finished_ = false;
};

}  // namespace mdfs::tools
