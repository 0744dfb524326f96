// Staging and applying a window.
// SPDX-License-Identifier: Apache-2.0
#include "views/window_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "views/npy.h"

namespace mdfs::views {
Result<std::unique_ptr<WindowWriter>> WindowWriter::create(volume::Volume& volume, volume::Ino image, ViewFile file,
                                                           StagingPool& pool, std::uint32_t owner, bool truncated) {
  if (!is_writable(file.format))
    return Error{Errc::kNotSupported, fmt::format("a .{} is read-only", suffix(file.format))};
  if (file.data_bytes > pool.limits().window_bytes)
    return Error{Errc::kTooBig, fmt::format("a window of {} bytes; this mount allows {} (max_window)", file.data_bytes,
                                            pool.limits().window_bytes)};
  return std::unique_ptr<WindowWriter>(new WindowWriter(volume, image, std::move(file), pool, owner, truncated));
}

std::uint64_t WindowWriter::capacity() const {
  return file_.format == Format::kNpy ? kMaxNpyHeaderBytes + file_.data_bytes : file_.size_bytes();
}

Result<std::size_t> WindowWriter::write(std::uint64_t offset, ConstBytes from) {
  if (from.empty()) return std::size_t{0};
  overran_ = overran_ || offset > capacity() || from.size() > capacity() - offset;
  if (offset >= capacity()) return Error{Errc::kTooBig, fmt::format("the window ends at byte {}", file_.size_bytes())};
  from = from.first(std::min<std::uint64_t>(from.size(), capacity() - offset));
  if (!staging_) {
    MDFS_TRY_ASSIGN(staging_, Staging::create(pool_, owner_, capacity()));
  }
  MDFS_TRY(staging_->write(offset, from));
  return from.size();
}

Result<std::size_t> WindowWriter::read(std::uint64_t offset, MutableBytes into) const {
  std::uint64_t size = truncated_ ? 0 : file_.size_bytes();
  if (staging_) size = std::max(size, staging_->written().end());
  if (offset >= size) return std::size_t{0};
  into = into.first(std::min<std::uint64_t>(into.size(), size - offset));
  std::fill(into.begin(), into.end(), std::byte{0});
  if (!truncated_) MDFS_TRY(read_view(volume_, image_, file_, offset, into));
  if (!staging_) return into.size();
  for (const ByteRange& part : staging_->written().parts({offset, offset + into.size()}))
    MDFS_TRY(staging_->read(part.first, into.subspan(part.first - offset, part.last - part.first)));
  return into.size();
}

Result<std::uint64_t> WindowWriter::written_header_bytes() const {
  if (file_.format != Format::kNpy) return std::uint64_t{0};
  const bool header_touched = !staging_->written().parts({0, 1}).empty();
  if (!header_touched && !truncated_) return std::uint64_t{file_.header.size()};
  ByteVector front(std::min<std::uint64_t>(kMaxNpyHeaderBytes, capacity()));
  MDFS_TRY_ASSIGN(const std::size_t count, read(0, front));
  MDFS_TRY_ASSIGN(const NpyHeader header, parse_npy_header(ConstBytes(front).first(count)));
  if (header.type != file_.type)
    return Error{Errc::kInvalidArgument,
                 fmt::format("the array is {}, the image {}", name(header.type), name(file_.type))};
  if (header.shape != file_.array_shape)
    return Error{Errc::kInvalidArgument,
                 fmt::format("the array's shape ({}) is not the window's ({})", fmt::join(header.shape, ", "),
                             fmt::join(file_.array_shape, ", "))};
  return std::uint64_t{header.header_bytes};
}

bool WindowWriter::is_full() const {
  if (empty()) return false;
  const auto header_bytes = written_header_bytes();
  return header_bytes.ok() && staging_->written().covers({0, *header_bytes + file_.data_bytes});
}

Result<engine::WindowSource> WindowWriter::source(std::uint64_t header_bytes) const {
  const Staging& staged = *staging_;
  const auto read = [&staged, header_bytes](std::uint64_t offset, MutableBytes into) {
    return staged.read(header_bytes + offset, into);
  };
  const ByteRange data{header_bytes, header_bytes + file_.data_bytes};
  if (staged.written().covers(data)) return engine::WindowSource(read);
  if (file_.format == Format::kNpy && header_bytes != file_.header.size())
    return Error{Errc::kInvalidArgument, "an NPY with another header than the file's must be written whole"};
  std::vector<engine::WindowRange> written;
  for (const ByteRange& part : staged.written().parts(data))
    written.push_back({part.first - header_bytes, part.last - header_bytes});
  return engine::WindowSource(read, std::move(written));
}

Status WindowWriter::apply(const engine::Stop& stop) {
  if (empty()) return {};
  if (!is_complete()) return Error{Errc::kInvalidArgument, "only a part of the window has been written"};
  MDFS_TRY_ASSIGN(const std::uint64_t header_bytes, written_header_bytes());
  const std::uint64_t end = header_bytes + file_.data_bytes;
  if (staging_->written().end() > end)
    return Error{Errc::kInvalidArgument, fmt::format("{} bytes written, {} expected", staging_->written().end(), end)};
  MDFS_TRY_ASSIGN(const engine::WindowSource from, source(header_bytes));
  MDFS_TRY(volume_.write_window(image_, file_.window, from, stop));
  staging_.reset();
  truncated_ = false;
  return {};
}

}  // namespace mdfs::views
