// Requests, awaits and shows background operations on a mounted volume, for all kinds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mdfs/ioctl.h"

namespace mdfs::tools {

// Words for the pieces of an operation: "read", "rewritten", "damaged".
struct OperationWords {
  std::string_view name;     // "scrub"
  std::string_view looked;   // at: items_done
  std::string_view changed;  // items_changed
  std::string_view failed;   // items_failed
};

// A request of this kind and action; the caller fills in the rest.
mdfs_ioc_operation operation_request(std::uint32_t kind, std::uint32_t action);
// Sends a request to the volume that contains PATH, and returns the state after it.
Result<mdfs_ioc_operation> call_operation(const std::string& path, mdfs_ioc_operation request);
// Waits for the end; on a terminal, a bar shows the progress.
Result<mdfs_ioc_operation> wait_for_operation(const std::string& path, std::uint32_t kind, const OperationWords& words);

// Bytes a second so far, and remaining seconds; nothing if unknown.
std::optional<double> operation_rate(const mdfs_ioc_operation& operation);
std::optional<double> operation_eta_s(const mdfs_ioc_operation& operation);

// "30 s", "12 min", "2.5 h".
std::string duration_text(double seconds);

// Lines to show. `more`: lines of the kind, each with its newline.
std::string operation_text(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const std::string& more = {});
// An object, without its newline at the end. `more`: an object with the members of the kind, or null.
std::string operation_json(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const nlohmann::ordered_json& more);
// The error of a failed run, without repeating the text of its code.
Error operation_error(const mdfs_ioc_operation& operation);
// The error at the end of a run: it failed, or damage remains.
Status operation_outcome(const mdfs_ioc_operation& operation, const OperationWords& words);

// "50MiB": bytes a second, at least 4096.
Result<std::uint64_t> parse_budget(const std::string& text);

}  // namespace mdfs::tools
