// A pipeline of GStreamer that runs until its end, an error, or a signal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gst/gst.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "support/interruption.h"

namespace mdfs::film {

struct ObjectDeleter {
  void operator()(gpointer object) const { gst_object_unref(object); }
};
template <typename Type>
using ObjectPtr = std::unique_ptr<Type, ObjectDeleter>;

// An element, and the package of Debian that has it.
struct Needed {
  const char* element;
  const char* package;
};
// Starts GStreamer. kNotSupported: an element is not installed.
Status require_elements(std::span<const Needed> elements);

enum class Ending {
  kEnd,       // of the movie
  kSignal,    // SIGINT, SIGTERM, SIGHUP
  kClosed,    // the user has closed the window
  kTimedOut,  // nothing came
};

// While it exists, signals that end a program are only noted. The main thread alone has one, and calls the methods.
class Pipeline {
 public:
  // description: as of gst-launch-1.0.
  static Result<std::unique_ptr<Pipeline>> parse(const std::string& description);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  GstElement* get() const { return pipeline_.get(); }
  // The element of this name, which the description has.
  ObjectPtr<GstElement> element(const char* name) const;

  // What has happened since the last call, without waiting; nothing, or the end of the movie or of the window.
  Result<std::optional<Ending>> look();

  // Waits until the state is reached, but not for the first frame of a live source.
  Status reach(GstState state);
  // Plays. timed_out: asked when a source of datagrams has waited for its timeout in vain; true ends the pipeline. At a
  // signal, and then, the pipeline is ended as at the end of the movie, so that what has arrived is kept.
  Result<Ending> run(const std::function<bool()>& timed_out = {});

 private:
  explicit Pipeline(GstElement* pipeline) : pipeline_(pipeline), bus_(gst_element_get_bus(pipeline)) {}

  const tools::Interruption interruption_;
  const ObjectPtr<GstElement> pipeline_;
  const ObjectPtr<GstBus> bus_;
};

}  // namespace mdfs::film
