// The log: spdlog behind one door.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

namespace mdfs {

// trace, debug, info, warning, error, critical, off.
Status set_log_level(const std::string& name);

// What the program calls itself in each line. From now on it says so if it ends for want of memory.
void start_log(const std::string& program);

// Lines that somebody asked for: they are in the log whatever its level, unless it is off.
void log_report(const std::string& lines);

// From now on the log goes to syslog, under that name, and so do last words: for a process without a terminal.
void start_syslog(const std::string& program);

}  // namespace mdfs
