// A picture of the occupation of the zones of every disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "occupation.h"
#include "support/svg.h"

namespace mdfs::tools {

// A row of zones for each disk, darker where more is in use; zones without data are drawn differently. If a row has
// too little room, a cell stands for several zones: their mean. Cells carry the number of their zones as
// data-zones and the blocks in use as data-used. `numbers`, `names`: of the disks, in their order.
std::string map_svg(const std::vector<DiskOccupation>& disks, const std::vector<std::uint32_t>& numbers,
                    const std::vector<std::string>& names, const std::string& title, std::uint32_t block_size);

}  // namespace mdfs::tools
