// libfuse's low-level interface, in the version that MDFS uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
