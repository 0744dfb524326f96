"""Hashes of names: written from doc/FORMAT.md alone.

SPDX-License-Identifier: Apache-2.0
"""
import struct


def siphash(key, text):
    """SipHash-2-4."""
    mask = 2**64 - 1
    words = struct.unpack("<QQ", key)
    a, b, c, d = (constant ^ words[i % 2] for i, constant in enumerate(
        (0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573)))

    def rotate(word, by):
        return (word << by | word >> 64 - by) & mask

    def rounds(count):
        nonlocal a, b, c, d
        for _ in range(count):
            a = (a + b) & mask
            b = rotate(b, 13) ^ a
            a = rotate(a, 32)
            c = (c + d) & mask
            d = rotate(d, 16) ^ c
            a = (a + d) & mask
            d = rotate(d, 21) ^ a
            c = (c + b) & mask
            b = rotate(b, 17) ^ c
            c = rotate(c, 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) & 255])
    for word, in struct.iter_unpack("<Q", padded):
        d ^= word
        rounds(2)
        a ^= word
    c ^= 255
    rounds(4)
    return a ^ b ^ c ^ d


def first_cookie(secret, name):
    return 256 + siphash(secret, name) % (2**63 - 2**33)
