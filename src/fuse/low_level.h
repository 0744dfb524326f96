// libfuse's low-level interface, at the one version that MDFS is written for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
