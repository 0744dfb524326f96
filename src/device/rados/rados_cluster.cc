// Configures and makes connections.
// SPDX-License-Identifier: Apache-2.0
#include "device/rados/rados_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "device/rados/pool_room.h"

namespace mdfs::device {
namespace {

// Unless the configuration says otherwise: for the first answer of a monitor, for other answers of monitors, and for
// one operation on an object. A cluster that repairs itself needs up to half a minute.
constexpr const char* kConnectSeconds = "10";
constexpr const char* kMonitorSeconds = "10";
constexpr const char* kOperationSeconds = "60";
// Between two signs of life of a watch: several may be lost within RadosGuard::kWatchSeconds.
constexpr const char* kSignSeconds = "1";

// A value is replaced where it is the one that librados begins with.
void set_unless_given(librados::Rados& cluster, const char* option, const char* initial, const char* value) {
  std::string now;
  if (cluster.conf_get(option, now) == 0 && std::atof(now.c_str()) == std::atof(initial))
    cluster.conf_set(option, value);
}

// No files, no sockets of its own.
void keep_quiet(librados::Rados& cluster) {
  for (const auto& [option, value] : {std::pair{"log_file", ""},
                                      {"admin_socket", ""},
                                      {"log_to_stderr", "false"},
                                      {"err_to_stderr", "false"},
                                      {"log_to_syslog", "false"}})
    cluster.conf_set(option, value);
}

// Names of files between commas, semicolons or blanks.
std::vector<std::string> split_list(const std::string& text) {
  constexpr const char* kBetween = ",; \t";
  std::vector<std::string> parts;
  for (std::size_t begin = 0; (begin = text.find_first_not_of(kBetween, begin)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

std::mutex mutex;  // guards `connections`
// By configuration, user and key.
std::map<std::array<std::string, 3>, std::weak_ptr<RadosConnection>>& connections() {
  static std::map<std::array<std::string, 3>, std::weak_ptr<RadosConnection>> all;
  return all;
}

Status configure(librados::Rados& cluster, const RadosDescription& description) {
  const std::string& disk = description.disk;
  if (const int result = cluster.init2(description.user.c_str(), "ceph", 0); result < 0)
    return rados_error(result, disk + ": user " + description.user);
  MDFS_TRY_ASSIGN(const UniqueFd file, make_rados_descriptor(description));
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  if (const int result = cluster.conf_read_file(path.c_str()); result < 0)
    return rados_error(result, disk + ": the configuration of the cluster");
  keep_quiet(cluster);
  if (!description.key.empty()) {
    cluster.conf_set("keyring", "/dev/null");
    cluster.conf_set("key", description.key.c_str());
  }
  set_unless_given(cluster, "client_mount_timeout", "300", kConnectSeconds);
  set_unless_given(cluster, "rados_mon_op_timeout", "0", kMonitorSeconds);
  set_unless_given(cluster, "rados_osd_op_timeout", "0", kOperationSeconds);
  set_unless_given(cluster, "objecter_tick_interval", "5", kSignSeconds);
  return {};
}

}  // namespace

std::string rados_reason(int result) {
  switch (-result) {
    case ETIMEDOUT:
      return "the cluster does not answer";
    case ESHUTDOWN:
      return "this process was fenced: another one has taken the disk over";
    case ENOSPC:
    case EDQUOT:
      return "the cluster or the pool is full";
    case EOPNOTSUPP:
      return "the pool refuses it; an erasure-coded pool must have allow_ec_overwrites";
    case EPERM:
    case EACCES:
      return "the user of the cluster may not do that";
    default:
      return from_errno(-result, "").message();
  }
}

Error rados_error(int result, const std::string& what) {
  const Errc code = result == -ETIMEDOUT || result == -ESHUTDOWN ? Errc::kIo
                    : result == -EPERM                           ? Errc::kAccessDenied
                                                                 : from_errno(-result, "").code;
  return {code, fmt::format("{}: {}", what, rados_reason(result))};
}

Result<std::shared_ptr<RadosConnection>> RadosConnection::get(const RadosDescription& description) {
  std::lock_guard lock(mutex);
  auto& known = connections()[{description.conf, description.user, description.key}];
  if (auto connection = known.lock()) return connection;
  std::shared_ptr<RadosConnection> connection(new RadosConnection);
  MDFS_TRY(configure(connection->cluster_, description));
  const int result = connection->cluster_.connect();
  if (result == -ENOENT || result == -EINVAL)
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: the configuration names no monitor (mon_host), or the keyring no {}",
                             description.disk, description.user)};
  if (result < 0)
    return rados_error(result, fmt::format("{}: connecting to the cluster as {}", description.disk, description.user));
  known = connection;
  return connection;
}

RadosConnection::~RadosConnection() { cluster_.shutdown(); }

Result<librados::IoCtx> RadosConnection::pool(const std::string& disk, const RadosName& name) {
  librados::IoCtx io;
  const int result = cluster_.ioctx_create(name.pool.c_str(), io);
  if (result == -ENOENT) return Error{Errc::kNotFound, fmt::format("{}: the cluster has no pool {}", disk, name.pool)};
  if (result < 0) return rados_error(result, fmt::format("{}: pool {}", disk, name.pool));
  if (!name.name_space.empty()) io.set_namespace(name.name_space);
  return io;
}

int RadosConnection::fence(const std::string& address, std::uint32_t seconds) {
  const std::lock_guard lock(mutex_);
  if (fenced_.contains(address)) return 0;
  const int result = cluster_.blocklist_add(address, seconds);
  if (result == 0) fenced_.insert(address);
  return result;
}

std::optional<std::uint64_t> RadosConnection::room(const std::string& pool, std::uint64_t object_bytes) {
  librados::bufferlist answer;
  if (cluster_.mon_command(kPoolRoomCommand, {}, &answer, nullptr) < 0) return std::nullopt;
  return pool_room(answer.to_str(), pool, object_bytes);
}

Result<std::string> find_rados_key(const std::string& conf_path, const std::string& user) {
  librados::Rados cluster;
  if (const int result = cluster.init2(user.c_str(), "ceph", 0); result < 0) return rados_error(result, user);
  if (const int result = cluster.conf_read_file(conf_path.c_str()); result < 0) return rados_error(result, conf_path);
  std::string key, methods, files;
  if (cluster.conf_get("key", key) == 0 && !key.empty()) return key;
  if (cluster.conf_get("auth_client_required", methods) == 0 && methods == "none") return std::string();
  cluster.conf_get("keyring", files);
  std::string denied;
  for (const std::string& file : split_list(files)) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      if (errno == EACCES || errno == EPERM) denied = file;
      continue;
    }
    ::close(fd);
    std::ifstream stream(file);
    std::stringstream text;
    text << stream.rdbuf();
    if (std::string found = key_in_keyring(text.str(), user); !found.empty()) return found;
  }
  if (!denied.empty()) return Error{Errc::kAccessDenied, denied + ": this user may not read the keyring"};
  return Error{Errc::kNotFound, fmt::format("no keyring has a key of {}; tried {} (option ceph_id)", user, files)};
}

}  // namespace mdfs::device
