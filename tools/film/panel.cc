// A panel of a wall: shows its window of the movie when the controller says.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gst/gst.h>
#include <gst/net/gstnet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>

#include "film.h"
#include "line_socket.h"
#include "pipeline.h"
#include "support/interruption.h"
#include "wall_layout.h"

namespace mdfs::film {
namespace {

constexpr int kPanelLookMs = 20;                     // for signals and messages of the pipeline
constexpr GstClockTime kReady = 400 * GST_MSECOND;   // that a panel needs to begin to play
constexpr GstClockTime kMostSync = 30 * GST_SECOND;  // for the first agreement with the clock

// The frame at a position of the movie, and what follows from there.
Status seek(Pipeline& pipeline, GstClockTime position) {
  MDFS_TRY(pipeline.reach(GST_STATE_PAUSED));
  const auto source = pipeline.element("source");
  gint64 duration = 0;
  if (gst_element_query_duration(source.get(), GST_FORMAT_TIME, &duration))
    position = std::min(position, static_cast<GstClockTime>(std::max<gint64>(duration - 1, 0)));
  const auto flags = static_cast<GstSeekFlags>(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE);
  if (!gst_element_seek_simple(pipeline.get(), GST_FORMAT_TIME, flags, static_cast<gint64>(position)))
    return Error{Errc::kIo, fmt::format("a seek to {} s of the movie fails", static_cast<double>(position) / 1e9)};
  return pipeline.reach(GST_STATE_PAUSED);
}

// A panel that begins later than `base` begins further in the movie, so that it is where the others are.
Status play_from(Pipeline& pipeline, GstClock* clock, GstClockTime base, GstClockTime position) {
  const GstClockTime begin = std::max(base, gst_clock_get_time(clock) + kReady);
  MDFS_TRY(seek(pipeline, position + (begin - base)));
  gst_element_set_base_time(pipeline.get(), begin);
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  return {};
}

Status obey(Pipeline& pipeline, GstClock* clock, const std::string& line) {
  std::istringstream words(line);
  std::string word;
  GstClockTime base = 0, position = 0;
  words >> word;
  if (word == "play" && words >> base >> position) return play_from(pipeline, clock, base, position);
  if (word == "pause" && words >> position) return seek(pipeline, position);
  return {};
}

}  // namespace

Status show_panel(const WallOptions& options, const WallLayout& layout) {
  MDFS_TRY_ASSIGN(const WallPanel panel, panel_of(layout, options.panel));
  MDFS_TRY_ASSIGN(const std::string sink, sink_of(panel.sink));
  MDFS_TRY_ASSIGN(const auto pipeline, Pipeline::parse("mdfssrc name=source ! videoconvert ! " + sink));
  MDFS_TRY(set_movie(*pipeline, {options.path, panel.window, panel.level, layout.fps, {}}));
  const ObjectPtr<GstClock> clock(gst_net_client_clock_new("wall", layout.host.c_str(), layout.port, 0));
  if (clock == nullptr || !gst_clock_wait_for_sync(clock.get(), kMostSync))
    return Error{Errc::kIo, fmt::format("no clock answers at {} port {}", layout.host, layout.port)};
  gst_pipeline_use_clock(GST_PIPELINE(pipeline->get()), clock.get());
  gst_element_set_start_time(pipeline->get(), GST_CLOCK_TIME_NONE);  // base times are set here
  MDFS_TRY(pipeline->reach(GST_STATE_PAUSED));
  MDFS_TRY(check_sink(*pipeline));
  MDFS_TRY_ASSIGN(LineSocket controller, LineSocket::connect(layout.host, layout.port));
  MDFS_TRY(controller.send("panel " + panel.name));

  while (!tools::Interruption::asked()) {
    pollfd waiting = {controller.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, kPanelLookMs) > 0) {
      const auto lines = controller.take();
      if (!lines) return {};
      for (const std::string& line : *lines) {
        if (line == "quit") return {};
        MDFS_TRY(obey(*pipeline, clock.get(), line));
      }
    }
    MDFS_TRY_ASSIGN(const std::optional<Ending> ending, pipeline->look());
    if (ending == Ending::kClosed) return {};
    if (ending == Ending::kEnd) MDFS_TRY(controller.send("end"));
  }
  return {};
}

}  // namespace mdfs::film
