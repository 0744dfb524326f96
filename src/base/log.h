// The log of a program: level, form and receiver of its lines. All code logs with spdlog::info and its like, which any
// thread may call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "base/result.h"

namespace mdfs {

// The level from which lines are logged: trace, debug, info, warning, error, critical, off. Other names are
// kInvalidArgument.
Status set_log_level(const std::string& name);

// Logs to standard error, each line with the name of the program. Also calls end_when_out_of_memory(). Called once,
// before other threads start.
void start_log(const std::string& program);

// Logs lines that the user asked for, at every level except off. Meanwhile lines of level info of other threads are
// logged, too.
void log_report(const std::string& lines);

// Sends the log and the last message to syslog under that name, for a process without a terminal.
void start_syslog(const std::string& program);

}  // namespace mdfs
