// Access profiles: what the clients of a measurement ask of a filesystem. TOML, see mdfs-profile(5).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mdfs::meter {

// Offsets and lengths of all requests are multiples of this many bytes, so that O_DIRECT accepts them.
inline constexpr std::uint64_t kAlignment = 4096;
inline constexpr unsigned kMostFiles = 1024;                   // of a client
inline constexpr std::uint64_t kMostFileBytes = 1ull << 44;    // 16 TiB
inline constexpr std::uint64_t kMostTransferBytes = 1u << 30;  // 1 GiB
inline constexpr std::uint64_t kMostBlockBytes = 64u << 20;
inline constexpr double kMostWaitS = 3600;
inline constexpr double kMostRate = 10'000;  // transfers a second
inline constexpr std::size_t kMostProfileBytes = 1u << 16;

// Drawn uniformly from both ends and all between them.
template <typename T>
struct Between {
  T low{};
  T high{};
  bool operator==(const Between&) const = default;
};

enum class Order : std::uint8_t { kSequential, kRandom, kStrided, kBackwards };
enum class Sync : std::uint8_t {
  kNone,
  kTransfer,  // after each transfer that writes; counts as its latency
  kEnd,       // each client once, after its last transfer, within the measured time
};
enum class Open : std::uint8_t {
  kTransfer,  // for each transfer; counts as its latency
  kClient,    // each file once, before the measurement
};
enum class Begin : std::uint8_t {
  kFull,   // files are written before the measurement
  kEmpty,  // clients write them from their beginning, and empty them before they write them again
};

// Limits for a ramp of clients. The ramp ends when one is broken.
struct Limits {
  std::optional<double> late{};   // share of transfers that end after their deadline, 0..1
  std::optional<double> p99_s{};  // of the total time of transfers
  std::optional<double> gain{};   // of the total rate over that of fewer clients, as a share
  bool operator==(const Limits&) const = default;
};

struct Profile {
  std::string name;
  std::string description;
  unsigned files = 1;            // of a client, or of all if shared
  std::uint64_t file_bytes = 0;  // of one file
  bool shared = false;           // all clients use the same files
  Begin begin = Begin::kFull;
  Order order = Order::kSequential;
  std::uint64_t stride_bytes = 0;  // from the beginning of a transfer to that of the next one, if strided
  Between<std::uint64_t> transfer_bytes;
  Between<std::uint64_t> block_bytes;
  double writes = 0;           // share of transfers that write
  double random = 0;           // share of transfers that are one block at a random place
  Between<double> think_s;     // between two transfers of a client
  std::optional<double> rate;  // transfers a second of each client; none: as fast as they come
  double deadline_s = 0;       // of a transfer with a rate, from when it is due
  Sync sync = Sync::kNone;
  Open open = Open::kTransfer;
  Limits limits;
  bool operator==(const Profile&) const = default;
};

const char* name_of(Order order);
const char* name_of(Sync sync);
const char* name_of(Open open);
const char* name_of(Begin begin);

// Parses the text of a profile. `where` names the file in errors, which are kInvalidArgument: "where:line: field:
// problem".
Result<Profile> parse_profile(std::string_view text, const std::string& where);

// The profiles that are built in: their texts live as long as the program.
struct BuiltIn {
  std::string_view name;
  std::string_view toml;
};
const std::vector<BuiltIn>& built_in_profiles();

// The text of a built-in profile, or of the file at a path. kNotFound: neither is there.
Result<std::string> profile_text(const std::string& name_or_path);
Result<Profile> find_profile(const std::string& name_or_path);

}  // namespace mdfs::meter
