// The condition of a disk that may take long to answer: one question for all who ask at the same time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "device/disk.h"

namespace mdfs::device {

class SharedLook {
 public:
  using Ask = std::function<Result<Condition>()>;

  // `ask` is called by a thread of its own. `first`: the answer until there is another one.
  SharedLook(Ask ask, const Condition& first, std::chrono::milliseconds patience);
  // Waits for the question that is under way.
  ~SharedLook();
  SharedLook(const SharedLook&) = delete;
  SharedLook& operator=(const SharedLook&) = delete;

  // The answer to a question that is asked after this call began. Without one within `patience`: the last answer. Any
  // thread.
  Result<Condition> condition();

 private:
  void run();

  const Ask ask_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::uint64_t wanted_ = 0, begun_ = 0, answered_ = 0;  // questions, by number
  Result<Condition> last_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mdfs::device
