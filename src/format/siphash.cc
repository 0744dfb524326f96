// SipHash-2-4, by libsodium.
// SPDX-License-Identifier: Apache-2.0
#include "format/siphash.h"

#include <sodium/crypto_shorthash.h>

namespace mdfs::format {

std::uint64_t siphash(const SipKey& key, ConstBytes text) {
  std::array<std::byte, crypto_shorthash_KEYBYTES> words{};
  for (std::size_t i = 0; i < key.size(); ++i) store_le<std::uint64_t>(words, sizeof(key[0]) * i, key[i]);
  std::array<std::byte, crypto_shorthash_BYTES> hash{};
  crypto_shorthash(reinterpret_cast<unsigned char*>(hash.data()), reinterpret_cast<const unsigned char*>(text.data()),
                   text.size(), reinterpret_cast<const unsigned char*>(words.data()));
  return load_le<std::uint64_t>(hash, 0);
}

}  // namespace mdfs::format
