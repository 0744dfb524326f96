// Shared parts of elements.
// SPDX-License-Identifier: Apache-2.0
#include "element.h"

#include "pixels.h"

namespace mdfs::gst {

std::string string_of(const GValue* value) {
  const char* text = g_value_get_string(value);
  return text == nullptr ? "" : text;
}

void add_pad_template(GstElementClass* element, const char* name, GstPadDirection direction, const char* caps) {
  GstCaps* allowed = gst_caps_from_string(caps);
  gst_element_class_add_pad_template(element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, allowed));
  gst_caps_unref(allowed);
}

void add_video_pad(GstElementClass* element, const char* name, GstPadDirection direction) {
  const std::string text = std::string("video/x-raw, format=(string)") + kFormatNames +
                           ", width=(int)[ 1, max ], height=(int)[ 1, max ], framerate=(fraction)[ 0/1, max ]";
  add_pad_template(element, name, direction, text.c_str());
}

GstPad* add_packet_pads(gpointer element, GstPadChainFunction chain, GstPadEventFunction event) {
  GstElementClass* const templates = GST_ELEMENT_GET_CLASS(element);
  const auto make = [&](const char* name) {
    return gst_pad_new_from_template(gst_element_class_get_pad_template(templates, name), name);
  };
  GstPad* const sink = make("sink");
  GstPad* const source = make("src");
  gst_pad_set_chain_function(sink, chain);
  gst_pad_set_event_function(sink, event);
  gst_pad_use_fixed_caps(source);
  for (GstPad* const pad : {sink, source}) gst_element_add_pad(GST_ELEMENT(element), pad);
  return source;
}

}  // namespace mdfs::gst
