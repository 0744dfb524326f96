// Fuzz target: lines of traces.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "model/trace.h"

using namespace mdfs;

namespace {

// As a reader of files sees it: without the end of the line.
Result<model::TraceLine> parse_again(std::string line) {
  MDFS_CHECK(line.ends_with('\n'));
  line.pop_back();
  return model::parse_trace_line(line);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto line = model::parse_trace_line(as_text(fuzz::input(data, size)));
  if (!line.ok()) return 0;
  if (const auto* image = std::get_if<model::TraceImage>(&*line)) {
    const auto again = parse_again(model::to_line(*image));
    MDFS_CHECK(again.ok() && std::get_if<model::TraceImage>(&*again) != nullptr);
    MDFS_CHECK(std::get<model::TraceImage>(*again).geometry == image->geometry);
  } else if (const auto* request = std::get_if<model::TraceRequest>(&*line)) {
    const auto again = parse_again(model::to_line(*request));
    MDFS_CHECK(again.ok() && std::get_if<model::TraceRequest>(&*again) != nullptr);
    MDFS_CHECK(std::get<model::TraceRequest>(*again).window == request->window);
  }
  return 0;
}
