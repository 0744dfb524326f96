"""Groups of extents that share a parity, and second copies: FORMAT.md, section 9.

SPDX-License-Identifier: Apache-2.0
"""
import struct
from typing import NamedTuple

from mdfs_disk import CRC32C, crc32c, require

SCATTERED = 2**64 - 1
SUB_BLOCK = 16384


class Group(NamedTuple):
    places: list
    parity: tuple  # address and stored bytes
    leavers: list  # the same of each
    checksums: tuple  # of the parity


def decode_groups(value, checksums):
    """Place -> address and stored bytes of the second copies of a page, and its other groups."""
    count, checksum_type = struct.unpack_from("<HB", value, 0)
    require(checksum_type == CRC32C and count, "group page")
    copies, groups, seen, lowest, at = {}, [], 0, -1, 16
    for _ in range(count):
        members, parities, leavers = struct.unpack_from("<QBB", value, at)
        places = [place for place in range(64) if members >> place & 1]
        require(parities == 1 and places and places[0] > lowest and not members & seen, "group")
        seen, lowest, at = seen | members, places[0], at + 16
        pieces = []
        for _ in range(1 + leavers):
            address, birth, stored = struct.unpack_from("<QQI", value, at)
            require(birth and stored, "parity")
            pieces.append((address, stored))
            at += 24
        if len(places) == 1 and not leavers:
            copies[places[0]] = pieces[0]
            continue
        require(len(places) + leavers <= 8, "group: pieces")
        require(all(address != SCATTERED for address, _ in pieces), "parity: scattered")
        groups.append(Group(places, pieces[0], pieces[1:], struct.unpack_from(f"<{checksums}I", value, at)))
        at += (4 * checksums + 7) // 8 * 8
    require(at == len(value), "group page: length")
    return copies, groups


def check_group(group, pieces, is_zstd):
    """`pieces`: address and bytes of the members, the leavers and, at last, the parity."""
    parity = pieces[-1][1]
    require(len(parity) == max(len(data) for _, data in pieces[:-1]), "parity: length")
    total = 0
    for _, data in pieces:
        total ^= int.from_bytes(data, "little")
    require(total == 0, "parity: not the sum of its group")
    disks = [address >> 48 for address, _ in pieces]
    require(len(set(disks)) == len(disks) and SCATTERED not in [address for address, _ in pieces],
            "parity: pieces together")
    part = len(parity) if is_zstd else SUB_BLOCK
    for i, checksum in enumerate(group.checksums):
        require(crc32c(parity[i * part:(i + 1) * part]) == checksum, "parity: checksum")
