// The element mdfssrc: plays an image on a mounted MDFS volume as raw video.
//
// The streaming thread of GstBaseSrc calls create(); other threads seek, ask and set properties. GstBaseSrc keeps a
// seek and create() apart. The threads of a FrameSupply have the frames read.
// SPDX-License-Identifier: Apache-2.0
#include <gst/base/gstpushsrc.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "element.h"
#include "elements.h"
#include "frame_supply.h"
#include "frame_times.h"
#include "lookahead.h"
#include "movie_stream.h"
#include "open_movie.h"
#include "reserved_frames.h"
#include "settings.h"

namespace mdfs::gst {

constexpr std::size_t kReaders = 4;  // threads; each read keeps all disks busy

// What the sink has last said about late frames, in running time.
struct Lateness {
  GstClockTime earliest = GST_CLOCK_TIME_NONE;  // frames before it are too late
  GstClockTimeDiff jitter = 0;
  double proportion = 1;
};

// Frames that are read as they are needed.
class OrdinaryFrames final : public FrameSupply<FrameRead> {
 public:
  OrdinaryFrames(const std::shared_ptr<const OpenMovie>& movie, std::uint64_t ahead)
      : lookahead_([movie](std::int64_t frame) { return movie->read(static_cast<std::uint64_t>(frame)); }, ahead,
                   std::min<std::uint64_t>(ahead, kReaders)) {}

  std::string set_speed(double) override { return {}; }
  void begin(const FrameOrder& order) override { lookahead_.begin(order); }
  std::optional<FrameRead> take(std::int64_t frame) override { return lookahead_.take(frame); }
  void interrupt(bool interrupted) override { lookahead_.interrupt(interrupted); }
  void resume() override {}

 private:
  Lookahead<FrameRead> lookahead_;
};

struct Source {
  // Guarded by the lock of the object.
  Settings settings;
  Lateness lateness;
  std::uint64_t dropped = 0;

  // From start to stop; a thread that uses them holds them.
  std::shared_ptr<const OpenMovie> movie;
  std::shared_ptr<FrameSupply<FrameRead>> supply;
  std::shared_ptr<StreamCounts> counts = std::make_shared<StreamCounts>();  // another one for each start

  // Of the streaming thread, and of a seek.
  FrameOrder order{0, -1, 1};  // that is still to be shown
  std::uint64_t shown = 0;
  bool after_gap = false;
};

}  // namespace mdfs::gst

using namespace mdfs::gst;

struct MdfsSrc {
  GstPushSrc parent;
  Source* source;  // owned
};
struct MdfsSrcClass {
  GstPushSrcClass parent_class;
};

G_DEFINE_TYPE(MdfsSrc, mdfs_src, GST_TYPE_PUSH_SRC)
GST_ELEMENT_REGISTER_DEFINE(mdfssrc, "mdfssrc", GST_RANK_NONE, mdfs_src_get_type())

