// An engine that keeps all data in memory.
// SPDX-License-Identifier: Apache-2.0
#include "fake_engine.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace mdfs::engine {

class Content {
 public:
  ContentSpec spec;
  InodeUpdate update;
  std::mutex mutex;  // guards the next two
  ByteVector bytes;
  bool dirty = false;
};

__attribute__((weak)) Result<bool> free_some_data(store::Transaction&, std::uint64_t,
                                                  const std::optional<geometry::Geometry>&, std::uint32_t) {
  return true;
}

}  // namespace mdfs::engine

namespace mdfs::test {
namespace {

using engine::Content;

class FakeEngine final : public engine::Engine {
 public:
  explicit FakeEngine(store::Store& store) : store_(store) {}

  Result<std::shared_ptr<Content>> open(const engine::ContentSpec& spec, engine::InodeUpdate update) override {
    const std::lock_guard lock(mutex_);
    auto content = std::make_shared<Content>();
    content->spec = spec;
    content->update = std::move(update);
    content->bytes = stored_[spec.object];
    content->bytes.resize(spec.size_bytes);
    open_[spec.object] = content;
    return content;
  }
  Status close(const std::shared_ptr<Content>& content) override {
    const Status status = write_back(*content);
    discard(content);
    return status;
  }
  void discard(const std::shared_ptr<Content>& content) override {
    const std::lock_guard lock(mutex_);
    open_.erase(content->spec.object);
    content->update = nullptr;
  }
  std::uint64_t size_bytes(const Content& content) const override {
    const std::lock_guard lock(const_cast<Content&>(content).mutex);
    return content.bytes.size();
  }
  bool is_dirty(const Content& content) const override {
    const std::lock_guard lock(const_cast<Content&>(content).mutex);
    return content.dirty;
  }
  Result<std::size_t> read(Content& content, std::uint64_t offset, MutableBytes into) override {
    const std::lock_guard lock(content.mutex);
    if (offset >= content.bytes.size()) return std::size_t{0};
    const std::size_t bytes = std::min<std::size_t>(into.size(), content.bytes.size() - offset);
    std::copy_n(content.bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes, into.begin());
    return bytes;
  }
  Status write(Content& content, std::uint64_t offset, ConstBytes from) override {
    const std::lock_guard lock(content.mutex);
    if (store_.space().available_blocks == 0) return Error{Errc::kNoSpace, "fake engine"};
    if (offset + from.size() > content.bytes.size()) content.bytes.resize(offset + from.size());
    std::copy(from.begin(), from.end(), content.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    content.dirty = true;
    return {};
  }
  Status read_window(Content&, const geometry::Window&, std::uint64_t, MutableBytes) override { return unsupported(); }
  void start_window(Content&, const geometry::Window&) override {}
  Status write_window(Content&, const geometry::Window&, const WindowSource&) override { return unsupported(); }
  Status truncate(Content& content, std::uint64_t size_bytes) override {
    const std::lock_guard lock(content.mutex);
    content.bytes.resize(size_bytes);
    content.dirty = true;
    return {};
  }
  Status punch(Content& content, std::uint64_t offset, std::uint64_t length) override {
    const std::lock_guard lock(content.mutex);
    const std::uint64_t end = std::min<std::uint64_t>(offset + length, content.bytes.size());
    for (std::uint64_t i = offset; i < end; ++i) content.bytes[i] = std::byte{0};
    content.dirty = true;
    return {};
  }
  Result<std::uint64_t> next_data(Content&, std::uint64_t offset) override { return offset; }
  Result<std::uint64_t> next_hole(Content& content, std::uint64_t) override { return size_bytes(content); }
  Status write_back(Content& content) override {
    ByteVector bytes;
    {
      const std::lock_guard lock(content.mutex);
      if (!content.dirty) return {};
      content.dirty = false;
      bytes = content.bytes;
    }
    {
      const std::lock_guard lock(mutex_);
      stored_[content.spec.object] = bytes;
    }
    return store_.transact(store::Purpose::kNormal, [&](store::Transaction& transaction) {
      return content.update(transaction, {bytes.size(), 0, false});
    });
  }
  Status write_back_all(std::int64_t) override {
    std::vector<std::shared_ptr<Content>> contents;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [object, content] : open_) contents.push_back(content);
    }
    for (const auto& content : contents) MDFS_TRY(write_back(*content));
    return {};
  }
  Result<std::vector<engine::ExtentPlace>> layout(Content&) override { return std::vector<engine::ExtentPlace>(); }
  Result<engine::WindowPlan> plan(Content&, const geometry::Window&) override { return unsupported().error(); }
  engine::CacheStats cache_stats() const override { return {}; }

 private:
  static Status unsupported() { return Error{Errc::kNotSupported, "fake engine"}; }

  store::Store& store_;
  std::mutex mutex_;  // guards the next two
  std::map<std::uint64_t, std::shared_ptr<Content>> open_;
  std::map<std::uint64_t, ByteVector> stored_;
};

}  // namespace

std::unique_ptr<engine::Engine> make_fake_engine(store::Store& store) { return std::make_unique<FakeEngine>(store); }

}  // namespace mdfs::test
