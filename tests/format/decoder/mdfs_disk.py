"""One disk of an MDFS volume: its labels, its commits, and which commit of all disks counts (FORMAT.md 3 and 4).

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from crc32c import crc32c  # noqa: E402  the path comes first

SECTOR = 4096
SLOT = 8192
LABEL_AREA = 131072
MAIN_ROOT = 1
CRC32C = 1
FEATURE_RANK5, FEATURE_STRIPS, FEATURE_CHECKSUM_RECORDS = 16, 32, 64
FEATURE_PROTECTION = 1  # read-only compatible
KNOWN_FEATURES = FEATURE_RANK5 | FEATURE_STRIPS | FEATURE_CHECKSUM_RECORDS
HOLE, DRAINING = 1, 2


class Damaged(Exception):
    """A check does not hold; the text names it."""


def require(condition, check):
    if not condition:
        raise Damaged(check)


def sealed(sector, magic, what):
    require(sector[:8] == magic, f"{what}: magic")
    require(crc32c(sector[:8] + bytes(4) + sector[12:]) == struct.unpack_from("<I", sector, 8)[0], f"{what}: checksum")


def members(sector, base, count, check):
    """(uuid, blocks) of each member; None for a hole."""
    found, takes_data = [], False
    for i in range(count):
        disk, blocks, weight, flags, _ = struct.unpack_from("<16sQHHI", sector, base + 32 * i)
        require(flags in (0, HOLE, DRAINING), check)
        if flags == HOLE:
            require(not any(disk) and blocks == 0 and weight == 0, check)
            found.append(None)
            continue
        require(any(disk) and blocks > 0, check)
        takes_data = takes_data or weight > 0
        found.append((disk, blocks))
    named = [member[0] for member in found if member]
    require(takes_data and len(set(named)) == len(named), check)
    return found


class Label:
    def __init__(self, sector):
        sealed(sector, b"MDFSLABL", "label")
        (version, _, _, incompatible) = struct.unpack_from("<IQQQ", sector, 12)
        require(version == 3, "label: version")
        require(incompatible & ~KNOWN_FEATURES == 0, "label: incompatible features")
        self.volume = sector[40:56]
        self.disk = sector[56:72]
        self.index, self.disks, self.block_size, self.blocks = struct.unpack_from("<HHIQ", sector, 72)
        self.number, = struct.unpack_from("<H", sector, 112)
        require(1 <= self.disks <= 64 and self.index < self.disks, "label: disks")
        require(self.block_size in (4096, 8192, 16384, 32768, 65536), "label: block size")
        require(self.blocks * self.block_size % LABEL_AREA == 0, "label: disk blocks")
        require(self.number < 4, "label: number")
        self.room_blocks, = struct.unpack_from("<Q", sector, 192)
        require(self.blocks <= self.room_blocks and self.room_blocks * self.block_size % LABEL_AREA == 0,
                "label: room blocks")
        self.policy = sector[184]
        require(self.policy <= 3, "label: policy")
        self.membership, = struct.unpack_from("<I", sector, 116)
        self.members = members(sector, 512, self.disks, "label: members")
        require(self.members[self.index] == (self.disk, self.blocks), "label: members")


class Pointer:
    def __init__(self, data):
        self.crc, = struct.unpack_from("<I", data, 0)
        self.birth, self.length, self.copies, checksum_type = struct.unpack_from("<QIBB", data, 32)
        self.addresses = struct.unpack_from("<QQQ", data, 48)
        require(self.birth != 0 and 1 <= self.copies <= 3, "pointer")
        require(checksum_type == CRC32C and not any(data[4:32]), "pointer: checksum")
        require(not any(data[46:48]) and not any(self.addresses[self.copies:]), "pointer: reserved")


class Commit:
    def __init__(self, sector, volume):
        sealed(sector, b"MDFSCMIT", "commit")
        self.state, = struct.unpack_from("<I", sector, 12)
        require(struct.unpack_from("<Q", sector, 136)[0] & ~KNOWN_FEATURES == 0, "commit: incompatible features")
        self.read_only_features, = struct.unpack_from("<Q", sector, 128)
        require(self.state in (1, 2), "commit: state")
        require(sector[16:32] == volume, "commit: volume")
        self.id, self.parent = sector[32:48], sector[48:64]
        (self.generation, self.time_ns, self.participants, self.next_object, self.objects, self.flags, self.disks,
         roots) = struct.unpack_from("<QqQQQIHH", sector, 64)
        self.root = None
        for i in range(roots):
            base = 512 + 128 * i
            kind, level, _, nodes = struct.unpack_from("<IHHQ", sector, base)
            if kind == MAIN_ROOT:
                self.root, self.level, self.nodes = Pointer(sector[base + 56:base + 128]), level, nodes
        require(self.root is not None, "commit: no main root")
        self.space = [struct.unpack_from("<IIQ", sector, 1024 + 16 * i) for i in range(self.disks)]
        self.membership, count = struct.unpack_from("<IH", sector, 112)
        require(self.membership >= 1, "commit: membership")
        self.members = members(sector, 2048, self.disks, "commit: members")
        states = [struct.unpack_from("<16sQ", sector, 4096 + 32 * i) for i in range(self.disks)]
        for i, (member, (last, generation)) in enumerate(zip(self.members, states)):
            require(any(last) == (generation > 0) and generation <= self.generation, "commit: member states")
            require(member or not any(last), "commit: member states")
            require(not self.participants >> i & 1 or (last, generation) == (self.id, self.generation),
                    "commit: member states")
        require(count <= 96, "commit: checksum_records")
        self.checksum_records = [struct.unpack_from("<HHIQ", sector, 6144 + 16 * i) for i in range(count)]
        records = self.checksum_records
        require(all(1 <= sectors <= 256 and self.participants >> disk & 1 for disk, sectors, _, _ in records),
                "commit: checksum_records")


class Disk:
    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        self.size = self.file.seek(0, os.SEEK_END) // LABEL_AREA * LABEL_AREA
        self.label = None
        self.labels = 0
        for area in (0, LABEL_AREA, self.size - 2 * LABEL_AREA, self.size - LABEL_AREA):
            try:
                label = Label(self.read(area, SECTOR))
            except Damaged:
                continue
            self.label = self.label or label
            self.labels += 1
        require(self.label is not None, f"{path}: no label")

    def read(self, offset, length):
        self.file.seek(offset)
        data = self.file.read(length)
        require(len(data) == length, f"{self.path}: short read at {offset}")
        return data

    def commits(self):
        end = self.label.blocks * self.label.block_size
        for area in (0, LABEL_AREA, end - 2 * LABEL_AREA, end - LABEL_AREA):
            for slot in range(8):
                try:
                    yield Commit(self.read(area + SLOT * (1 + slot), SLOT), self.label.volume)
                except Damaged:
                    continue


def holds(disk, commit):
    """None: the disk says nothing about the commit."""
    there = {other.id for other in disk.commits()}
    if not commit.participants >> disk.label.index & 1:
        return None
    if commit.id not in there:
        return False if commit.parent in there else None
    return all(crc32c(disk.read(sector * SECTOR, sectors * SECTOR)) == crc
               for index, sectors, crc, sector in commit.checksum_records if index == disk.label.index)


def newest_commit(disks):
    committed, parents, recorded = {}, set(), []
    for disk in disks:
        for commit in disk.commits():
            parents.add(commit.parent)
            if commit.state == 2:
                committed.setdefault(commit.generation, {})[commit.id] = commit
            elif commit.checksum_records:
                recorded.append(commit)
    last = max(committed, default=0)
    for commit in recorded:
        if commit.generation > last and (commit.id in parents or
                                         False not in [holds(disk, commit) for disk in disks]):
            committed.setdefault(commit.generation, {})[commit.id] = commit
    require(committed, "no commit")
    best = committed[max(committed)]
    require(len(best) == 1, "fork")
    return next(iter(best.values()))
