#!/usr/bin/env python3
"""Reads an MDFS volume: written from doc/FORMAT.md alone, sharing no code with the programs. Verifies every checksum.

    mdfs_decode.py ls DISK...          mode, size and path of every object
    mdfs_decode.py cat PATH DISK...    the bytes of a file, or the canonical bytes of an image
    mdfs_decode.py verify DISK...      all structures, space pages and data

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import struct
import subprocess
import sys
import uuid
from fractions import Fraction

from mdfs_disk import (CRC32C, crc32c, Damaged, Disk, FEATURE_PROTECTION, LABEL_AREA, MAIN_ROOT, newest_commit,
                       Pointer, require)
from mdfs_groups import check_group, decode_groups
from mdfs_names import first_cookie

NODE = 16384
CELL = 131072
SUB_BLOCK = 16384
NONE, ROOT_DIRECTORY = 0, 1
VOLUME_OBJECT = 2
INODE, INLINE, SYMLINK, DIRENT, XATTR, GEOMETRY, EXTENTS, FILE_CELL, ORPHAN, PLACEMENT, EXTENT_RUNS = range(1, 12)
PARITY, STRIP, SECRET, FILE_PARITY, PARITY_RUNS, LEVEL = 14, 19, 20, 21, 22, 24
NEAREST, MAX = 2, 3  # else the mean
U8 = 1
XATTR_REST = 32  # + number
XATTR_FIRST = 4096
MAX_ITEM = 6144
FLAG_IMAGE, FLAG_INLINE = 1, 2
RAW, ZSTD = 0, 1
ELEMENT_BYTES = {1: 1, 2: 2, 3: 4, 4: 8, 5: 1, 6: 2, 7: 4, 8: 8, 9: 2, 10: 4, 11: 8}
SCATTERED = 2**64 - 1
OPERATION = 16
DISK_ERRORS = 18
OPERATIONS = {1: "scrub", 2: "defrag", 3: "drain", 4: "balance", 5: "protect"}
OPERATION_STATES = {1: "running", 2: "cancelled", 3: "done", 4: "failed"}


def zstd_decode(frame, size):
    try:
        import zstandard
        data = zstandard.ZstdDecompressor().decompress(frame, max_output_size=size)
    except ImportError:
        data = subprocess.run(["zstd", "-dcq"], input=frame, capture_output=True, check=True).stdout
    require(len(data) == size, "extent: decoded size")
    return data


def ceil_div(a, b):
    return -(-a // b)


class Inode:
    def __init__(self, value):
        require(len(value) == 144, "inode: length")
        self.mode, self.links, _, _, self.size, self.stored_bytes = struct.unpack_from("<IIIIQQ", value, 0)
        self.flags, self.parent = struct.unpack_from("<QQ", value, 72)
        self.entries, self.reach = struct.unpack_from("<QI", value, 112)

    def is_directory(self):
        return self.mode & 0o170000 == 0o040000

    def is_symlink(self):
        return self.mode & 0o170000 == 0o120000


class Geometry:
    def __init__(self, value):
        require(len(value) == 184, "geometry: length")
        self.rank, element, self.channels, self.codec = struct.unpack_from("<BBHB", value, 0)
        require(1 <= self.rank <= 5 and element in ELEMENT_BYTES and self.codec in (RAW, ZSTD), "geometry")
        self.policy = value[7]
        self.element = element
        require(self.policy <= 3, "geometry: policy")
        self.sample = ELEMENT_BYTES[element] * self.channels
        self.shape = struct.unpack_from("<5Q", value, 8)[:self.rank]
        self.extent = struct.unpack_from("<5I", value, 48)[:self.rank]
        require(all(self.extent), "geometry: extent")
        self.extent_bytes = product(self.extent) * self.sample
        self.grid = [ceil_div(n, e) for n, e in zip(self.shape, self.extent)]
        checksums = 1 if self.codec == ZSTD else ceil_div(self.extent_bytes, SUB_BLOCK)
        self.record_bytes = ceil_div(28 + 4 * checksums, 8) * 8
        self.checksums = checksums
        power = min(6, max(0, (4096 // self.record_bytes).bit_length() - 1))
        fast = power % self.rank
        self.side = [2 ** (power // self.rank + (1 if axis >= self.rank - fast else 0)) for axis in range(self.rank)]

    def extent_index(self, page, place):
        """The extent at a place of a page, slowest axis first."""
        pages = unravel(page, [ceil_div(g, s) for g, s in zip(self.grid, self.side)])
        places = unravel(place, self.side)
        return [p * s + q for p, s, q in zip(pages, self.side, places)]


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def reduced(samples, shape, size, reduction, halved):
    """The level above an array of u8 with `size` channels, and its shape."""
    step = [2 if halved >> axis & 1 else 1 for axis in range(len(shape))]
    above = [ceil_div(n, s) for n, s in zip(shape, step)]
    stride = [product(shape[axis + 1:]) * size for axis in range(len(shape))]
    out = bytearray()
    for place in range(product(above)):
        first = [i * s for i, s in zip(unravel(place, above), step)]
        corners = [0]
        for axis, start in enumerate(first):
            ends = range(start, min(start + step[axis], shape[axis]))
            corners = [corner + i * stride[axis] for corner in corners for i in ends]
        for channel in range(size):
            values = [samples[corner + channel] for corner in corners]
            out.append(values[0] if reduction == NEAREST else max(values) if reduction == MAX else
                       round(Fraction(sum(values), len(values))))
    return bytes(out), tuple(above)


def unravel(number, shape):
    index = []
    for length in reversed(shape[1:]):
        index.append(number % length)
        number //= length
    return [number, *reversed(index)]


class Volume:
    def __init__(self, paths):
        disks = [Disk(path) for path in paths]
        self.uuid = disks[0].label.volume
        require(all(disk.label.volume == self.uuid for disk in disks), "disks of different volumes")
        self.block_size = disks[0].label.block_size
        self.commit = newest_commit(disks)
        current = [disk for disk in disks if any(commit.id == self.commit.id for commit in disk.commits())]
        newest = max((disk.label for disk in current), key=lambda label: label.membership)
        table = self.commit.members or newest.members[:self.commit.disks]
        self.disks = {disk.label.index: disk for disk in current if disk.label.index < len(table)
                      and table[disk.label.index] and table[disk.label.index][0] == disk.label.disk}
        self.has_copies = bool(self.commit.read_only_features & FEATURE_PROTECTION)
        self.nodes = 0
        self.copies = 0  # of extents and of runs of files, that have been compared
        self.parities = 0
        self.in_use = {}  # disk -> set of blocks
        self.items = {}
        self.groups = {}  # (object, kind) -> [(offset, value)]
        for key, value in self._walk(self.commit.root, self.commit.level):
            self.items[key] = value
            self.groups.setdefault(key[:2], []).append((key[2], value))
        require(self.nodes == self.commit.nodes, "commit: number of nodes")
        self.secret = self.items[NONE, SECRET, 0]
        require(len(self.secret) == 16, "secret: length")
        for (number, kind, cookie), value in self.items.items():
            if kind == DIRENT:
                self._check_cookie(number, cookie, value[16:])
            if kind == XATTR:
                name, first, rest = struct.unpack_from("<HHI", value, 0)
                require(len(value) == 8 + name + first and (rest == 0 or first == XATTR_FIRST), "xattr: lengths")
                self._check_cookie(number, cookie, value[8:8 + name])
                for part in range(-(-rest // MAX_ITEM)):
                    require(len(self.items[number, XATTR_REST + part, cookie]) == min(MAX_ITEM, rest - part * MAX_ITEM),
                            "xattr: rest")

    def _check_cookie(self, number, cookie, name):
        distance = cookie - first_cookie(self.secret, name)
        require(0 <= distance <= self.inode(number).reach, "cookie of a name")

    def _use(self, disk, block, count):
        blocks = self.in_use.setdefault(disk, set())
        for number in range(block, block + count):
            require(number not in blocks, f"block {number} of disk {disk} is used twice")
            blocks.add(number)

    def blocks(self, address, count, length, use=True):
        """Bytes from `count` blocks at an address, or None if the disk is not here."""
        disk, block = address >> 48, address & (2**48 - 1)
        if use:
            self._use(disk, block, count)
        if disk not in self.disks:
            return None
        require(block + count <= self.commit.members[disk][1], "address: beyond the disk")
        return self.disks[disk].read(block * self.block_size, length)

    def _node(self, pointer):
        require(pointer.length == NODE, "node: length")
        good = None
        for address in pointer.addresses[:pointer.copies]:
            data = self.blocks(address, max(1, NODE // self.block_size), NODE)
            if data is not None and crc32c(data) == pointer.crc:
                good = data
        require(good is not None, "node: no good copy")
        return good

    def _walk(self, pointer, level):
        data = self._node(pointer)
        self.nodes += 1
        require(data[:8] == b"MDFSNODE" and data[8:24] == self.uuid, "node: magic, volume")
        generation, owner, *addresses, own_level, count, used = struct.unpack_from("<QQQQQHHI", data, 24)
        require(generation == pointer.birth and owner == MAIN_ROOT, "node: generation, owner")
        require(tuple(addresses) == pointer.addresses and own_level == level, "node: address, level")
        previous = None
        end = NODE
        for i in range(count):
            base = 96 + (32 if level == 0 else 96) * i
            key = struct.unpack_from("<QQQ", data, base)
            require(previous is None or previous < key, "node: order of keys")
            previous = key
            if level > 0:
                yield from self._walk(Pointer(data[base + 24:base + 96]), level - 1)
                continue
            offset, length = struct.unpack_from("<II", data, base + 24)
            require(offset + length == end and offset >= 96 + 32 * count, "node: item data")
            end = offset
            yield key, data[offset:offset + length]
        require(used == (NODE - end), "node: used")

    def of_kind(self, number, kind):
        return self.groups.get((number, kind), [])

    def inode(self, number):
        require((number, INODE, 0) in self.items, f"inode {number} is missing")
        return Inode(self.items[number, INODE, 0])

    def entries(self, directory):
        for _, value in self.of_kind(directory, DIRENT):
            number, kind, length = struct.unpack_from("<QBB", value, 0)
            require(len(value) == 16 + length, "directory entry: length")
            require(kind == self.inode(number).mode >> 12, "directory entry: type")
            yield os.fsdecode(value[16:]), number

    def walk(self, number=ROOT_DIRECTORY, path="/"):
        """Every object: path, number, inode."""
        inode = self.inode(number)
        yield path, number, inode
        if not inode.is_directory():
            return
        names = sorted(self.entries(number))
        require(len(names) == inode.entries, f"{path}: number of entries")
        for name, child in names:
            yield from self.walk(child, path.rstrip("/") + "/" + name)

    def find(self, path):
        number = ROOT_DIRECTORY
        for name in path.split("/"):
            if name:
                number = dict(self.entries(number))[name]
        return number, self.inode(number)

    def content(self, number, inode, use=False):
        if inode.is_symlink():
            return self.items[number, SYMLINK, 0]
        if inode.flags & FLAG_IMAGE:
            return self._image(number, inode, use)
        if inode.flags & FLAG_INLINE:
            return self.items.get((number, INLINE, 0), b"")[:inode.size].ljust(inode.size, b"\0")
        return self._cells(number, inode, use)

    def _cells(self, number, inode, use):
        out = bytearray(inode.size)
        size = self.block_size
        cells = self.of_kind(number, FILE_CELL)
        for cell, value in cells:
            blocks = {}  # of the cell -> generation of the contents, checksum, disk
            for first, address, written, checksums in self._runs(value):
                data = self._run_bytes(address, checksums, use)
                start = cell * CELL + first * size
                part = data[:max(0, inode.size - start)]
                require(not any(data[len(part):]), "file block: not zero beyond the end")
                out[start:start + len(part)] = part
                blocks.update({i: (written, checksum, address >> 48) for i, checksum in enumerate(checksums, first)})
            self._check_cell_copies(number, cell, blocks, use)
        if self.has_copies:
            numbers = {cell for cell, _ in cells}
            require(all(cell in numbers for cell, _ in self.of_kind(number, FILE_PARITY)), "file parity: no cell")
        return bytes(out)

    def _runs(self, cell):
        """First block, address, generation of the contents and checksums of each run of a cell."""
        count, base, end = struct.unpack_from("<H", cell, 0)[0], 8, 0
        require(count, "file cell: runs")
        for _ in range(count):
            address, birth, written, first, blocks = struct.unpack_from("<QQQHH", cell, base)
            require(cell[base + 28] == CRC32C, "file run: type of checksum")
            require(1 <= written <= birth and blocks, "file run")
            require(end <= first and first + blocks <= CELL // self.block_size, "file run: place")
            end = first + blocks
            yield first, address, written, struct.unpack_from(f"<{blocks}I", cell, base + 32)
            base += 32 + ceil_div(blocks, 2) * 8
        require(base == len(cell), "file cell: length")

    def _run_bytes(self, address, checksums, use):
        size = self.block_size
        data = self.blocks(address, len(checksums), len(checksums) * size, use)
        require(data is not None, "file run: its disk is missing")
        for i, checksum in enumerate(checksums):
            require(crc32c(data[i * size:(i + 1) * size]) == checksum, "file block: checksum")
        return data

    def _check_cell_copies(self, number, cell, blocks, use):
        value = self.items.get((number, FILE_PARITY, cell))
        if value is None or not self.has_copies:
            return
        require(struct.unpack_from("<QB", value, 0) == (1, 1), "file parity: group")
        for first, address, written, checksums in self._runs(value[16:]):
            self._run_bytes(address, checksums, use)
            for i, checksum in enumerate(checksums, first):
                require(blocks.get(i, ())[:2] == (written, checksum), "file parity: another block")
                require(blocks[i][2] != address >> 48, "file parity: two copies on one disk")
            self.copies += 1

    def _stored(self, number, page, place, address, stored, use, kind=EXTENT_RUNS):
        count = ceil_div(stored, self.block_size)
        if address != SCATTERED:
            data = self.blocks(address, count, stored, use)
            require(data is not None, "extent: its disk is missing")
            return data
        out = b""
        runs = self.items[number, kind, page * 64 + place]
        for address, blocks, _ in struct.iter_unpack("<QII", runs):
            data = self.blocks(address, blocks, blocks * self.block_size, use)
            require(data is not None, "extent: its disk is missing")
            out += data
        require(len(out) == count * self.block_size, "extent runs: blocks")
        return out[:stored]

    def levels(self, number):
        """Object, reduction and halved axes of each level of an image, from level 1 on."""
        found = []
        for offset, value in self.of_kind(number, LEVEL):
            require(len(value) == 16 and offset == len(found) + 1, "level: numbers")
            found.append(struct.unpack_from("<QBB", value, 0))
        return found

    def verify_levels(self, number, inode):
        """Every extent that has been built is the reduction of the level below. Of images of u8."""
        below = Geometry(self.items[number, GEOMETRY, 0])
        shape, samples = below.shape, self.content(number, inode).ljust(product(below.shape) * below.sample, b"\0")
        for target, reduction, halved in self.levels(number):
            require(halved == sum(1 << axis for axis in range(max(0, below.rank - 2), below.rank)), "level: halved")
            geometry = Geometry(self.items[target, GEOMETRY, 0])
            require(self.inode(target).links == 1, "level: links")
            if below.element != U8:
                continue
            samples, shape = reduced(samples, shape, below.sample, reduction, halved)
            require(geometry.shape[1:] == shape[1:] and geometry.extent == below.extent, "level: shape")
            for index, data in self._extents(target, geometry, False):
                whole = bytearray(samples)
                geometry.shape = shape
                self._put(whole, geometry, index, data)
                require(whole == samples, f"level: extent {index} of object {target} is not the reduction")

    def _extents(self, number, geometry, use):
        """Index and decoded bytes of every extent that has a record or bytes in strips."""
        strips = self._strips(number, geometry, use)
        records = {(page, place): data for page, place, data in self._records(number, geometry, use)}
        for key in sorted(records.keys() | strips.keys()):
            data = bytearray(records.get(key, bytes(geometry.extent_bytes)))
            for begin, part in strips.get(key, ()):
                data[begin:begin + len(part)] = part
            yield geometry.extent_index(*key), bytes(data)

    def _strips(self, number, geometry, use):
        """(page, place) -> [(first byte, bytes)]."""
        found, size = {}, self.block_size
        for offset, value in self.of_kind(number, STRIP):
            address, birth, places, live, begin, length = struct.unpack_from("<QQ8xQQII", value, 0)
            require(value[48] == CRC32C, "strip: type of checksum")
            require(birth and live and not live & ~places, "strip: places")
            require(length and begin + length <= geometry.extent_bytes, "strip: range")
            blocks = ceil_div(length, size)
            count = bin(places).count("1") * blocks
            require(value[49] <= 1, "strip: copies")
            addresses, end = [address], 56
            if value[49]:
                second, second_birth = struct.unpack_from("<QQ", value, 56)
                require(second_birth and second >> 48 != address >> 48, "strip: copy")
                addresses, end = [address, second], 72
            require(len(value) == end + ceil_div(count, 2) * 8, "strip: length")
            checksums = struct.unpack_from(f"<{count}I", value, end)
            for i, place in enumerate(place for place in range(64) if places >> place & 1):
                if not live >> place & 1:
                    continue
                pieces = [self.blocks(first + i * blocks, blocks, blocks * size, use) for first in addresses]
                require(any(pieces), "strip: its disk is missing")
                for piece in filter(None, pieces):
                    for j in range(blocks):
                        require(crc32c(piece[j * size:(j + 1) * size]) == checksums[i * blocks + j], "strip: checksum")
                data = next(filter(None, pieces))
                parts = found.setdefault((offset // 256, place), [])
                require(all(begin + length <= b or b + len(p) <= begin for b, p in parts), "strip: bytes twice")
                parts.append((begin, data[:length]))
        return found

    def _groups(self, number, page, geometry):
        value = self.items.get((number, PARITY, page))
        return ({}, []) if value is None or not self.has_copies else decode_groups(value, geometry.checksums)

    def _disks_of(self, number, kind, page, place, address):
        if address != SCATTERED:
            return {address >> 48}
        return {run[0] >> 48 for run in struct.iter_unpack("<QII", self.items[number, kind, page * 64 + place])}

    def _check_copy(self, number, page, place, address, data, use, copies):
        if place not in copies:
            return
        copy, stored = copies[place]
        require(stored == len(data), "parity: stored bytes")
        require(self._stored(number, page, place, copy, stored, use, PARITY_RUNS) == data, "parity: another copy")
        require(not self._disks_of(number, EXTENT_RUNS, page, place, address)
                & self._disks_of(number, PARITY_RUNS, page, place, copy), "parity: two copies on one disk")
        self.copies += 1

    def _check_group(self, number, page, group, stored_of, geometry, use):
        require(all(place in stored_of for place in group.places), "parity: no records")
        pieces = [stored_of[place] for place in group.places]
        for address, stored in [*group.leavers, group.parity]:
            pieces.append((address, self._stored(number, page, None, address, stored, use)))
        check_group(group, pieces, geometry.codec == ZSTD)
        self.parities += 1

    def _records(self, number, geometry, use):
        """Page, place and decoded bytes of every extent that has a record."""
        for page, value in self.of_kind(number, EXTENTS):
            record_bytes, count, checksum_type, present = struct.unpack_from("<HHB3xQ", value, 0)
            require(checksum_type == CRC32C, "extent page: type of checksum")
            require(record_bytes == geometry.record_bytes and count == bin(present).count("1"), "extent page")
            require(len(value) == 16 + count * record_bytes, "extent page: length")
            places = [place for place in range(64) if present >> place & 1]
            copies, groups = self._groups(number, page, geometry)
            require(all(place in places for place in copies), "parity: no records")
            stored_of = {}
            for i, place in enumerate(places):
                base = 16 + i * record_bytes
                address, birth, written, stored = struct.unpack_from("<QQQI", value, base)
                require(1 <= written <= birth and stored, "extent record")
                checksums = struct.unpack_from(f"<{geometry.checksums}I", value, base + 28)
                data = self._stored(number, page, place, address, stored, use)
                self._check_copy(number, page, place, address, data, use, copies)
                stored_of[place] = (address, data)
                part = stored if geometry.codec == ZSTD else SUB_BLOCK
                for j, checksum in enumerate(checksums):
                    require(crc32c(data[j * part:(j + 1) * part]) == checksum, "extent: checksum")
                if geometry.codec == ZSTD:
                    data = zstd_decode(data, geometry.extent_bytes)
                require(len(data) == geometry.extent_bytes, "extent: size")
                yield page, place, data
            for group in groups:
                self._check_group(number, page, group, stored_of, geometry, use)

    def _image(self, number, inode, use):
        geometry = Geometry(self.items[number, GEOMETRY, 0])
        slab = product(geometry.shape[1:]) * geometry.sample
        require(geometry.shape[0] == ceil_div(inode.size, slab), "image: shape and size")
        out = bytearray(geometry.shape[0] * slab)
        for index, data in self._extents(number, geometry, use):
            require(all(i < g for i, g in zip(index, geometry.grid)), "extent: outside the grid")
            self._put(out, geometry, index, data)
        require(not any(out[inode.size:]), "image: not zero beyond the end")
        return bytes(out[:inode.size])

    @staticmethod
    def _put(out, geometry, index, data):
        shape, extent, sample = geometry.shape, geometry.extent, geometry.sample
        start = [i * e for i, e in zip(index, extent)]
        row = min(extent[-1], shape[-1] - start[-1]) * sample
        for line in range(product(extent[:-1])):
            within = unravel(line, extent[:-1]) if geometry.rank > 1 else []
            position = [s + w for s, w in zip(start, within)]
            if any(p >= n for p, n in zip(position, shape)):
                continue
            to = 0
            for p, n in zip([*position, start[-1]], shape):
                to = to * n + p
            out[to * sample:to * sample + row] = data[line * extent[-1] * sample:][:row]

    def operations(self):
        """Long work on the volume: name, state, bytes done and in all."""
        for (object_number, kind, which), value in sorted(self.items.items()):
            if (object_number, kind) != (VOLUME_OBJECT, OPERATION) or which not in OPERATIONS:
                continue
            require(len(value) >= 368, "operation: length")
            state, _ = struct.unpack_from("<II", value, 0)
            total, done = struct.unpack_from("<QQ", value, 120)
            disks, errors = struct.unpack_from("<HH", value, 360)
            require(state in OPERATION_STATES, "operation: state")
            require(disks <= 64 and errors <= 64 and len(value) == 368 + 32 * (disks + errors), "operation: rows")
            for disk, what in (struct.unpack_from("<HH", value, 368 + 32 * (disks + i) + 24) for i in range(errors)):
                require(disk < 64 and 1 <= what <= 6, "operation: error")
            yield OPERATIONS[which], OPERATION_STATES[state], done, total

    def disk_errors(self):
        """What has gone wrong: disk, and read, write, flush and checksum errors, copies repaired."""
        for (object_number, kind, disk), value in sorted(self.items.items()):
            if (object_number, kind) != (VOLUME_OBJECT, DISK_ERRORS):
                continue
            require(len(value) == 96 and any(value[:16]) and disk < 64, "disk errors")
            yield disk, struct.unpack_from("<5Q", value, 24)

    def verify_space(self):
        """Bitmaps against what the tree uses; content() of everything must have been called with use=True."""
        for index, disk in self.disks.items():
            size = self.commit.members[index][1]
            counts, room = [ceil_div(size, 32768)], [ceil_div(disk.label.room_blocks, 32768)]
            while room[-1] > 1:
                counts.append(ceil_div(counts[-1], 256))
                room.append(ceil_div(room[-1], 256))
            end = 2 * LABEL_AREA + 8192 * sum(room)
            first = ceil_div(end, max(self.block_size, 16384)) * max(self.block_size, 16384) // self.block_size
            last = size - 2 * LABEL_AREA // self.block_size
            in_use = set(range(first)) | set(range(last, counts[0] * 32768)) | self.in_use.get(index, set())
            for number, page in self._bitmaps(disk, counts, room, self.commit.space[index]):
                value = int.from_bytes(page, "little")
                wanted = sum(1 << (block - number * 32768) for block in
                             in_use.intersection(range(number * 32768, (number + 1) * 32768)))
                require(value == wanted, f"disk {index}: bitmap page {number} does not agree with the tree")

    @staticmethod
    def _bitmaps(disk, counts, room, top):
        entries = [top]
        for level in reversed(range(len(counts))):
            below = []
            for page in range(counts[level]):
                crc, place, free = entries[page]
                require(place < 2, "space entry: place")
                data = disk.read(2 * LABEL_AREA + 4096 * (2 * (sum(room[:level]) + page) + place), 4096)
                require(crc32c(data) == crc, f"space page {level}.{page}: checksum")
                if level == 0:
                    require(free == 32768 - bin(int.from_bytes(data, "little")).count("1"), "bitmap: free blocks")
                    yield page, data
                    continue
                own = list(struct.iter_unpack("<IIQ", data))
                require(free == sum(entry[2] for entry in own), "space page: free blocks")
                below += own
            entries = below


def main():
    parser = argparse.ArgumentParser(description="Reads an MDFS volume by the words of doc/FORMAT.md alone.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("ls", "verify", "cat"):
        command = commands.add_parser(name)
        if name == "cat":
            command.add_argument("path")
        command.add_argument("disks", nargs="+", metavar="DISK")
    options = parser.parse_args()
    try:
        run(options)
    except Damaged as damage:
        sys.exit(f"damaged: {damage}")
    except KeyError as missing:
        sys.exit(f"not found: {missing}")


def run(options):
    volume = Volume(options.disks)
    if options.command == "cat":
        number, inode = volume.find(options.path)
        require(not inode.is_directory(), f"{options.path} is a directory")
        sys.stdout.buffer.write(volume.content(number, inode))
        return
    objects = set()
    for path, number, inode in volume.walk():
        if options.command == "ls":
            print(f"{inode.mode:06o} {inode.size} {path}")
        elif number not in objects and not inode.is_directory():
            volume.content(number, inode, use=True)
            for target, _, _ in volume.levels(number):
                volume.content(target, volume.inode(target), use=True)
                objects.add(target)
            if inode.flags & FLAG_IMAGE:
                volume.verify_levels(number, inode)
        objects.add(number)
    if options.command == "verify":
        orphans = [key[2] for key in volume.items if key[:2] == (VOLUME_OBJECT, ORPHAN)]
        for number in orphans:
            volume.content(number, volume.inode(number), use=True)
        require(volume.commit.objects == len(objects | set(orphans)), "commit: objects")
        volume.verify_space()
        for name, state, done, total in volume.operations():
            print(f"{name}: {state}, {done} of {total} bytes")
        for disk, counts in volume.disk_errors():
            print(f"disk {disk}: errors reading {counts[0]}, writing {counts[1]}, flushing {counts[2]}, "
                  f"checksums {counts[3]}; {counts[4]} repaired")
        print(f"{uuid.UUID(bytes=volume.uuid)}: generation {volume.commit.generation}, {volume.nodes} nodes, "
              f"{len(objects)} objects, {volume.copies} copies, {volume.parities} parities, "
              "all checksums hold")


if __name__ == "__main__":
    main()
