// Turns requests into transfers of the io_uring.
// SPDX-License-Identifier: Apache-2.0
#include "device/uring_disk.h"

#include <utility>

#include "device/request.h"

namespace mdfs::device {
namespace {

// Buffers that lie behind one another in memory become one vector.
std::vector<iovec> to_vectors(const std::vector<MutableBytes>& buffers) {
  std::vector<iovec> vectors;
  vectors.reserve(buffers.size());
  for (const auto& buffer : buffers) {
    if (!vectors.empty() &&
        static_cast<std::byte*>(vectors.back().iov_base) + vectors.back().iov_len == buffer.data()) {
      vectors.back().iov_len += buffer.size();
    } else {
      vectors.push_back({buffer.data(), buffer.size()});
    }
  }
  return vectors;
}

}  // namespace

UringDisk::UringDisk(std::shared_ptr<UringContext> context, UniqueFd fd, Properties properties)
    : context_(std::move(context)), fd_(std::move(fd)), properties_(std::move(properties)) {}

void UringDisk::submit(std::span<Io* const> batch) {
  std::vector<std::unique_ptr<UringContext::Transfer>> transfers;
  transfers.reserve(batch.size());
  for (Io* io : batch) {
    if (auto status = check_request(*this, *io); !status.ok()) {
      complete(*io, std::move(status));
      continue;
    }
    auto transfer = std::make_unique<UringContext::Transfer>();
    transfer->io = io;
    transfer->fd = fd_.get();
    transfer->disk = &properties_.name;
    transfer->block_device = properties_.block_device;
    transfer->vectors = to_vectors(io->buffers);
    transfer->offset = io->offset;
    transfer->left = io->bytes();
    transfers.push_back(std::move(transfer));
  }
  context_->start(transfers);
}

}  // namespace mdfs::device
