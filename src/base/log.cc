// Set-up of the log.
// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <syslog.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace mdfs {

Status set_log_level(const std::string& name) {
  const auto level = spdlog::level::from_str(name);
  if (level == spdlog::level::off && name != "off")
    return Error{Errc::kInvalidArgument,
                 "log level '" + name + "': one of trace, debug, info, warning, error, critical, off"};
  spdlog::set_level(level);
  return {};
}

void start_log(const std::string& program) {
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_pattern("%n: %^%l%$: %v");
  logger->set_level(spdlog::get_level());
  spdlog::set_default_logger(std::move(logger));
  end_when_out_of_memory();
}

void log_report(const std::string& lines) {
  const auto level = spdlog::get_level();
  if (level == spdlog::level::off) return;
  spdlog::set_level(std::min(level, spdlog::level::info));
  for (const std::string& line : lines_of(lines)) spdlog::info("{}", line);
  spdlog::set_level(level);
}

void start_syslog(const std::string& program) {
  auto logger = spdlog::syslog_logger_mt("syslog", program, LOG_PID, LOG_DAEMON);
  logger->set_pattern("%v");
  logger->set_level(spdlog::get_level());
  spdlog::set_default_logger(std::move(logger));
  set_last_words([](const char* words) { syslog(LOG_CRIT, "%s", words); });
}

}  // namespace mdfs
