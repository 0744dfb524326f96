/* The version of MDFS: programs, library and documents take it from here.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MDFS_VERSION_H
#define MDFS_VERSION_H

#define MDFS_VERSION_MAJOR 0
#define MDFS_VERSION_MINOR 1
#define MDFS_VERSION_PATCH 0
#define MDFS_VERSION_STRING "0.1.0"

#endif
