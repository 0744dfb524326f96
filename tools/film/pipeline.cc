// Pipelines: errors as values, signals, ends.
// SPDX-License-Identifier: Apache-2.0
#include "pipeline.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>

namespace mdfs::film {
namespace {

constexpr GstClockTime kLookForSignals = 50 * GST_MSECOND;
constexpr auto kTimeToEnd = std::chrono::seconds(10);  // for what is under way, after a signal

struct MessageDeleter {
  void operator()(GstMessage* message) const { gst_message_unref(message); }
};
using MessagePtr = std::unique_ptr<GstMessage, MessageDeleter>;

Error error_of(GstMessage* message) {
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  const bool refuses = error->domain == GST_LIBRARY_ERROR ||
                       g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ) ||
                       g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_WRITE);
  // Elements of MDFS name what they complain about.
  const std::string_view element = GST_MESSAGE_SRC_NAME(message);
  const std::string what =
      element == "source" || element == "store" ? error->message : fmt::format("{}: {}", element, error->message);
  const Error made{refuses ? Errc::kInvalidArgument : Errc::kIo, what};
  g_error_free(error);
  return made;
}

// A sink says it so when the user closes its window.
bool is_closed_window(GstMessage* message) {
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  const bool closed = g_error_matches(error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND) &&
                      std::string_view(error->message).find("window was closed") != std::string_view::npos;
  g_error_free(error);
  return closed;
}

// decodebin says it so when the stream ends before the first frame.
bool is_end_without_frames(GstMessage* message) {
  GError* error = nullptr;
  gst_message_parse_error(message, &error, nullptr);
  const bool ended = g_error_matches(error, GST_STREAM_ERROR, GST_STREAM_ERROR_TYPE_NOT_FOUND);
  g_error_free(error);
  return ended;
}

bool has_element(const char* name) {
  const ObjectPtr<GstElementFactory> factory(gst_element_factory_find(name));
  return factory != nullptr;
}

// GStreamer does not look for plugins below the prefix of MDFS, unless that is its own.
void look_beside_module() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&look_beside_module), &self) == 0) return;
  std::error_code failure;
  const std::filesystem::path module = std::filesystem::canonical(self.dli_fname, failure);
  const std::filesystem::path plugins = module.parent_path().parent_path() / "gstreamer-1.0";
  if (!failure && std::filesystem::is_directory(plugins, failure))
    gst_registry_scan_path(gst_registry_get(), plugins.c_str());
}

}  // namespace

Status require_elements(std::span<const Needed> elements) {
  GError* error = nullptr;
  if (!gst_init_check(nullptr, nullptr, &error)) {
    const Error made{Errc::kNotSupported, fmt::format("GStreamer does not start: {}", error->message)};
    g_error_free(error);
    return made;
  }
  if (!has_element("mdfssrc")) look_beside_module();
  for (const Needed& needed : elements)
    if (!has_element(needed.element))
      return Error{Errc::kNotSupported,
                   fmt::format("GStreamer has no element {}: install {}", needed.element, needed.package)};
  return {};
}

Result<std::unique_ptr<Pipeline>> Pipeline::parse(const std::string& description) {
  GError* error = nullptr;
  GstElement* const parsed = gst_parse_launch_full(description.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (error != nullptr) {
    const Error made{Errc::kInvalidArgument, fmt::format("{}: {}", description, error->message)};
    g_error_free(error);
    return made;
  }
  return std::unique_ptr<Pipeline>(new Pipeline(static_cast<GstElement*>(gst_object_ref_sink(parsed))));
}

Pipeline::~Pipeline() { gst_element_set_state(pipeline_.get(), GST_STATE_NULL); }

ObjectPtr<GstElement> Pipeline::element(const char* name) const {
  return ObjectPtr<GstElement>(gst_bin_get_by_name(GST_BIN(pipeline_.get()), name));
}

Status Pipeline::reach(GstState state) {
  gst_element_set_state(pipeline_.get(), state);
  while (true) {
    // Errors come before the end of a wait for a state that fails.
    const MessagePtr message(gst_bus_pop_filtered(bus_.get(), GST_MESSAGE_ERROR));
    if (message != nullptr) return error_of(message.get());
    const GstStateChangeReturn done = gst_element_get_state(pipeline_.get(), nullptr, nullptr, kLookForSignals);
    if (done == GST_STATE_CHANGE_SUCCESS || done == GST_STATE_CHANGE_NO_PREROLL) return {};
    if (done == GST_STATE_CHANGE_FAILURE) {
      const MessagePtr reason(gst_bus_pop_filtered(bus_.get(), GST_MESSAGE_ERROR));
      return reason != nullptr ? error_of(reason.get()) : Error{Errc::kIo, "a pipeline of GStreamer does not start"};
    }
    if (tools::Interruption::asked()) return tools::stopped_by_signal();
  }
}

Result<std::optional<Ending>> Pipeline::look() {
  constexpr auto kEnds = static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS);
  const MessagePtr message(gst_bus_pop_filtered(bus_.get(), kEnds));
  if (message == nullptr) return std::optional<Ending>();
  if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return std::optional(Ending::kEnd);
  if (is_closed_window(message.get())) return std::optional(Ending::kClosed);
  return error_of(message.get());
}

Result<Ending> Pipeline::run(const std::function<bool()>& timed_out) {
  gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
  constexpr auto kMessages = static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS | GST_MESSAGE_ELEMENT);
  std::optional<Ending> why;
  std::chrono::steady_clock::time_point asked_at;
  const auto end = [&](Ending ending) {
    why = ending;
    asked_at = std::chrono::steady_clock::now();
    gst_element_send_event(pipeline_.get(), gst_event_new_eos());
  };
  while (true) {
    const MessagePtr message(gst_bus_timed_pop_filtered(bus_.get(), kLookForSignals, kMessages));
    if (message != nullptr && GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return why.value_or(Ending::kEnd);
    if (message != nullptr && GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_ERROR) {
      if (is_closed_window(message.get())) return Ending::kClosed;
      if (is_end_without_frames(message.get())) return why.value_or(Ending::kEnd);
      return error_of(message.get());
    }
    if (message != nullptr && !why && timed_out && gst_message_has_name(message.get(), "GstUDPSrcTimeout") &&
        timed_out())
      end(Ending::kTimedOut);
    if (!why && tools::Interruption::asked()) end(Ending::kSignal);
    if (why && std::chrono::steady_clock::now() - asked_at > kTimeToEnd) return *why;
  }
}

}  // namespace mdfs::film
