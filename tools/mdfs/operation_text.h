// Long operations on a mounted volume: asked for, waited for and shown, whatever their kind.
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

// What the pieces are and what happens to them: "read", "written anew", "damaged".
struct OperationWords {
  std::string_view name;     // "scrub"
  std::string_view looked;   // at: items_done
  std::string_view changed;  // items_changed
  std::string_view failed;   // items_failed
};

// A request of this kind and action; the caller fills in the rest.
mdfs_ioc_operation operation_request(std::uint32_t kind, std::uint32_t action);
// Asks the volume that PATH lies on, and returns the state after it.
Result<mdfs_ioc_operation> call_operation(const std::string& path, mdfs_ioc_operation request);
// Until it does not run any more; on a terminal, a bar shows how far it is.
Result<mdfs_ioc_operation> wait_for_operation(const std::string& path, std::uint32_t kind, const OperationWords& words);

// Bytes a second so far, and seconds that are left; nothing where that cannot be told.
std::optional<double> operation_rate(const mdfs_ioc_operation& operation);
std::optional<double> operation_eta_s(const mdfs_ioc_operation& operation);

// "30 s", "12 min", "2.5 h".
std::string duration_text(double seconds);

// Lines for a person. `more`: lines of the kind, each with its newline.
std::string operation_text(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const std::string& more = {});
// An object, without its newline at the end. `more`: an object with the members of the kind, or null.
std::string operation_json(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const nlohmann::ordered_json& more);
// Why a run failed. The reason begins with the text of its error, which is not said twice.
Error operation_error(const mdfs_ioc_operation& operation);
// The error that a run ends with: it failed, or something is damaged.
Status operation_outcome(const mdfs_ioc_operation& operation, const OperationWords& words);

// "50MiB": bytes a second, at least 4096.
Result<std::uint64_t> parse_budget(const std::string& text);

}  // namespace mdfs::tools
