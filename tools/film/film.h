// What playing, sending and receiving movies share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "film_module.h"
#include "pipeline.h"
#include "wall_layout.h"

namespace mdfs::film {

// Gives the element "source" of a pipeline, an mdfssrc, its movie. kInvalidArgument: no frame rate.
Status set_movie(const Pipeline& pipeline, const MovieOptions& movie);
// What ends a pipeline: `sink`, or a window on the screen. kNoDevice: there is no screen.
Result<std::string> sink_of(const std::string& sink);
// After the pipeline has reached PAUSED: did it find a sink that shows frames?
Status check_sink(const Pipeline& pipeline);
// CLOCK_REALTIME.
std::int64_t real_time_ns();
// User and system time of this process.
double cpu_seconds();

// A wall: the controller, and a panel.
Status control_wall(const WallOptions& options, const WallLayout& layout);
Status show_panel(const WallOptions& options, const WallLayout& layout);

// The functions of the module.
Status play(const PlayOptions& options);
Result<SendReport> send(const SendOptions& options);
Result<ReceiveReport> receive(const ReceiveOptions& options, const std::function<void(int port)>& listening);
Status wall(const WallOptions& options);

}  // namespace mdfs::film
