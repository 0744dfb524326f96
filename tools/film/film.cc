// The module: mdfs play, and what it shares with mdfs send and mdfs receive.
// SPDX-License-Identifier: Apache-2.0
#include "film.h"

#include <fmt/format.h>
#include <gst/gst.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/environment.h"
#include "mdfs/version.h"

namespace mdfs::film {
namespace {

constexpr std::array<Needed, 2> kToShow = {
    {{"mdfssrc", "mdfs-gstreamer"}, {"videoconvert", "gstreamer1.0-plugins-base"}}};

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::int64_t real_time_ns() { return SystemEnvironment().now_ns(); }

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Status set_movie(const Pipeline& pipeline, const MovieOptions& movie) {
  const auto source = pipeline.element("source");
  g_object_set(source.get(), "location", movie.path.c_str(), "window", movie.window.c_str(), "level",
               static_cast<int>(movie.level), "reserve", static_cast<gboolean>(movie.time.reserve), "coarser",
               static_cast<gboolean>(movie.time.coarser), nullptr);
  if (movie.fps.empty()) return {};
  GValue rate = G_VALUE_INIT;
  g_value_init(&rate, GST_TYPE_FRACTION);
  const bool parsed = gst_value_deserialize(&rate, movie.fps.c_str()) && gst_value_get_fraction_numerator(&rate) > 0;
  if (parsed) g_object_set_property(G_OBJECT(source.get()), "fps", &rate);
  g_value_unset(&rate);
  if (parsed) return {};
  return Error{Errc::kInvalidArgument,
               movie.fps + ": --fps requires frames a second above 0, such as 25 or 30000/1001"};
}

Result<std::string> sink_of(const std::string& sink) {
  if (!sink.empty()) return sink;
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
    return Error{Errc::kNoDevice,
                 "there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set; --sink shows frames elsewhere"};
  const std::array<Needed, 1> needed = {{{"autovideosink", "gstreamer1.0-plugins-good"}}};
  MDFS_TRY(require_elements(needed));
  return std::string("autovideosink name=screen");
}

// autovideosink takes a sink that drops frames where no other works.
Status check_sink(const Pipeline& pipeline) {
  const auto screen = pipeline.element("screen");
  if (screen == nullptr) return {};
  bool drops = false;
  GstIterator* const inside = gst_bin_iterate_recurse(GST_BIN(screen.get()));
  GValue item = G_VALUE_INIT;
  while (gst_iterator_next(inside, &item) == GST_ITERATOR_OK) {
    GstElementFactory* const factory = gst_element_get_factory(GST_ELEMENT(g_value_get_object(&item)));
    if (factory != nullptr) drops |= std::string_view(GST_OBJECT_NAME(factory)).starts_with("fake");
    g_value_reset(&item);
  }
  g_value_unset(&item);
  gst_iterator_free(inside);
  if (!drops) return {};
  return Error{Errc::kNoDevice, fmt::format("GStreamer cannot show frames on this screen (DISPLAY={}, "
                                            "WAYLAND_DISPLAY={}): install gstreamer1.0-x or gstreamer1.0-gl",
                                            is_set("DISPLAY") ? std::getenv("DISPLAY") : "",
                                            is_set("WAYLAND_DISPLAY") ? std::getenv("WAYLAND_DISPLAY") : "")};
}

Status play(const PlayOptions& options) {
  MDFS_TRY(require_elements(kToShow));
  MDFS_TRY_ASSIGN(const std::string sink, sink_of(options.sink));
  MDFS_TRY_ASSIGN(const auto pipeline, Pipeline::parse("mdfssrc name=source ! videoconvert ! " + sink));
  MDFS_TRY(set_movie(*pipeline, options.movie));
  MDFS_TRY(pipeline->reach(GST_STATE_PAUSED));
  MDFS_TRY(check_sink(*pipeline));
  MDFS_TRY(pipeline->run());
  return {};
}

Status wall(const WallOptions& options) {
  MDFS_TRY_ASSIGN(const WallLayout layout, read_wall_layout(options.layout));
  MDFS_TRY(require_elements(kToShow));
  return options.panel.empty() ? control_wall(options, layout) : show_panel(options, layout);
}

}  // namespace mdfs::film

extern "C" __attribute__((visibility("default"))) const mdfs::film::Module mdfs_film_module;
const mdfs::film::Module mdfs_film_module = {MDFS_VERSION_STRING, mdfs::film::play, mdfs::film::send,
                                             mdfs::film::receive, mdfs::film::wall};
