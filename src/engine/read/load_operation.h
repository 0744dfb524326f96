// One load: its requests, their completions, and the threads that decode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device/urgency.h"
#include "engine/core.h"
#include "engine/late_loads.h"
#include "engine/read/piece_choice.h"
#include "engine/read/want.h"
#include "engine/requests.h"
#include "format/cell_parts.h"

namespace mdfs::engine {

// One cache block that is being loaded. The operation has set its `loading` flag.
struct Fetch {
  CacheBlockPtr block;
  geometry::Coord coord{};
  std::size_t want = 0;
  std::vector<std::uint32_t> parts;    // numbers of the parts to load, ascending
  const MappedExtent* kept = nullptr;  // the record to use instead of a look-up
  bool as_frame = false;               // the block gets the record's frame as it is stored
  bool prefers_copy = false;           // the first try reads the copy
  std::uint32_t prefers_copies = 0;    // the same of blocks of a file (bit i: block i of the cell)
  unsigned tries = 0;                  // failed ones
  bool found_damage = false;           // in one of them, not only absent disks
  // What failed tries have found: disks, a bit each, of which a request failed; pieces of the extent, or of its parts
  // in strips, that do not match, by their first runs; of files blocks (bit i: block i of the cell) whose piece does
  // not.
  std::uint64_t failed_disks = 0;  // guarded by the operation
  std::vector<store::Run> bad_pieces;
  std::uint32_t bad_first = 0, bad_copy = 0;
  // It stands in for another one whose requests to these disks are late, and still fill the buffer of the cache block,
  // which must not see them. Whichever of the two ends first is taken, and the other one given up.
  std::uint64_t late_disks = 0;
  bool stands_in = false;
  Fetch* other = nullptr;  // the one that it stands in for, or that stands in for it; guarded by the operation
  bool given_up = false;   // guarded likewise

  // The record's bytes are made from the other pieces of its group, which fill these buffers.
  bool from_others = false;
  std::vector<BufferRef> others;

  // Found in the tree:
  MappedExtent extent;
  format::CellPieces cell;
  std::optional<ByteVector> inline_bytes;

  struct Piece {  // blocks of a part that lie in a strip
    std::size_t part = 0;
    std::uint32_t first_block = 0, blocks = 0;
    std::size_t at = 0;  // offset in `strips`
  };
  std::vector<Piece> pieces;
  BufferRef strips;      // the disks fill it with these blocks
  BufferRef stored;      // the disks fill it: the frame, the cache block's own buffer, or a separate one
  bool direct = false;   // `stored` is the cache block's own buffer
  unsigned pending = 0;  // requests; guarded by the operation
  Status status;         // likewise
};

// Looks records up, submits all requests, and finishes each cache block as its bytes arrive, on the caller's thread and
// on the decoding threads. After a checksum mismatch the operation looks the record up again and reads once more,
// because the extent may have moved meanwhile. A second mismatch is damage. Of an extent or block with a second copy
// that copy is read whose disk is idle first, after any error the other one, and then the first one once more; what has
// failed is repaired in the background. A piece whose disk is late is read from the other disk as well, and whichever
// ends first is used (device/hedging.h). run() waits. start() does not wait; keep() then holds all that must outlive
// the caller, the barrier included. A caller of run() that is stopped leaves, and the operation continues as after
// start(): the disks still fill its memory. So it does after run() where requests are late.
class LoadOperation final : public WatchedLoad, public std::enable_shared_from_this<LoadOperation> {
 public:
  LoadOperation(Core& core, OpenObject& object, const Loaded* loaded);
  LoadOperation(const LoadOperation&) = delete;
  LoadOperation& operator=(const LoadOperation&) = delete;
  ~LoadOperation() override = default;

