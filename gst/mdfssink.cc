// The element mdfssink: stores raw video as a new image on a mounted MDFS volume.
//
// The streaming thread of GstBaseSink sets the caps, renders frames and handles the end; other threads set properties.
// SPDX-License-Identifier: Apache-2.0
#include <gst/base/gstbasesink.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include <cerrno>
#include <exception>
#include <memory>
#include <string>

#include "element.h"
#include "elements.h"
#include "new_image.h"
#include "pixels.h"

namespace mdfs::gst {

struct SinkSettings {
  std::string location;
  std::string codec = "zstd";
};

struct Sink {
  SinkSettings settings;            // guarded by the lock of the object
  std::unique_ptr<NewImage> image;  // from the first caps until the stop
};

}  // namespace mdfs::gst

using namespace mdfs::gst;

struct MdfsSink {
  GstBaseSink parent;
  Sink* sink;  // owned
};
struct MdfsSinkClass {
  GstBaseSinkClass parent_class;
};

G_DEFINE_TYPE(MdfsSink, mdfs_sink, GST_TYPE_BASE_SINK)
GST_ELEMENT_REGISTER_DEFINE(mdfssink, "mdfssink", GST_RANK_NONE, mdfs_sink_get_type())

namespace {

enum SinkProperty { kSinkLocation = 1, kSinkCodec };

Sink& sink_of(gpointer object) { return *static_cast<MdfsSink*>(object)->sink; }

SinkSettings settings_of(gpointer object) {
  const ObjectLock lock(object);
  return sink_of(object).settings;
}

gboolean refuse(GstBaseSink* base, const std::string& complaint) {
  GST_ELEMENT_ERROR(base, RESOURCE, OPEN_WRITE, ("%s", complaint.c_str()), (nullptr));
  return FALSE;
}

gboolean refuse(GstBaseSink* base, const std::exception& failure) {
  GST_ELEMENT_ERROR(base, RESOURCE, FAILED, ("the image cannot be made: %s", failure.what()), (nullptr));
  return FALSE;
}

void set_sink_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  if (id == kSinkLocation)
    sink_of(object).settings.location = string_of(value);
  else if (id == kSinkCodec)
    sink_of(object).settings.codec = string_of(value);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void get_sink_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  const ObjectLock lock(object);
  if (id == kSinkLocation)
    g_value_set_string(value, sink_of(object).settings.location.c_str());
  else if (id == kSinkCodec)
    g_value_set_string(value, sink_of(object).settings.codec.c_str());
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

// What can be known before the first frame is refused here, where the change of state fails at once.
gboolean start_sink(GstBaseSink* base) try {
  const SinkSettings settings = settings_of(base);
  const std::string complaint = complaint_about_new(settings.location, settings.codec);
  return complaint.empty() ? TRUE : refuse(base, complaint);
} catch (const std::exception& failure) {
  return refuse(base, failure);
}

gboolean stop_sink(GstBaseSink* base) {
  sink_of(base).image.reset();
  return TRUE;
}

// The first caps make the image; others must be the same.
gboolean set_caps(GstBaseSink* base, GstCaps* caps) try {
  Sink& sink = sink_of(base);
  GstVideoInfo info;
  if (!gst_video_info_from_caps(&info, caps)) return FALSE;
  if (sink.image != nullptr) {
    if (gst_video_info_is_equal(&info, &sink.image->info())) return TRUE;
    GST_ELEMENT_ERROR(base, STREAM, FORMAT, ("the frames change their format: an image has frames of one format"),
                      (nullptr));
    return FALSE;
  }
  const SinkSettings settings = settings_of(base);
  std::string error;
  sink.image = NewImage::create(settings.location, settings.codec, info, error);
  return sink.image != nullptr ? TRUE : refuse(base, error);
} catch (const std::exception& failure) {
  return refuse(base, failure);
}

void report(GstBaseSink* base, int number, const std::string& error) {
  if (number == ENOSPC || number == EDQUOT)
    GST_ELEMENT_ERROR(base, RESOURCE, NO_SPACE_LEFT, ("%s", error.c_str()), (nullptr));
  else
    GST_ELEMENT_ERROR(base, RESOURCE, WRITE, ("%s", error.c_str()), (nullptr));
}

GstFlowReturn render(GstBaseSink* base, GstBuffer* buffer) {
  Sink& sink = sink_of(base);
  if (sink.image == nullptr) return GST_FLOW_NOT_NEGOTIATED;
  std::string error;
  const int number = sink.image->append(buffer, error);
  if (number == 0) return GST_FLOW_OK;
  report(base, number, error);
  return GST_FLOW_ERROR;
}

// At the end all frames are on the disks before the message of the end is posted.
gboolean handle_sink_event(GstBaseSink* base, GstEvent* event) {
  Sink& sink = sink_of(base);
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS && sink.image != nullptr) {
    std::string error;
    if (const int number = sink.image->sync(error); number != 0) {
      report(base, number, error);
      gst_event_unref(event);
      return FALSE;
    }
  }
  return GST_BASE_SINK_CLASS(mdfs_sink_parent_class)->event(base, event);
}

void finalize_sink(GObject* object) {
  delete static_cast<MdfsSink*>(static_cast<gpointer>(object))->sink;
  G_OBJECT_CLASS(mdfs_sink_parent_class)->finalize(object);
}

}  // namespace

static void mdfs_sink_class_init(MdfsSinkClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = set_sink_property;
  object->get_property = get_sink_property;
  object->finalize = finalize_sink;
  const auto writable = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
  g_object_class_install_property(
      object, kSinkLocation,
      g_param_spec_string("location", "Location", "Path of the new image on a mounted volume", nullptr, writable));
  g_object_class_install_property(object, kSinkCodec,
                                  g_param_spec_string("codec", "Codec", "raw, zstd or zstd:LEVEL", "zstd", writable));

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(element, "MDFS sink", "Sink/Video/File",
                                        "Stores raw video as a new image on a mounted MDFS volume", "mdfs");
  add_video_pad(element, "sink", GST_PAD_SINK);

  GstBaseSinkClass* base = GST_BASE_SINK_CLASS(klass);
  base->start = start_sink;
  base->stop = stop_sink;
  base->set_caps = set_caps;
  base->render = render;
  base->event = handle_sink_event;
}

static void mdfs_sink_init(MdfsSink* self) {
  self->sink = new Sink;
  gst_base_sink_set_sync(GST_BASE_SINK(self), FALSE);
}