namespace {

enum Property { kLocation = 1, kWindow, kLevel, kFps, kLookahead, kReserve, kCoarser, kDropped, kLate, kFromCoarser };

MdfsSrc* self_of(gpointer object) { return static_cast<MdfsSrc*>(object); }
Source& source_of(gpointer object) { return *self_of(object)->source; }

std::shared_ptr<const OpenMovie> movie_of(gpointer object) {
  const ObjectLock lock(object);
  return source_of(object).movie;
}
std::shared_ptr<FrameSupply<FrameRead>> supply_of(gpointer object) {
  const ObjectLock lock(object);
  return source_of(object).supply;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  Settings& settings = source_of(object).settings;
  switch (id) {
    case kLocation:
      settings.location = string_of(value);
      break;
    case kWindow:
      settings.window = string_of(value);
      break;
    case kLevel:
      settings.level = g_value_get_int(value);
      break;
    case kFps:
      settings.fps = {gst_value_get_fraction_numerator(value), gst_value_get_fraction_denominator(value)};
      break;
    case kLookahead:
      settings.lookahead = g_value_get_int(value);
      break;
    case kReserve:
      settings.reserve = g_value_get_boolean(value) != FALSE;
      break;
    case kCoarser:
      settings.coarser = g_value_get_boolean(value) != FALSE;
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  const Source& source = source_of(object);
  switch (id) {
    case kLocation:
      g_value_set_string(value, source.settings.location.c_str());
      break;
    case kWindow:
      g_value_set_string(value, source.settings.window.c_str());
      break;
    case kLevel:
      g_value_set_int(value, source.settings.level);
      break;
    case kFps:
      gst_value_set_fraction(value, source.settings.fps.numerator, source.settings.fps.denominator);
      break;
    case kLookahead:
      g_value_set_int(value, source.settings.lookahead);
      break;
    case kReserve:
      g_value_set_boolean(value, source.settings.reserve);
      break;
    case kCoarser:
      g_value_set_boolean(value, source.settings.coarser);
      break;
    case kDropped:
      g_value_set_uint64(value, source.dropped);
      break;
    case kLate:
      g_value_set_uint64(value, source.counts->late);
      break;
    case kFromCoarser:
      g_value_set_uint64(value, source.counts->coarser);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

// Null: `error` says why.
std::shared_ptr<FrameSupply<FrameRead>> supply_for(const std::shared_ptr<const OpenMovie>& movie,
                                                   const Settings& settings,
                                                   const std::shared_ptr<StreamCounts>& counts, std::string& error) {
  if (!settings.reserve)
    return std::make_shared<OrdinaryFrames>(movie, frames_ahead(settings, GST_VIDEO_INFO_SIZE(&movie->info())));
  std::unique_ptr<MovieStream> stream = MovieStream::open(movie, settings, counts, error);
  if (stream == nullptr) return nullptr;
  const unsigned ahead = stream->ahead();
  return std::make_shared<ReservedFrames<FrameRead>>(std::move(stream), ahead);
}

gboolean start(GstBaseSrc* base) try {
  Source& source = source_of(base);
  Settings settings;
  {
    const ObjectLock lock(base);
    settings = source.settings;
    source.dropped = 0;
  }
  std::string error;
  const std::shared_ptr<const OpenMovie> movie = OpenMovie::open(settings, error);
  if (movie == nullptr) {
    GST_ELEMENT_ERROR(base, RESOURCE, OPEN_READ, ("%s", error.c_str()), (nullptr));
    return FALSE;
  }
  const auto counts = std::make_shared<StreamCounts>();
  std::shared_ptr<FrameSupply<FrameRead>> supply = supply_for(movie, settings, counts, error);
  if (supply == nullptr) {
    GST_ELEMENT_ERROR(base, RESOURCE, BUSY, ("%s", error.c_str()), (nullptr));
    return FALSE;
  }
  source.shown = 0;
  const ObjectLock lock(base);
  source.movie = movie;
  source.supply = std::move(supply);
  source.counts = counts;
  return TRUE;
} catch (const std::exception& failure) {
  GST_ELEMENT_ERROR(base, RESOURCE, FAILED, ("the movie cannot be played: %s", failure.what()), (nullptr));
  return FALSE;
}

gboolean stop(GstBaseSrc* base) {
  std::shared_ptr<FrameSupply<FrameRead>> ended;  // without the lock: the end waits for reads
  const ObjectLock lock(base);
  ended = std::move(source_of(base).supply);
  source_of(base).movie.reset();
  return TRUE;
}

gboolean unlock(GstBaseSrc* base) {
  if (const auto supply = supply_of(base); supply != nullptr) supply->interrupt(true);
  return TRUE;
}

gboolean unlock_stop(GstBaseSrc* base) {
  if (const auto supply = supply_of(base); supply != nullptr) supply->interrupt(false);
  return TRUE;
}

gboolean is_seekable(GstBaseSrc*) { return TRUE; }

GstCaps* get_caps(GstBaseSrc* base, GstCaps* filter) {
  GstCaps* caps = nullptr;
  if (const auto movie = movie_of(base); movie != nullptr) {
    GstVideoInfo info = movie->info();
    caps = gst_video_info_to_caps(&info);
  }
  if (caps == nullptr) caps = gst_pad_get_pad_template_caps(GST_BASE_SRC_PAD(base));
  if (filter == nullptr) return caps;
  GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(caps);
  return both;
}

// Frames and times as events and queries have them: -1 is no value.
gint64 to_time(const Movie& movie, gint64 frame) {
  return frame < 0 ? -1 : static_cast<gint64>(begin_of(static_cast<std::uint64_t>(frame), movie.rate));
}
gint64 to_frame(const Movie& movie, gint64 time) {
  return time < 0 ? -1 : static_cast<gint64>(frame_at(static_cast<std::uint64_t>(time), movie.rate));
}

gboolean convert(const Movie& movie, GstQuery* query) {
  GstFormat from, to;
  gint64 value;
  gst_query_parse_convert(query, &from, &value, &to, nullptr);
  gint64 converted = value;
  if (from == GST_FORMAT_TIME && to == GST_FORMAT_DEFAULT)
    converted = to_frame(movie, value);
  else if (from == GST_FORMAT_DEFAULT && to == GST_FORMAT_TIME)
    converted = to_time(movie, value);
  else if (from != to)
    return FALSE;
  gst_query_set_convert(query, from, value, to, converted);
  return TRUE;
}

gboolean query(GstBaseSrc* base, GstQuery* asked) {
  const auto chain_up = [&] { return GST_BASE_SRC_CLASS(mdfs_src_parent_class)->query(base, asked); };
  const auto playing = movie_of(base);
  if (playing == nullptr) return chain_up();
  const Movie& movie = playing->movie();
  const auto frames = static_cast<gint64>(movie.frames);
  GstFormat format;
  switch (GST_QUERY_TYPE(asked)) {
    case GST_QUERY_CONVERT:
      return convert(movie, asked);
    case GST_QUERY_DURATION:
      gst_query_parse_duration(asked, &format, nullptr);
      if (format != GST_FORMAT_TIME && format != GST_FORMAT_DEFAULT) return chain_up();
      gst_query_set_duration(asked, format, format == GST_FORMAT_TIME ? to_time(movie, frames) : frames);
      return TRUE;
    case GST_QUERY_SEEKING:
      gst_query_parse_seeking(asked, &format, nullptr, nullptr, nullptr);
      if (format != GST_FORMAT_TIME && format != GST_FORMAT_DEFAULT) return chain_up();
      gst_query_set_seeking(asked, format, TRUE, 0, format == GST_FORMAT_TIME ? to_time(movie, frames) : frames);
      return TRUE;
    case GST_QUERY_FORMATS:
      gst_query_set_formats(asked, 2, GST_FORMAT_TIME, GST_FORMAT_DEFAULT);
      return TRUE;
    default:
      return chain_up();
  }
}

// A speed that cannot be had is refused before anything is given up. A seek to frames becomes one to times. A value
// that counts from the end is resolved here, since the end of a seek in frames is that of the movie.
gboolean prepare_seek_segment(GstBaseSrc* base, GstEvent* event, GstSegment* segment) {
  gdouble rate;
  GstFormat format;
  GstSeekFlags flags;
  GstSeekType start_type, stop_type;
  gint64 start_value, stop_value;
  gst_event_parse_seek(event, &rate, &format, &flags, &start_type, &start_value, &stop_type, &stop_value);
  const auto playing = movie_of(base);
  const auto supply = supply_of(base);
  if (const std::string refused = supply == nullptr ? "" : supply->set_speed(rate); !refused.empty()) {
    GST_ELEMENT_WARNING(base, RESOURCE, BUSY, ("%s", refused.c_str()), (nullptr));
    return FALSE;
  }
  if (format != GST_FORMAT_DEFAULT || playing == nullptr)
    return GST_BASE_SRC_CLASS(mdfs_src_parent_class)->prepare_seek_segment(base, event, segment);
  const Movie& movie = playing->movie();
  const auto frames = static_cast<gint64>(movie.frames);
  const auto resolve = [&](GstSeekType& type, gint64& value) {
    if (type == GST_SEEK_TYPE_NONE) return;
    if (type == GST_SEEK_TYPE_END) value = std::max<gint64>(frames + std::min<gint64>(value, 0), 0);
    value = to_time(movie, std::min(value, frames));
    type = GST_SEEK_TYPE_SET;
  };
  resolve(start_type, start_value);
  resolve(stop_type, stop_value);
  segment->duration = static_cast<guint64>(to_time(movie, frames));
  return gst_segment_do_seek(segment, rate, segment->format, flags, start_type, static_cast<guint64>(start_value),
                             stop_type, static_cast<guint64>(stop_value), nullptr);
}

gboolean do_seek(GstBaseSrc* base, GstSegment* segment) {
  const auto playing = movie_of(base);
  const auto supply = supply_of(base);
  if (playing == nullptr || supply == nullptr) return FALSE;
  Source& source = source_of(base);
  const Movie& movie = playing->movie();
  const bool backwards = segment->rate < 0;
  segment->duration = playing->duration_ns();
  segment->time = segment->start;
  source.order = order_of(backwards ? segment->start : segment->position,
                          segment->stop == GST_CLOCK_TIME_NONE ? segment->duration : segment->stop, backwards,
                          movie.frames, movie.rate);
  source.after_gap = false;
  supply->begin(source.order);
  const ObjectLock lock(base);
  source.lateness = {};
  return TRUE;
}

gboolean handle_event(GstBaseSrc* base, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_QOS) {
    Lateness now;
    GstClockTime timestamp;
    gst_event_parse_qos(event, nullptr, &now.proportion, &now.jitter, &timestamp);
    if (GST_CLOCK_TIME_IS_VALID(timestamp)) {
      // A late frame was late by the jitter: one that begins as much later again will be in time.
      const GstClockTimeDiff ahead = now.jitter > 0 ? 2 * now.jitter : now.jitter;
      now.earliest = ahead >= 0 || timestamp > static_cast<GstClockTime>(-ahead) ? timestamp + ahead : 0;
      const ObjectLock lock(base);
      source_of(base).lateness = now;
    }
  }
  return GST_BASE_SRC_CLASS(mdfs_src_parent_class)->event(base, event);
}

void post_dropped(GstBaseSrc* base, const Lateness& late, GstClockTime first, GstClockTime duration) {
  Source& source = source_of(base);
  const GstSegment& segment = base->segment;
  GstMessage* message =
      gst_message_new_qos(GST_OBJECT(base), FALSE, gst_segment_to_running_time(&segment, GST_FORMAT_TIME, first),
                          gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, first), first, duration);
  gst_message_set_qos_values(message, late.jitter, late.proportion, 1000000);
  gst_message_set_qos_stats(message, GST_FORMAT_DEFAULT, source.shown, source.dropped);
  gst_element_post_message(GST_ELEMENT(base), message);
}

// Frames that would come too late are left out, and are not read if no thread has begun to.
void skip_late(GstBaseSrc* base, const FrameRate& rate) {
  Source& source = source_of(base);
  Lateness late;
  {
    const ObjectLock lock(base);
    late = source.lateness;
  }
  if (!GST_CLOCK_TIME_IS_VALID(late.earliest)) return;
  const auto begins = [&](std::int64_t frame) { return begin_of(static_cast<std::uint64_t>(frame), rate); };
  const std::int64_t first = source.order.first;
  while (!source.order.is_empty()) {
    const GstClockTime running =
        gst_segment_to_running_time(&base->segment, GST_FORMAT_TIME, begins(source.order.first));
    if (!GST_CLOCK_TIME_IS_VALID(running) || running >= late.earliest) break;
    source.order.first += source.order.step;
  }
  const std::int64_t skipped = (source.order.first - first) * source.order.step;
  if (skipped == 0) return;
  source.after_gap = true;
  {
    const ObjectLock lock(base);
    source.dropped += static_cast<std::uint64_t>(skipped);
  }
  post_dropped(base, late, begins(first), begins(first + 1) - begins(first));
}

GstFlowReturn create(GstPushSrc* push, GstBuffer** buffer) {
  GstBaseSrc* base = GST_BASE_SRC(push);
  Source& source = source_of(base);
  const auto playing = movie_of(base);
  const auto supply = supply_of(base);
  if (playing == nullptr || supply == nullptr) return GST_FLOW_FLUSHING;
  const FrameRate& rate = playing->movie().rate;
  skip_late(base, rate);
  if (source.order.is_empty()) return GST_FLOW_EOS;
  const auto frame = static_cast<std::uint64_t>(source.order.first);
  std::optional<FrameRead> taken = supply->take(source.order.first);
  if (!taken) return GST_FLOW_FLUSHING;
  if (taken->buffer == nullptr) {
    GST_ELEMENT_ERROR(base, RESOURCE, READ, ("%s", taken->error.c_str()), (nullptr));
    return GST_FLOW_ERROR;
  }
  source.order.first += source.order.step;
  ++source.shown;
  *buffer = taken->buffer.release();
  GST_BUFFER_PTS(*buffer) = begin_of(frame, rate);
  GST_BUFFER_DTS(*buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION(*buffer) = begin_of(frame + 1, rate) - begin_of(frame, rate);
  GST_BUFFER_OFFSET(*buffer) = frame;
  GST_BUFFER_OFFSET_END(*buffer) = frame + 1;
  if (source.after_gap) GST_BUFFER_FLAG_SET(*buffer, GST_BUFFER_FLAG_DISCONT);
  source.after_gap = false;
  return GST_FLOW_OK;
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
  if (change == GST_STATE_CHANGE_PAUSED_TO_PLAYING)
    if (const auto supply = supply_of(element); supply != nullptr) supply->resume();
  return GST_ELEMENT_CLASS(mdfs_src_parent_class)->change_state(element, change);
}

void finalize(GObject* object) {
  delete self_of(object)->source;
  G_OBJECT_CLASS(mdfs_src_parent_class)->finalize(object);
}

void install_properties(GObjectClass* object) {
  const auto writable = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  const auto readable = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
  // Numbers have no limits here, since GObject leaves a value beyond them out with a warning; start() refuses it.
  g_object_class_install_property(
      object, kLocation,
      g_param_spec_string("location", "Location", "Path of the image on a mounted volume", nullptr, writable));
  g_object_class_install_property(
      object, kWindow,
      g_param_spec_string("window", "Window",
                          "Part of the image that is played, such as y90+180,x160+320; all of it if empty", nullptr,
                          writable));
  g_object_class_install_property(
      object, kLevel,
      g_param_spec_int("level", "Level", "Resolution level, 0 to 62; 0 is the image", G_MININT, G_MAXINT, 0, writable));
  g_object_class_install_property(
      object, kFps,
      gst_param_spec_fraction("fps", "Frame rate",
                              "Frames a second; 0/1: from the spacing of the frames if its unit is a time, else 24/1",
                              -G_MAXINT, 1, G_MAXINT, 1, 0, 1, writable));
  g_object_class_install_property(
      object, kLookahead,
      g_param_spec_int("lookahead", "Lookahead", "Frames that are read ahead, 1 to 256, of at most 1 GiB", G_MININT,
                       G_MAXINT, kDefaultLookahead, writable));
  g_object_class_install_property(
      object, kReserve,
      g_param_spec_boolean("reserve", "Reserve",
                           "The disks keep time for the frame rate, or the element does not start", FALSE, writable));
  g_object_class_install_property(
      object, kCoarser,
      g_param_spec_boolean("coarser", "Coarser",
                           "With reserve: frames that are short of time come from a coarser stored level", FALSE,
                           writable));
  g_object_class_install_property(
      object, kDropped,
      g_param_spec_uint64("dropped", "Dropped", "Frames left out since the start because they would come too late", 0,
                          G_MAXUINT64, 0, readable));
  g_object_class_install_property(
      object, kLate,
      g_param_spec_uint64("late", "Late", "With reserve: frames since the start that disks delivered late", 0,
                          G_MAXUINT64, 0, readable));
  g_object_class_install_property(
      object, kFromCoarser,
      g_param_spec_uint64("from-coarser", "From coarser",
                          "With reserve: frames since the start that came from a coarser level", 0, G_MAXUINT64, 0,
                          readable));
}

}  // namespace

static void mdfs_src_class_init(MdfsSrcClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  install_properties(object);

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(element, "MDFS source", "Source/Video/File",
                                        "Plays an image on a mounted MDFS volume as raw video", "mdfs");
  add_video_pad(element, "src", GST_PAD_SRC);
  element->change_state = change_state;

  GstBaseSrcClass* base = GST_BASE_SRC_CLASS(klass);
  base->start = start;
  base->stop = stop;
  base->unlock = unlock;
  base->unlock_stop = unlock_stop;
  base->is_seekable = is_seekable;
  base->get_caps = get_caps;
  base->query = query;
  base->prepare_seek_segment = prepare_seek_segment;
  base->do_seek = do_seek;
  base->event = handle_event;
  GST_PUSH_SRC_CLASS(klass)->create = create;
}

static void mdfs_src_init(MdfsSrc* self) {
  self->source = new Source;
  gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME);
  gst_base_src_set_live(GST_BASE_SRC(self), FALSE);
}
