// The picture of a measurement. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "meter/measure.h"
#include "sim/figure.h"

namespace mdfs::tools {

// Of a ramp: the rate over the number of clients, in all and of one. Else: how many transfers of each kind took at most
// so long.
sim::Figure meter_figure(const Measurement& wanted, std::span<const MeasuredPlace> places);

}  // namespace mdfs::tools
