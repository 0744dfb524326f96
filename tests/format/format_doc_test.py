#!/usr/bin/env python3
"""The tables of doc/FORMAT.md against what the compiler makes of include/mdfs/ondisk.h.

Usage: format_doc_test.py SOURCE_ROOT COMPILER...
SPDX-License-Identifier: Apache-2.0
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests/format/decoder"))
import mdfs_decode as decoder  # noqa: E402
COMPILER = sys.argv[2:]

HEADING = re.compile(r"^#+ `(mdfs_\w+)`: (\d+) bytes$")
FIELD = re.compile(r"^\| (\d+) \| (\d+) \| `(\w+)` \|")
CONSTANT = re.compile(r"^\| `(MDFS_\w+)` \| (\d+) \|")
NOT_IN_TABLES = {  # spelled out in the text
    "MDFS_LABEL_MAGIC", "MDFS_COMMIT_MAGIC", "MDFS_NODE_MAGIC", "MDFS_STATIC_ASSERT", "MDFS_ONDISK_H", "MDFS_SCATTERED",
    "MDFS_SLOT_PREPARED", "MDFS_SLOT_COMMITTED", "MDFS_ROOT_NONE", "MDFS_ROOT_MAIN", "MDFS_COMMIT_DEGRADED",
    "MDFS_COMPAT_KNOWN", "MDFS_RO_COMPAT_KNOWN", "MDFS_INCOMPAT_KNOWN"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def parse_document(text):
    structures, constants, current = {}, {}, None
    for line in text.splitlines():
        if line.startswith("#"):
            match = HEADING.match(line)
            current = match.group(1) if match else None
            if match:
                structures[current] = (int(match.group(2)), [])
        elif match := FIELD.match(line):
            structures[current][1].append((match.group(3), int(match.group(1)), int(match.group(2))))
        elif match := CONSTANT.match(line):
            constants[match.group(1)] = int(match.group(2))
    return structures, constants


def parse_header(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    structures = {}
    for match in re.finditer(r"^struct (mdfs_\w+) \{(.*?)^\};", text, flags=re.S | re.M):
        fields = re.findall(r"(\w+)(?:\[[^\]]*\])*;", match.group(2))
        structures[match.group(1)] = fields
    return structures, set(re.findall(r"^#define (MDFS_\w+)", text, flags=re.M))


def ask_compiler(structures, constants):
    lines = ['#include <stdio.h>', '#include "mdfs/ondisk.h"', "int main(void) {"]
    for name, fields in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field in fields:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof(struct {name}, {field}), '
                         f"sizeof(((struct {name} *)0)->{field}));")
    for name in constants:
        lines.append(f'printf("{name} %llu\\n", (unsigned long long)({name}));')
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "ask.c"), os.path.join(folder, "ask")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        subprocess.run([*COMPILER, "-std=c11", "-I", os.path.join(ROOT, "include"), source, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: [int(word) for word in line.split()[1:]] for line in output.splitlines()}


class FormatDocumentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document, cls.constants = parse_document(read("doc/FORMAT.md"))
        cls.header, cls.defined = parse_header(read("include/mdfs/ondisk.h"))
        cls.truth = ask_compiler(cls.header, cls.constants)

    def test_every_structure_of_the_header_is_documented_and_no_other(self):
        self.assertEqual(set(self.document), set(self.header))
        self.assertGreater(len(self.header), 15)

    def test_every_structure_has_the_documented_size(self):
        for name, (size, _) in self.document.items():
            self.assertEqual([size], self.truth[name], name)

    def test_every_field_is_documented_in_order_with_its_offset_and_size(self):
        for name, (_, fields) in self.document.items():
            self.assertEqual([field for field, _, _ in fields], self.header[name], name)
            for field, offset, size in fields:
                self.assertEqual([offset, size], self.truth[f"{name}.{field}"], f"{name}.{field}")

    def test_every_byte_of_a_structure_belongs_to_a_field(self):
        for name, (size, fields) in self.document.items():
            end = 0
            for field, offset, length in fields:
                self.assertEqual(offset, end, f"{name}.{field}")
                end = offset + length
            self.assertEqual(end, size, name)

    def test_every_constant_has_the_documented_value(self):
        for name, value in self.constants.items():
            self.assertEqual([value], self.truth[name], name)

    def test_every_constant_of_the_header_is_documented(self):
        self.assertEqual(set(self.constants), self.defined - NOT_IN_TABLES)

    def test_the_pointer_of_the_worked_example_leads_to_its_node(self):
        example = read("doc/FORMAT.md").split("## 12. A worked example")[1]
        node, pointer = (dump(part) for part in example.split("```")[1::2])
        node = node.ljust(16384, b"\0")
        self.assertEqual([len(node), len(pointer)], [16384, self.document["mdfs_pointer"][0]])

        def field(structure, name, data):
            at = {field: slice(offset, offset + size) for field, offset, size in self.document[structure][1]}
            return data[at[name]]

        def number(name):
            return int.from_bytes(field("mdfs_pointer", name, pointer), "little")

        self.assertEqual(number("checksum"), decoder.crc32c(node))
        self.assertEqual(number("birth"), int.from_bytes(field("mdfs_node_header", "generation", node), "little"))
        self.assertEqual([number(name) for name in ("length", "copies", "checksum_type", "reserved")], [16384, 2, 1, 0])
        self.assertEqual(field("mdfs_pointer", "address", pointer), field("mdfs_node_header", "address", node))


def dump(text):
    """The bytes of a hex dump; gaps are zero."""
    data = bytearray()
    for line in text.strip().splitlines():
        match = re.match(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ){7}[0-9a-f]{2})", line)
        data = data.ljust(int(match.group(1), 16), b"\0") + bytes.fromhex(match.group(2))
    return bytes(data)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
