// The log: wraps spdlog.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

namespace mdfs {

// trace, debug, info, warning, error, critical, off.
Status set_log_level(const std::string& name);

// Sets the name of the program in each line, and installs the message for a program that runs out of memory.
void start_log(const std::string& program);

// Logs lines that the user asked for, at every level except off.
void log_report(const std::string& lines);

// Sends the log and the last message to syslog under that name, for a process without a terminal.
void start_syslog(const std::string& program);

}  // namespace mdfs
