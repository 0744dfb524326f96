// Idle encoders, kept to be reused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "codec/codec.h"

namespace mdfs::engine {

// Small encoders wait here for the next extent, up to a bound on their sum. An encoder of each thread would live as
// long as the thread, with tables for the largest extent that it has encoded. Any thread.
class IdleEncoders {
 public:
  IdleEncoders(std::size_t most_of_one, std::size_t most_in_all)
      : most_of_one_(most_of_one), most_in_all_(most_in_all) {}

  codec::Encoder take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        codec::Encoder encoder = std::move(idle_.back());
        idle_.pop_back();
        bytes_ -= encoder.bytes();
        return encoder;
      }
    }
    return {};
  }
  void give_back(codec::Encoder encoder) {
    const std::size_t bytes = encoder.bytes();
    const std::lock_guard lock(mutex_);
    if (bytes > most_of_one_ || bytes_ + bytes > most_in_all_) return;
    bytes_ += bytes;
    idle_.push_back(std::move(encoder));
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  const std::size_t most_of_one_;
  const std::size_t most_in_all_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<codec::Encoder> idle_;
  std::size_t bytes_ = 0;
};

}  // namespace mdfs::engine
