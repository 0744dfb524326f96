// Long operations of all kinds on a mounted volume: requests, waits and output.
// SPDX-License-Identifier: Apache-2.0
#include "operation_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "inode_names.h"
#include "mdfs/ondisk.h"
#include "mounted.h"
#include "support/command.h"
#include "support/file.h"
#include "support/json_output.h"
#include "support/progress.h"
#include "support/text.h"
#include "volume_text.h"

namespace mdfs::tools {
namespace {

constexpr std::array kStates = {"", "running", "cancelled", "done", "failed"};
constexpr std::array kErrorNames = {"", "damaged", "unreadable", "node", "space-page", "label", "skipped"};
constexpr auto kPollStep = std::chrono::milliseconds(100);
constexpr std::uint64_t kMostWalked = 1'000'000;  // names that are looked at for those of damaged files

std::string run_state_name(std::uint32_t state) {
  return state > 0 && state < kStates.size() ? kStates[state] : fmt::format("{}", state);
}

std::uint32_t rows(std::uint32_t count, std::uint32_t most) { return std::min(count, most); }

InodeNames names_of(const mdfs_ioc_operation& operation, const std::string& path) {
  InodeNames names;
  for (std::uint32_t i = 0; i < rows(operation.error_count, MDFS_IOC_MAX_ERRORS); ++i)
    if (operation.errors[i].object != 0) names[operation.errors[i].object];
  (void)find_names(path, names, kMostWalked);
  return names;
}

// One of its names; empty if there is none.
std::string name_of(const InodeNames& names, std::uint64_t inode) {
  const auto found = names.find(inode);
  return found == names.end() || found->second.paths.empty() ? std::string() : found->second.paths.front();
}

// Disks that the volume has now, with their state.
std::vector<std::pair<std::uint32_t, std::uint32_t>> disks_of(const mdfs_ioc_operation& operation,
                                                              const std::string& path) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> disks;
  const auto volume = volume_info(path);
  if (!volume.ok()) return disks;
  for (const std::uint32_t i : disk_numbers(*volume))
    if (i < rows(operation.disk_count, MDFS_IOC_MAX_DISKS)) disks.emplace_back(i, volume->disks[i].state);
  return disks;
}

template <typename ErrorRecord>
std::string error_text(const ErrorRecord& error, const InodeNames& names) {
  const std::string name = name_of(names, error.object);
  const std::string object = fmt::format("inode {}{}", error.object, name.empty() ? "" : " (" + printable(name) + ")");
  switch (error.what) {
    case MDFS_ERROR_DATA:
      return fmt::format("{}: data do not match their checksum, disk {} block {}", object, error.disk, error.block);
    case MDFS_ERROR_UNREADABLE:
      return fmt::format("{}: data cannot be read, disk {} block {}", object, error.disk, error.block);
    case MDFS_ERROR_NODE:
      return fmt::format("tree node at disk {} block {}, from inode {} on", error.disk, error.block, error.object);
    case MDFS_ERROR_SPACE:
      return fmt::format("map of free space of disk {}, page {} of level {}: run mdfsck to rebuild it", error.disk,
                         error.block, error.offset);
    case MDFS_ERROR_LABEL:
      return fmt::format("label {} of disk {}", error.block, error.disk);
    default:
      return fmt::format("{}: left unchanged", object);
  }
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

mdfs_ioc_operation operation_request(std::uint32_t kind, std::uint32_t action) {
  mdfs_ioc_operation request{};
  request.struct_bytes = sizeof request;
  request.kind = kind;
  request.action = action;
  return request;
}

Result<mdfs_ioc_operation> call_operation(const std::string& path, mdfs_ioc_operation request) {
  MDFS_TRY_ASSIGN(const File file, File::open(path, O_RDONLY | O_NONBLOCK));
  if (::ioctl(file.fd(), MDFS_IOC_OPERATION, &request) == 0) return request;
  const int number = errno;
  if (number == ENODATA && request.action == MDFS_IOC_OPERATION_STATUS)
    return Error{Errc::kNoData, path + ": none has ever run on this volume"};
  if (number == ENODATA && request.action == MDFS_IOC_OPERATION_CANCEL)
    return Error{Errc::kNoData, path + ": none is running"};
  if (number == ENODATA) return Error{Errc::kNoData, path + ": there is none to resume"};
  if (number == EBUSY) return Error{Errc::kBusy, path + ": one is already running"};
  if (number == ENOTTY || number == EOPNOTSUPP) return Error{Errc::kNotTty, path};
  if (number == EPERM) return Error{Errc::kNotPermitted, path + ": requires root or the owner of the mount"};
  if (number == ESTALE) return stale_disk_error(path);
  return from_errno(number, path);
}

Result<mdfs_ioc_operation> wait_for_operation(const std::string& path, std::uint32_t kind,
                                              const OperationWords& words) {
  std::optional<Progress> bar;
  for (std::uint64_t shown = 0;; std::this_thread::sleep_for(kPollStep)) {
    MDFS_TRY_ASSIGN(const mdfs_ioc_operation now,
                    call_operation(path, operation_request(kind, MDFS_IOC_OPERATION_STATUS)));
    if (!bar) bar.emplace(std::string(words.name), now.bytes_total);
    if (now.bytes_done > shown) {
      bar->add(now.bytes_done - shown);
      shown = now.bytes_done;
    }
    if (now.state != MDFS_OPERATION_RUNNING) return now;
  }
}

std::optional<double> operation_rate(const mdfs_ioc_operation& operation) {
  if (operation.work_ns == 0 || operation.bytes_done == 0) return std::nullopt;
  const double rate = static_cast<double>(operation.bytes_done) / (static_cast<double>(operation.work_ns) / 1e9);
  // Work is the time without the pauses that keep it within its budget, in which a move counts twice.
  const double budget =
      static_cast<double>(operation.budget_bytes_s) / (operation.kind == MDFS_OPERATION_SCRUB ? 1 : 2);
  return budget > 0 ? std::min(rate, budget) : rate;
}

std::optional<double> operation_eta_s(const mdfs_ioc_operation& operation) {
  const auto rate = operation_rate(operation);
  if (!rate || operation.state != MDFS_OPERATION_RUNNING || operation.bytes_total < operation.bytes_done)
    return std::nullopt;
  return static_cast<double>(operation.bytes_total - operation.bytes_done) / *rate;
}

std::string operation_text(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const std::string& more) {
  std::string text = fmt::format("{}{}: {}, started {}\n", words.name,
                                 (operation.flags & MDFS_OPERATION_DRY_RUN) != 0 ? " (dry run)" : "",
                                 run_state_name(operation.state), time_text(operation.started_ns));
  if (operation.reason[0] != '\0') text += fmt::format("  because: {}\n", shown(operation.reason));
  text += fmt::format("  {} of {}", format_size(operation.bytes_done), format_size(operation.bytes_total));
  if (const auto rate = operation_rate(operation))
    text += fmt::format(" in {}, {} a second", duration_text(static_cast<double>(operation.work_ns) / 1e9),
                        format_size(static_cast<std::uint64_t>(*rate)));
  if (operation.budget_bytes_s != 0) text += fmt::format(" of at most {}", format_size(operation.budget_bytes_s));
  if (const auto eta = operation_eta_s(operation)) text += fmt::format(", about {} left", duration_text(*eta));
  text += fmt::format("\n  {} {}, {} {}, {} {}\n", operation.items_done, words.looked, operation.items_changed,
                      words.changed, operation.items_failed, words.failed);
  text += more;
  for (const auto& [i, state] : disks_of(operation, path)) {
    const auto& disk = operation.disks[i];
    if (!is_readable(state)) {
      text += fmt::format("  disk {}: {}, its data were not examined\n", i, state_name(state));
      continue;
    }
    text += fmt::format("  disk {}: {} read, {} written, {} {}, {} {}\n", i, format_size(disk.read_bytes),
                        format_size(disk.written_bytes), disk.repaired, words.changed, disk.failed, words.failed);
  }
  const auto names = names_of(operation, path);
  for (std::uint32_t i = 0; i < rows(operation.error_count, MDFS_IOC_MAX_ERRORS); ++i)
    text += fmt::format("  error: {}\n", error_text(operation.errors[i], names));
  return text;
}

std::string operation_json(const mdfs_ioc_operation& operation, const OperationWords& words, const std::string& path,
                           const nlohmann::ordered_json& more) {
  nlohmann::ordered_json json;
  json["output_version"] = kOutputVersion;
  json["operation"] = words.name;
  json["state"] = run_state_name(operation.state);
  json["reason"] = text_of(operation.reason);
  json["dry_run"] = (operation.flags & MDFS_OPERATION_DRY_RUN) != 0;
  json["budget_bytes_s"] = operation.budget_bytes_s;
  json["started_s"] = operation.started_ns / 1'000'000'000;
  json["work_s"] = static_cast<double>(operation.work_ns) / 1e9;
  json["bytes_total"] = operation.bytes_total;
  json["bytes_done"] = operation.bytes_done;
  json["items_total"] = operation.items_total;
  json["items_done"] = operation.items_done;
  json["items_changed"] = operation.items_changed;
  json["items_failed"] = operation.items_failed;
  const auto eta = operation_eta_s(operation);
  json["eta_s"] = eta ? nlohmann::ordered_json(*eta) : nlohmann::ordered_json();
  json["disks"] = nlohmann::ordered_json::array();
  for (const auto& [i, state] : disks_of(operation, path)) {
    const auto& disk = operation.disks[i];
    json["disks"].push_back({{"number", i},
                             {"read_bytes", disk.read_bytes},
                             {"written_bytes", disk.written_bytes},
                             {"changed", disk.repaired},
                             {"failed", disk.failed}});
  }
  const auto names = names_of(operation, path);
  json["errors"] = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < rows(operation.error_count, MDFS_IOC_MAX_ERRORS); ++i) {
    const auto& error = operation.errors[i];
    json["errors"].push_back({{"what", error.what < kErrorNames.size() ? kErrorNames[error.what] : "?"},
                              {"inode", error.object},
                              {"path", name_of(names, error.object)},
                              {"offset", error.offset},
                              {"disk", error.disk},
                              {"block", error.block}});
  }
  if (!more.is_null()) json.update(more);
  return dump_json(json);
}

Error operation_error(const mdfs_ioc_operation& operation) {
  const std::string reason = shown(operation.reason);
  for (const ErrcInfo& row : error_table())
    if (const std::string text = std::string(row.text) + ": "; reason.starts_with(text))
      return {row.code, reason.substr(text.size())};
  return {Errc::kIo, reason};
}

Status operation_outcome(const mdfs_ioc_operation& operation, const OperationWords& words) {
  if (operation.state == MDFS_OPERATION_FAILED) {
    const Error error = operation_error(operation);
    return Error{error.code, fmt::format("{}: {}", words.name, error.where)};
  }
  if (operation.state == MDFS_OPERATION_CANCELLED)
    return Error{Errc::kCancelled, fmt::format("{}: it was cancelled", words.name)};
  if (operation.items_failed > 0)
    return Error{Errc::kCorrupt, fmt::format("{}: {} {}", words.name, operation.items_failed, words.failed)};
  return {};
}

Result<std::uint64_t> parse_budget(const std::string& text) {
  constexpr std::uint64_t kLeast = 4096;
  MDFS_TRY_ASSIGN(const std::uint64_t bytes, named("--budget", parse_size(text, "rate")));
  if (bytes < kLeast)
    return Error{Errc::kUsage, fmt::format("--budget {}: must be at least {} bytes a second", text, kLeast)};
  return bytes;
}

}  // namespace mdfs::tools
