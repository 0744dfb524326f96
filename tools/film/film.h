// What playing, sending and receiving movies share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "film_module.h"
#include "pipeline.h"

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

// The symbols of the module.
Status play(const PlayOptions& options);
Result<SendReport> send(const SendOptions& options);
Result<ReceiveReport> receive(const ReceiveOptions& options, const std::function<void(int port)>& listening);

}  // namespace mdfs::film
