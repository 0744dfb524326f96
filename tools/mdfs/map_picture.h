// A picture of how full the zones of every disk are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "occupation.h"
#include "svg.h"

namespace mdfs::tools {

// A strip of zones for each disk, darker where more is in use; zones without room for data are drawn apart. Of more
// zones than a strip has room for, a cell stands for several: their mean. Cells carry the number of their zones as
// data-zones and the blocks in use as data-used. `numbers`, `names`: of the disks, in their order.
std::string map_svg(const std::vector<DiskOccupation>& disks, const std::vector<std::uint32_t>& numbers,
                    const std::vector<std::string>& names, const std::string& title, std::uint32_t block_size);

}  // namespace mdfs::tools
