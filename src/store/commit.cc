// Writing commits.
// SPDX-License-Identifier: Apache-2.0
#include "store/commit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "store/labels.h"
#include "store/unflushed.h"

namespace mdfs::store {
namespace {

constexpr std::uint64_t kLargestWriteBytes = 1u << 20;

struct Piece {
  std::uint64_t offset;
  MutableBytes bytes;
  bool is_node;  // else a space page
};

const Participant* participant(std::span<const Participant> participants, std::uint16_t disk) {
  for (const Participant& candidate : participants)
    if (candidate.index == disk) return &candidate;
  return nullptr;
}

// Adjacent pieces of one disk and kind, merged. A request becomes a checksum record, and a bad copy of a node is
// excused only if its record covers nodes alone.
void append_writes(std::vector<Piece>& pieces, std::vector<device::Io>& ios) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  std::uint64_t end = UINT64_MAX;
  std::uint64_t bytes = 0;
  bool is_node = false;
  for (const Piece& piece : pieces) {
    if (piece.offset != end || piece.is_node != is_node || bytes + piece.bytes.size() > kLargestWriteBytes) {
      device::Io io;
      io.op = device::Op::kWrite;
      io.offset = piece.offset;
      ios.push_back(std::move(io));
      bytes = 0;
    }
    ios.back().buffers.push_back(piece.bytes);
    bytes += piece.bytes.size();
    end = piece.offset + piece.bytes.size();
    is_node = piece.is_node;
  }
}

Status run_all(std::vector<std::vector<device::Io>>& ios, std::span<const Participant> participants,
               DiskFaults* faults) {
  std::vector<device::Addressed> requests;
  for (std::size_t i = 0; i < participants.size(); ++i)
    for (device::Io& io : ios[i]) requests.push_back({participants[i].disk, &io});
  Status status = device::run(requests);
  for (std::size_t i = 0; i < participants.size() && faults != nullptr; ++i)
    for (const device::Io& io : ios[i])
      if (!io.status.ok())
        (io.op == device::Op::kFlush ? faults->flushes : faults->writes) |= format::disk_bit(participants[i].index);
  return status;
}

// All that validate the commit; none if they cannot. One that writes nothing has nothing to be known by.
std::vector<format::ChecksumRecord> checksum_records_of(const SealedCommit& sealed,
                                                        const std::vector<std::vector<device::Io>>& ios,
                                                        std::span<const Participant> participants) {
  if (!sealed.checksum_records) return {};
  std::size_t count = sealed.checksum_records->size();
  for (const auto& writes : ios) count += writes.size();
  if (count > MDFS_MAX_CHECKSUM_RECORDS) return {};
  std::vector<format::ChecksumRecord> checksum_records = *sealed.checksum_records;
  for (std::size_t i = 0; i < participants.size(); ++i)
    for (const device::Io& io : ios[i])
      checksum_records.push_back({participants[i].index, static_cast<std::uint16_t>(io.bytes() / MDFS_SECTOR),
                                  checksum_of(io), io.offset / MDFS_SECTOR});
  return checksum_records;
}

format::CommitSlot with_state(format::CommitSlot slot, std::uint32_t state) {
  slot.state = state;
  return slot;
}

// These bytes to the slot's places in all rings of all participants; every one is tried.
Status write_slots(const format::CommitSlot& slot, const AlignedBuffer& bytes,
                   std::span<const Participant> participants, DiskFaults* faults) {
  std::vector<std::vector<device::Io>> ios(participants.size());
  for (std::size_t i = 0; i < participants.size(); ++i) ios[i] = slot_writes(participants[i].layout, slot, bytes);
  return run_all(ios, participants, faults);
}

}  // namespace

Status flush_all(std::span<const Participant> participants, DiskFaults* faults) {
  std::vector<std::vector<device::Io>> ios(participants.size());
  for (auto& list : ios) list.emplace_back().op = device::Op::kFlush;
  return run_all(ios, participants, faults);
}

Status write_commit(SealedCommit& sealed, std::span<const Participant> participants, std::uint32_t block_size,
                    DiskFaults* faults) {
  std::array<std::vector<Piece>, MDFS_MAX_DISKS> pieces;
  for (std::size_t i = 0; i < sealed.pointers.size(); ++i)
    for (const format::Address& address : sealed.pointers[i].places())
      pieces[address.disk].push_back(
          {address.block * block_size, sealed.nodes.bytes().subspan(i * MDFS_NODE_SIZE, MDFS_NODE_SIZE), true});
  for (SectorWrite& sector : sealed.sectors)
    pieces[sector.disk].push_back({sector.offset, sector.bytes.bytes(), false});

  for (std::uint16_t disk = 0; disk < pieces.size(); ++disk)
    MDFS_CHECK(pieces[disk].empty() || participant(participants, disk) != nullptr ||
               sealed.slot.members[disk].is_out());
  std::vector<std::vector<device::Io>> ios(participants.size());
  for (std::size_t i = 0; i < participants.size(); ++i) append_writes(pieces[participants[i].index], ios[i]);
  sealed.slot.checksum_records = checksum_records_of(sealed, ios, participants);
  const bool validates_itself = !sealed.slot.checksum_records.empty();
  sealed.slot.state = MDFS_SLOT_PREPARED;
  const AlignedBuffer prepared = encode_slot(sealed.slot);
  for (std::size_t i = 0; i < participants.size(); ++i)
    for (device::Io& io : slot_writes(participants[i].layout, sealed.slot, prepared,
                                      validates_itself ? Rings::kOneAtEachEnd : Rings::kAll))
      ios[i].push_back(std::move(io));
  MDFS_TRY(run_all(ios, participants, faults));
  MDFS_TRY(flush_all(participants, faults));
  if (validates_itself) return {};
  sealed.slot.state = MDFS_SLOT_COMMITTED;
  return finalize_commit(sealed.slot, participants, faults);
}

Status abandon_commit(const format::CommitSlot& slot, const std::optional<format::CommitSlot>& parent,
                      std::span<const Participant> participants, DiskFaults* faults) {
  Status first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  // The parent first: between the two, the slot that goes is what tells that the parent was flushed.
  if (parent) {
    const format::CommitSlot committed = with_state(*parent, MDFS_SLOT_COMMITTED);
    note(write_slots(committed, encode_slot(committed), participants, faults));
    note(flush_all(participants, faults));
  }
  AlignedBuffer zeros(MDFS_SLOT_SIZE);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  note(write_slots(with_state(slot, MDFS_SLOT_PREPARED), zeros, participants, faults));
  note(flush_all(participants, faults));
  return first;
}

Status finalize_commit(format::CommitSlot slot, std::span<const Participant> participants, DiskFaults* faults) {
  slot.state = MDFS_SLOT_COMMITTED;
  MDFS_TRY(write_slots(slot, encode_slot(slot), participants, faults));
  return flush_all(participants, faults);
}

}  // namespace mdfs::store