  void add(std::unique_ptr<Fetch> fetch) { fetches_.push_back(std::move(fetch)); }
  // The caller is inside the barrier. kCancelled: `stop` ended the wait, and the operation has taken `share`; nothing
  // is passed to `loaded` any more. Where requests are late at the end it has taken `share`, too.
  Status run(const Stop& stop, ByteBudget::Share& share);
  void keep(const std::shared_ptr<OpenObject>& object, ByteBudget::Share share);
  void start();
  // Reads what is late from other disks.
  std::optional<std::int64_t> help_late(std::int64_t now_ns) override;

 private:
  // Looks records up and submits requests. Completions may come at once.
  void begin(const std::vector<Fetch*>& fetches, bool fresh);
  std::vector<Fetch*> all_fetches() const;
  using Paces = std::vector<std::optional<double>>;  // ns for a byte, by disk
  Paces paces() const;
  // Of fetches whose pieces are chosen. `usual`: of the disks, to tell when a request is late; empty: what is late is
  // not read elsewhere.
  void submit(const std::vector<Fetch*>& fetches, const Paces& usual);
  // Some of it has a second copy.
  bool has_choice(const Fetch& fetch) const;
  // A fetch of the same bytes that passes these disks by. Null: no other disk has them.
  std::unique_ptr<Fetch> elsewhere(const Fetch& fetch, std::uint64_t late_disks) const;
  std::uint64_t disks_to_read(const Fetch& fetch) const;
  // To be moved before a new request, requests counted as kRequestBytes each.
  double queued_bytes(unsigned disk) const;
  // With the mutex: all but what late requests fill is done.
  void keep_late_bytes(ByteBudget::Share& share) const;
  // All that outlives the caller of run().
  void outlive(ByteBudget::Share& share);
  Status look_up(Fetch& fetch, bool fresh);
  // Disks that are passed by where another one has the bytes.
  std::uint64_t avoided_disks(const Fetch& fetch) const;
  // Not known to be bad or away.
  bool is_good(const Fetch& fetch, const format::Runs& piece) const;
  // All pieces of the record's group but its own.
  bool are_others_good(const Fetch& fetch) const;
  // Lets the record name the piece that is to be read: what is preferred, unless it is not good, and the other one is.
  // Of two that are not good each is tried in turn. A member of a group has the other pieces of the group for that.
  void choose_piece(Fetch& fetch) const;
  // Lets each part in a strip name the piece that is to be read.
  void choose_parts(Fetch& fetch) const;
  void forget_zeroed(format::StoredExtent& record) const;
  // Of all first tries: prefers pieces on the disks that are idle first.
  void prefer_pieces(const std::vector<Fetch*>& fetches, Paces paces);
  // What there is to choose from: the extent, or the blocks of the cell that lie together in both pieces.
  struct Choice {
    Fetch* fetch = nullptr;
    std::uint32_t blocks = 0;  // 0: the extent
  };
  void add_extent(Fetch& fetch, std::vector<Choice>& choices, std::vector<PieceToRead>& pieces) const;
  // `parts` keeps what the pieces point to.
  void add_cell(Fetch& fetch, std::vector<Choice>& choices, std::vector<PieceToRead>& pieces,
                std::deque<format::CellPart>& parts) const;
  bool is_on_disks(const format::Runs& runs) const;
  // To be read of each piece of the extent.
  std::uint64_t bytes_to_read(const Fetch& fetch) const;
  // Can another try succeed?
  bool may_retry(const Fetch& fetch, const Error& error) const;
  void note_failure(Fetch& fetch, const Error& error);
  void prepare(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments);
  void prepare_raw(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments);
  // The same bytes of the other pieces.
  void prepare_others(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments);
  // Bytes of the record in `stored`, and where `others` have them.
  struct OthersRange {
    std::uint32_t begin = 0, end = 0;
    std::size_t at = 0;
  };
  std::vector<OthersRange> ranges_of_others(const Fetch& fetch) const;
  void make_from_others(Fetch& fetch) const;
  void prepare_strips(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments);
  void prepare_cell(Fetch& fetch, std::uint32_t number, std::vector<Segment>& segments);
  // The piece of a file's block that is to be read: what is preferred, unless it is known to be bad or away. Absent: a
  // hole.
  std::optional<format::BlockPlace> choose_block(const Fetch& fetch, unsigned block) const;
  // Chooses a buffer for the parts: the cache block's own if no valid bytes lie under them. Takes the cache block's
  // mutex.
  void choose_target(Fetch& fetch, std::size_t bytes);
  void choose_sparse(const Fetch& fetch, CacheBlock& block) const;
  static void completed(device::Io& io);
  struct Pending;
  void arrived(Pending& request, const Status& status);
  void help();
  // False: `stop` ended the wait.
  bool help_until_done(const Stop& stop);
  static void drop_buffers(Fetch& fetch);
  static std::size_t buffer_bytes(const Fetch& fetch);
  // The caller is about to leave. False if all is done meanwhile.
  bool go_on_alone(ByteBudget::Share& share);
  void finish(Fetch& fetch);
  Status verify(Fetch& fetch) const;
  Status verify_record(const Fetch& fetch) const;
  Status verify_cell(Fetch& fetch) const;
  static unsigned disk_of(const Fetch& fetch);
  Status verify_strips(Fetch& fetch) const;
  Status decode(Fetch& fetch, BufferRef& decoded) const;
  // Puts the bytes of strips over those of the record (zeros, if there is no record).
  void overlay_strips(Fetch& fetch, BufferRef& decoded) const;
  void put_parts(const Fetch& fetch, CacheBlock& block) const;
  void put_cell_holes(const Fetch& fetch, CacheBlock& block) const;
  void put_hole(CacheBlock& block) const;
  void put_decoded(CacheBlock& block, BufferRef decoded) const;
  void put_inline(const Fetch& fetch, CacheBlock& block) const;
  ByteRanges::Range part_range(std::uint32_t part) const;
  Error damage(const Fetch& fetch, const std::string& what) const;
  static void release(CacheBlock& block);
  // With the mutex: a fetch that was given up has its bytes, and is taken if the other one is still waiting.
  bool take_after_all(Fetch& fetch);
  // What came of a fetch that failed.
  void release_failed(const Fetch& fetch) const;
  // With the mutex of the cache block of a fetch that stands in.
  void leave_buffer(CacheBlock& block) const;
  void end();

