// A machine that reads as a mount, of disks that take a fixed time for a request and move 20 MB/s.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sim/system.h"

namespace mdfs::sim {

inline Setup mount_disks(unsigned disks, double request_ms) {
  const std::string text =
      "name = \"t\"\n[placement]\nrequests = \"mount\"\n[[resource]]\nname = \"disk\"\ncount = \"disks\"\n"
      "[[stage]]\nname = \"read\"\nresource = \"disk\"\ncost = [\"" +
      std::to_string(request_ms) + " ms\", \"full / 20 MB/s\"]\n";
  const auto machine = model::parse_machine(text, "test");
  EXPECT_TRUE(machine.ok()) << machine.error().message();
  Setup setup = default_setup(*machine).value();
  setup.disks = disks;
  return setup;
}

}  // namespace mdfs::sim
