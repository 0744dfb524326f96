// A modelled machine in real time: its disks, links and processors serve requests as in the simulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "device/disk.h"
#include "device/waiter.h"
#include "model/engine.h"
#include "model/route.h"

namespace mdfs::device {

// Statistics of one component since the start: a queue with its servers.
struct ComponentUse {
  std::string name;
  unsigned instance = 0;
  unsigned servers = 1;
  std::uint64_t served = 0;
  double busy_s = 0;       // summed over its servers
  double utilization = 0;  // of all its servers
  double mean_queue = 0;   // waiting, not in service
  std::uint64_t max_queue = 0;
};

// Statistics of one disk.
struct ModelledDiskUse {
  std::string name;
  std::uint64_t reads = 0, writes = 0;
  std::uint64_t read_bytes = 0, written_bytes = 0;
  double delay_s = 0;              // modelled, from submission to completion, summed over those completed
  double max_delay_s = 0;          // of one request
  std::uint64_t max_requests = 0;  // in progress at the same time
  // Requests for which the real disk was slower than the modelled one, so that the answer came late.
  std::uint64_t late = 0;
  double max_late_s = 0;
};

struct ModelledReport {
  std::string machine;
  std::string hash;
  double seconds = 0;  // since the start
  std::vector<ModelledDiskUse> disks;
  std::vector<ComponentUse> components;  // by resource of the machine, then instance
};

// Text with a line for each disk and component.
std::string report_text(const ModelledReport& report);

// Shared by the ModelledDisks of a volume. Requests visit the machine's stages for extents, in order; full and part are
// the bytes of the request. Stages of whole windows, the placement, `outstanding` and the image of the machine are
// ignored, because a disk sees no windows. One thread sleeps until the next event, and calls `done`.
class ModelledMachine {
 public:
  // kInvalidArgument: a machine without stages for extents. `waiter` must outlive the machine.
  static Result<std::shared_ptr<ModelledMachine>> start(const model::Machine& machine, unsigned disks,
                                                        std::uint64_t seed, Waiter& waiter);
  ~ModelledMachine();
  ModelledMachine(const ModelledMachine&) = delete;
  ModelledMachine& operator=(const ModelledMachine&) = delete;

  unsigned disks() const { return route_.disks(); }
  ModelledReport report();

 private:
  friend class ModelledDisk;

  // A request in progress. It ends when both the model and the disk below are done with it.
  struct Pending {
    ModelledMachine* machine = nullptr;
    unsigned disk = 0;
    Io* outer = nullptr;
    Io inner;
    // Guarded by mutex_.
    double submitted_s = 0;
    double due_s = 0;  // set when the model is done
    bool model_done = false;
    bool transfer_done = false;
  };
  // Collects the jobs of the engine that end.
  struct Collector final : model::Listener {
    std::vector<Pending*> ended;
    void job_done(model::Engine& engine, std::uint64_t token) override;
    void alarm(model::Engine&, std::uint64_t) override {}
  };

  ModelledMachine(const model::Machine& machine, unsigned disks, std::uint64_t seed, Waiter& waiter);
  void set_disk(unsigned disk, const std::string& name, std::uint64_t size_bytes);
  // Adds the requests to the model, in this order. The caller starts the transfers.
  void enter(std::span<const std::unique_ptr<Pending>> batch);
  void transfer_ended(Pending& pending);

  void loop();
  void advance();  // runs the engine up to now; the caller holds mutex_
  double seconds(std::int64_t now_ns) const { return static_cast<double>(now_ns - start_ns_) * 1e-9; }
  std::int64_t deadline_ns(double at_s) const;
  void count_late(Pending& pending);
  static void finish(Pending& pending);

  const model::Route route_;
  Waiter& waiter_;
  const std::int64_t start_ns_;

  std::mutex mutex_;  // guards all below
  model::Engine engine_;
  Collector collector_;
  std::vector<model::Step> steps_;
  std::vector<ModelledDiskUse> use_;
  std::vector<std::uint64_t> under_way_;  // requests in progress, by disk
  std::vector<double> head_scale_;        // by disk: model bytes for a byte of the disk below
  std::int64_t waits_until_ns_ = 0;       // end of the thread's sleep
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace mdfs::device