  bool is_zeroed(unsigned disk) const { return disk < MDFS_MAX_DISKS && (zeroed_disks_ >> disk & 1) != 0; }

  Core& core_;
  OpenObject& object_;
  const std::uint64_t zeroed_disks_;  // whose bytes of the object read as zeros, a bit each
  const Loaded* loaded_;
  ByteBudget::Share kept_share_;
  std::shared_ptr<OpenObject> kept_object_;
  std::shared_ptr<LoadOperation> kept_self_;
  device::Urgency urgency_;  // of the thread that began
  std::vector<std::unique_ptr<Fetch>> fetches_;
  struct Pending {
    device::Io io;
    LoadOperation* operation = nullptr;
    std::uint16_t disk = 0;
    std::vector<SharedBytes> shared;
    std::vector<Fetch*> owners;
    std::int64_t late_ns = INT64_MAX;  // from here on
    bool ended = false;                // guarded by the operation, as the next one
    bool is_late = false;              // counted by Core::late_disks
  };
  std::deque<Pending> pending_;  // of all tries; grows while nothing of the operation is unfinished, or with the mutex
  bool waits_ = false;           // a caller helps, and waits
  bool retries_ = false;         // a caller waits, who begins further tries
  bool is_alone_ = false;        // the caller has left

  std::mutex mutex_;  // guards all below, and the fields of Fetch that name the operation
  std::condition_variable changed_;
  std::deque<Fetch*> ready_;
  std::size_t unfinished_ = 0;
  std::size_t late_ = 0;       // fetches given up, whose requests have not ended
  bool submitting_ = false;    // begin() is at work
  std::size_t finishing_ = 0;  // at work in finish(), which may call `loaded`
  bool leaving_ = false;       // the caller waits for them to end
  std::vector<Fetch*> again_;  // are tried once more
  Status error_;
};

}  // namespace mdfs::engine
