// A connection to a RADOS cluster, shared by the disks of a process that have the same configuration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <rados/librados.hpp>
#include <set>
#include <string>

#include "base/result.h"
#include "device/rados/rados_description.h"
#include "device/rados/rados_name.h"

namespace mdfs::device {

// The connection ends with its last user. Any thread may call all functions.
class RadosConnection {
 public:
  // An existing connection of this process with that configuration and user, else a new one. Waits up to
  // kConnectSeconds for the cluster, unless the configuration has another client_mount_timeout.
  static Result<std::shared_ptr<RadosConnection>> get(const RadosDescription& description);
  ~RadosConnection();
  RadosConnection(const RadosConnection&) = delete;
  RadosConnection& operator=(const RadosConnection&) = delete;

  librados::Rados& cluster() { return cluster_; }
  // The pool with its namespace. kNotFound names the pool.
  Result<librados::IoCtx> pool(const std::string& disk, const RadosName& name);
  // Has the cluster take nothing more from the client with this address. Waits until the monitors have agreed, once for
  // each address. Zero, or the negative number of an error.
  int fence(const std::string& address, std::uint32_t seconds);
  // As pool_room(). Nothing: the cluster does not say it.
  std::optional<std::uint64_t> room(const std::string& pool, std::uint64_t object_bytes);

 private:
  RadosConnection() = default;
  librados::Rados cluster_;
  std::mutex mutex_;  // guards fenced_
  std::set<std::string> fenced_;
};

// The secret of a user, as RadosModule::find_key.
Result<std::string> find_rados_key(const std::string& conf_path, const std::string& user);

// An error by the negative number that librados returned.
Error rados_error(int result, const std::string& what);
// "the cluster has no answer", "this mount was fenced", or the text of the errno.
std::string rados_reason(int result);

}  // namespace mdfs::device
