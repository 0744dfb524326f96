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

}  // namespace mdfs::gst
