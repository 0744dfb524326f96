// mdfs-sim meter: transfers of a trace on a machine, counted as the Media Storage Meter does.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "geometry/decompose.h"
#include "meter/transfers.h"
#include "plot.h"
#include "support/transfers_json.h"
#include "traced_load.h"

namespace mdfs::tools {
namespace {

// The bytes of a window in the plain file, if they are one range there.
std::optional<std::uint64_t> first_byte(const geometry::Geometry& image, const geometry::Window& window) {
  const geometry::Coord shape = geometry::byte_geometry(image).shape;
  const geometry::Box box = geometry::byte_box(image, window);
  std::uint64_t offset = 0;
  bool is_whole = false;  // the axes so far need the whole of the next
  for (unsigned axis = 0; axis < image.rank; ++axis) {
    if (is_whole && box.length[axis] != shape[axis]) return std::nullopt;
    is_whole = is_whole || box.length[axis] > 1;
    offset = offset * shape[axis] + box.start[axis];
  }
  return window.channel ? std::nullopt : std::optional(offset);
}

meter::MeteredBlock block_of(const TracedLoad& load, std::size_t entry) {
  const sim::TraceEntry& asked = load.entries[entry];
  const model::TraceRequest& request = load.trace.requests[entry].request;
  const geometry::Geometry& image = *load.trace.images[asked.image].geometry;
  meter::MeteredBlock block;
  block.client = request.client;
  block.object = asked.image;
  block.write = asked.write;
  if (request.range) {
    block.first_byte = request.range->offset;
    block.bytes = request.range->length;
  } else {
    block.first_byte = first_byte(image, asked.windows.front());
    block.bytes = geometry::window_bytes(image, asked.windows.front());
  }
  return block;
}

// Over all replications.
meter::MeterReading read_meter(const TracedLoad& load) {
  std::vector<meter::MeteredBlock> blocks;
  for (std::size_t i = 0; i < load.entries.size(); ++i) blocks.push_back(block_of(load, i));
  meter::MeterReading reading;
  for (unsigned run = 0; run < load.replications; ++run) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const sim::TraceEntry& asked = load.entries[i];
      blocks[i].begin_s = asked.after ? std::max(asked.time_s, blocks[*asked.after].end_s) : asked.time_s;
      blocks[i].end_s = blocks[i].begin_s + load.result.delays_s[run * blocks.size() + i];
    }
    meter::add_transfers(blocks, reading);
  }
  return reading;
}

Status run_meter(const TraceOptions& options) {
  MDFS_TRY_ASSIGN(const TracedLoad load, run_trace(options));
  const meter::MeterReading reading = read_meter(load);
  Report report(options, "meter", &load.systems.front());
  describe(options, load, report);
  report.columns({"transfers", "count", "blocks", "bytes", "bytes_per_s", "mean_latency_s", "max_latency_s"});
  for (const meter::Kind kind : meter::kAllKinds) {
    const meter::Transfers& transfers = reading.of(kind);
    const char* const name = meter::name_of(kind);
    report.json()["transfers"][name] = transfers_json(transfers);
    report.row({name, std::to_string(transfers.count), std::to_string(transfers.blocks),
                std::to_string(transfers.bytes), number_text(transfers.rate()), number_text(transfers.mean_latency_s()),
                number_text(transfers.most_latency_s)});
  }
  report.resources(load.result.use);
  report.print();
  if (!options.plot.empty()) MDFS_TRY(write_figure(delay_figure("meter", load.result.delays_s), options.plot));
  return {};
}

}  // namespace

void add_meter_command(SimProgram& program) {
  auto options = std::make_shared<TraceOptions>();
  auto* command = program.app.add_subcommand("meter", "Count the transfers of a trace as the Media Storage Meter does");
  options->add_to(*command);
  command->callback([&program, options] { program.action = [options] { return run_meter(*options); }; });
}

}  // namespace mdfs::tools
