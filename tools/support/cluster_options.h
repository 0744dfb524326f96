// The options that name a RADOS cluster, for commands that open disks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "device/rados/rados_scheme.h"

namespace mdfs::tools {

// --ceph-conf and --ceph-id; in force as soon as they are parsed.
inline void add_cluster_options(CLI::App& app) {
  const auto cluster = std::make_shared<device::RadosCluster>();
  const auto set = [cluster](std::string device::RadosCluster::*field) {
    return [cluster, field](const std::string& value) {
      (*cluster).*field = value;
      device::set_rados_cluster(*cluster);
    };
  };
  app.add_option_function<std::string>("--ceph-conf", set(&device::RadosCluster::conf),
                                       "Configuration of the RADOS cluster (default: /etc/ceph/ceph.conf)")
      ->type_name("FILE");
  app.add_option_function<std::string>("--ceph-id", set(&device::RadosCluster::user),
                                       "User of the RADOS cluster (default: admin)")
      ->type_name("NAME");
}

}  // namespace mdfs::tools
