// The engine against queueing theory, conservation, and itself under reversed ties.
// SPDX-License-Identifier: Apache-2.0
#include "model/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "queueing_theory.h"
#include "sim/statistics.h"
#include "sim/system.h"

namespace mdfs::sim {
namespace {

// One station, Poisson arrivals.
class Queue final : public Listener {
 public:
  Queue(unsigned servers, double rate, double service, bool exponential, std::uint64_t seed)
      : engine_(1, seed), rate_(rate), service_(service), exponential_(exponential) {
    station_ = engine_.add_station(servers);
  }

  void run(unsigned jobs) {
    left_ = jobs;
    arrival_.reserve(jobs);
    engine_.alarm(0, 0);
    engine_.run(*this);
  }
  void alarm(Engine& engine, std::uint64_t) override {
    const double service = exponential_ ? engine.random().exponential(service_) : service_;
    const Step step{.station = station_, .service_s = service};
    arrival_.push_back(engine.now_s());
    engine.start({&step, 1}, arrival_.size() - 1);
    if (--left_ > 0) engine.alarm(engine.now_s() + engine.random().exponential(1 / rate_), 0);
  }
  void job_done(Engine& engine, std::uint64_t token) override { sojourn_.push_back(engine.now_s() - arrival_[token]); }

  Engine engine_;
  std::uint32_t station_ = 0;
  const double rate_;
  const double service_;
  const bool exponential_;
  unsigned left_ = 0;
  std::vector<double> arrival_;
  std::vector<double> sojourn_;
};

// Mean over replications: theory lies within twice the half width of its interval, and that is narrow.
void expect_theory(unsigned servers, double load, bool exponential, double theory) {
  constexpr double kService = 0.010;
  std::vector<double> means;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Queue queue(servers, load * servers / kService, kService, exponential, seed);
    queue.run(30000);
    means.push_back(summarize(queue.sojourn_).mean);
  }
  const Interval interval = confidence_interval(means);
  EXPECT_NEAR(interval.mean, theory, 2 * interval.half_width);
  EXPECT_LT(interval.half_width, 0.05 * theory);
}

TEST(EngineTest, ConstantServiceAgreesWithPollaczekAndKhinchine) {
  for (const double load : {0.3, 0.6, 0.8}) expect_theory(1, load, false, md1_sojourn_s(load / 0.010, 0.010));
}

TEST(EngineTest, ExponentialServiceAgreesWithMM1) {
  for (const double load : {0.3, 0.6, 0.8}) expect_theory(1, load, true, 0.010 / (1 - load));
}

TEST(EngineTest, FourServersAgreeWithErlangC) {
  for (const double load : {0.3, 0.6, 0.8}) expect_theory(4, load, true, mmc_sojourn_s(load * 4 / 0.010, 0.010, 4));
}

TEST(EngineTest, LittlesLawHoldsExactly) {
  Queue queue(3, 250, 0.010, true, 7);
  queue.run(20000);
  const StationStatistics statistics = queue.engine_.statistics(queue.station_);
  double sum = 0;
  for (const double sojourn : queue.sojourn_) sum += sojourn;
  // Time in the system, summed over jobs, is the number in the system, integrated over time.
  EXPECT_NEAR((statistics.busy_s + statistics.queue_area_s) / sum, 1, 1e-9);
}

TEST(EngineTest, EveryJobLeaves) {
  Queue queue(2, 180, 0.010, true, 3);
  queue.run(5000);
  const StationStatistics statistics = queue.engine_.statistics(queue.station_);
  EXPECT_EQ(queue.sojourn_.size(), 5000U);
  EXPECT_EQ(statistics.started, 5000U);
  EXPECT_EQ(statistics.served, 5000U);
  EXPECT_EQ(queue.engine_.events(), 10000U);
}

TEST(EngineTest, TheSameSeedGivesTheSameTimesBitForBit) {
  Queue a(2, 180, 0.010, true, 3);
  Queue b(2, 180, 0.010, true, 3);
  a.run(5000);
  b.run(5000);
  EXPECT_EQ(a.sojourn_, b.sojourn_);
}

// Jobs over two stations, all at once; remembers when each was done.
class Tandem final : public Listener {
 public:
  explicit Tandem(TieOrder ties) : engine_(2, 1, ties) {
    engine_.add_station(1);
    engine_.add_station(1);
  }
  void alarm(Engine& engine, std::uint64_t token) override {
    const std::vector<Step> steps = {{.station = 0, .service_s = 0.25}, {.station = 1, .service_s = 0.25}};
    engine.start(steps, token);
  }
  void job_done(Engine& engine, std::uint64_t) override { done_.push_back(engine.now_s()); }
  Engine engine_;
  std::vector<double> done_;
};

TEST(EngineTest, ReversedTiesChangeNoTime) {
  std::vector<std::vector<double>> done;
  for (const TieOrder ties : {TieOrder::kInsertion, TieOrder::kReversed}) {
    Tandem tandem(ties);
    for (std::uint64_t job = 0; job < 8; ++job) tandem.engine_.alarm(0.5 * static_cast<double>(job / 4), job);
    tandem.engine_.run(tandem);
    done.push_back(tandem.done_);
  }
  EXPECT_EQ(done[0], done[1]);
  EXPECT_EQ(done[0].size(), 8U);
}

TEST(EngineTest, FirstComeIsFirstServed) {
  struct Order final : Listener {
    void alarm(Engine&, std::uint64_t) override {}
    void job_done(Engine&, std::uint64_t token) override { tokens.push_back(token); }
    std::vector<std::uint64_t> tokens;
  };
  Engine engine(1, 1);
  engine.add_station(1);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const Step step{.station = 0, .service_s = 5.0 - static_cast<double>(i)};
    engine.start({&step, 1}, i);
  }
  Order order;
  engine.run(order);
  EXPECT_EQ(order.tokens, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(engine.statistics(0).max_queue, 4U);
}

TEST(EngineTest, AHeadPaysForDistanceAndNothingForTheNextAddress) {
  struct Nothing final : Listener {
    void alarm(Engine&, std::uint64_t) override {}
    void job_done(Engine& engine, std::uint64_t) override { done.push_back(engine.now_s()); }
    std::vector<double> done;
  };
  Engine engine(1, 1);
  engine.add_station(1, model::Head{.track_s = 1, .stroke_s = 3, .rotation_s = 0, .capacity_bytes = 400});
  for (const double address : {0.0, 100.0, 300.0}) {
    const Step step{.station = 0, .service_s = 0, .address_bytes = address, .length_bytes = 100};
    engine.start({&step, 1}, 0);
  }
  Nothing nothing;
  engine.run(nothing);
  EXPECT_EQ(nothing.done, (std::vector<double>{0, 0, 2}));  // 100 of 400: 1 + 2 * sqrt(1/4)
}

}  // namespace
}  // namespace mdfs::sim
