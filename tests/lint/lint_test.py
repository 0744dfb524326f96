#!/usr/bin/env python3
"""Tests that the checks of the sources see what they are there to see.

usage: lint_test.py C_COMPILER CXX_COMPILER
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys
import tempfile
import unittest

import files
import headers
import includes
import layers
import paths
import words

GOOD = "// One sentence about the file.\n// SPDX-License-Identifier: Apache-2.0\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "src").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def one_complaint(self, complaints, words):
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(words, complaints[0])


class Includes(Tree):
    HEADER = """#pragma once
    namespace mdfs {
    inline constexpr unsigned kMost = 3;
    // Not hidden(int).
    std::string size_text(std::uint64_t bytes);
    struct Volume { int inner(int place); };
    template <typename T>
    T largest(T first, T second) { return helper(first, second); }
    }  // namespace mdfs
    """

    def complaints_of(self, source, header="src/base/text.h"):
        self.put(header, self.HEADER)
        self.put("src/store/through.h", '#include "base/text.h"\n')
        self.put("src/store/a.cc", source)
        return includes.check_tree(self.root)

    def test_a_name_of_a_header_that_is_not_included_is_found(self):
        for use in ("return size_text(7);", "auto f = mdfs::size_text(7);", "Volume v;", "int a[kMost];",
                    "largest(1, 2);"):
            with self.subTest(use=use):
                self.one_complaint(self.complaints_of(f"void f() {{ {use} }}"), "declared in src/base/text.h")

    def test_a_header_may_come_through_another(self):
        self.assertEqual(self.complaints_of('#include "store/through.h"\nauto f() { return size_text(kMost); }'), [])

    def test_what_only_looks_like_a_use_is_none(self):
        for text in ("// size_text(7)", 'auto f = "size_text(7)";', "std::size_text(7);", "f.size_text(7);",
                     "f->size_text(7);", "hidden(3);", "inner(3);", "helper(1, 2);", "int size_text(int a);",
                     "const auto size_text = [] {}; size_text();", "template <typename Volume> void f(Volume v);",
                     "void f(int largest) { largest(1); }"):
            with self.subTest(text=text):
                self.assertEqual(self.complaints_of(text), [])

    def test_a_name_of_a_higher_layer_is_another(self):
        self.assertEqual(self.complaints_of("void f() { size_text(7); }", header="src/volume/text.h"), [])


# A phrase per row, and where it is written. Each one holds a retired word.
RETIRED_PHRASES = [
    ("doc/a.md", "the extent spills to disk 1"),
    ("doc/a.md", "the disk that was wished for"),
    ("src/a.cc", "const DataWish asked;"),
    ("doc/a.md", "the blocks are anybody's"),
    ("src/a.cc", "close_owner(object);"),
    ("doc/a.md", "A witness of a write"),
    ("doc/a.md", "mdfsck mends the tree"),
    ("doc/a.md", "the tree heals"),
    ("src/a.h", "class WorkLane {"),
    ("src/a.h", "Lane lane_;"),
    ("src/a.h", "// The alphabet of the crash test."),
    ("doc/a.md", "other faces of the image"),
    ("src/a.cc", "give_birth(inode);"),
    ("doc/a.md", "The commit gives birth to an inode."),
    ("src/a.h", "class Content {"),
    ("src/a.h", "void use(Content& content);"),
    ("src/a.h", "UnitPtr unit;"),
    ("doc/a.md", "some units of one object"),
    ("src/a.h", "engine::Records records;"),
    ("src/a.h", "InsideGate inside(gate);"),
    ("src/a.h", "class CommitGate {"),
    ("doc/a.md", "A strip settles."),
    ("tests/a_test.cc", "TEST(StripsTest, SettlingWithoutRoomLosesNothing) {"),
    ("src/a.h", "class SettleQueue {"),
    ("doc/a.md", "a ripe group"),
    ("doc/a.md", "a torn group"),
    ("tests/a_test.cc", "// groups are torn only in the end"),
    ("src/a.h", "std::vector<LeftPlace> left;"),
    ("doc/a.md", "the places they left"),
    ("doc/a.md", "a left place"),
    ("src/a.cc", "return_home(extent);"),
    ("src/a.cc", "note_left(extent);"),
    ("src/a.cc", "transaction.unlink(run);"),
    ("doc/a.md", "The store lets go of the run."),
    ("src/a.cc", "let_go(run);"),
    ("src/a.h", "void keep(Run run);"),
    ("src/a.h", "// trouble with a disk"),
    ("doc/a.md", "mdfs evacuates disk 2"),
    ("doc/a.md", "to empty a disk"),
    ("src/a.cc", "close_stretch(range);"),
    ("doc/a.md", "a stretch of blocks"),
    ("src/a.cc", "return merit_of(group);"),
    ("src/a.cc", "merits.push_back(1);"),
    ("src/a.cc", "dirt_bytes += 1;"),
    ("src/a.h", "Chance& chance_;"),
    ("tests/a.cc", "// identities of its own"),
    ("tests/a.cc", "// the machine on paper"),
    ("tests/a.cc", "TEST(ScrubTest, ACrashIsGoneOnFrom) {"),
    ("src/a.cc", "if (has_gone_on_without(slot)) return;"),
    ("doc/a.md", "The operation is gone on with."),
    ("src/a.cc", "if (speaks_against(record)) return;"),
    ("doc/a.md", "a copy that is laid anew"),
    ("doc/a.md", "groups laid freshly"),
    ("src/a.h", "struct LaidImage {"),
    ("doc/a.md", "the zone policy of a volume"),
    ("src/a.cc", "options.zone_policy = 1;"),
    ("man/a.1.scd", "the proof of a commit"),
    ("src/store/a.h", "bool proven = false;"),
    ("src/engine/a.h", "// A proof of the commit."),
    ("src/store/a.h", "void confirm();"),
    ("src/store/a.h", "Promise promised;"),
    ("src/engine/a.h", "Room& room;"),
    ("src/volume/a.h", "// the promised blocks"),
    ("src/engine/a.h", "// The extent is linked."),
    ("src/alloc/a.h", "// unlinked blocks"),
    ("bench/a.py", "# on the disks and linked, but not committed"),
    ("src/store/a.h", "// gated blocks"),
    ("src/engine/a.h", "Claims claims;"),
    ("src/alloc/a.h", "// A window."),
    ("src/store/a.h", "// A window."),
    ("src/a.h", "// Blocks that nobody uses."),
    ("README.md", "a file that anybody may read"),
    ("dev", "# a lane of tests on paper"),
    ("python/mdfs/a.py", "# laid anew"),
    ("systemd/mdfs@.service.in", "# chance"),
    ("debian/control", " the disk is settled"),
    ("tools/a.h", "// The first loss in words."),
    ("src/a.h", "// the log says so"),
    ("man/a.1.scd", "the operation goes on"),
]
# The same words in another sense.
ALLOWED_PHRASES = [
    ("doc/a.md", "It is healthy, as we recommend: a spillover."),
    ("src/views/a.h", "// A window."),
    ("src/device/a.cc", "std::array<std::uint64_t, 4> lane{};"),
    ("doc/a.md", "a torn write, a hard link, the user `nobody`"),
    ("doc/a.md", "A cut may leave a disk without the last commit."),
    ("src/model/a.h", "// units of measure; an empty disk"),
    ("tests/a_test.cc", "TEST(ATest, ItGoesOnAfterAKill) {  // nobody writes"),
]


class WordsTest(Tree):
    def test_each_phrase_with_a_retired_word_is_found(self):
        for name, phrase in RETIRED_PHRASES:
            with self.subTest(phrase):
                self.put(name, phrase + "\n")
                self.assertNotEqual(words.check_tree(self.root), [])
                self.put(name, "")

    def test_each_rule_has_a_phrase(self):
        for pattern in {rule[-2] for rule in words.RETIRED + words.RETIRED_BELOW}:
            with self.subTest(pattern):
                self.assertTrue(any(words.find(pattern, phrase) for _, phrase in RETIRED_PHRASES))

    def test_the_same_words_in_another_sense_pass(self):
        for name, phrase in ALLOWED_PHRASES:
            with self.subTest(phrase):
                self.assertEqual(words.check_text(pathlib.PurePath(name), phrase), [])

    def test_a_retired_word_is_found_with_what_is_written_instead(self):
        self.put("doc/a.md", "It is clean.\nA witness of it.\n")
        self.one_complaint(words.check_tree(self.root), "a.md:2: 'witness' is retired: checksum record")
        self.put("doc/a.md", "It is healthy, as we recommend.\n")
        self.assertEqual(words.check_tree(self.root), [])

    def test_a_word_with_another_sense_elsewhere_is_retired_in_its_folder(self):
        self.put("src/alloc/a.h", "// A window.\n")
        self.put("src/views/a.h", "// A window.\n")
        self.one_complaint(words.check_tree(self.root), "src/alloc/a.h:1: 'window' is retired: preallocation")


class OutputTest(Tree):
    def test_a_program_that_prints_past_the_escaping_of_names_is_found(self):
        for line in ("fmt::print(\"{}\", name);", "std::cout << name;", "print_out(\"{}\", json.dump(2));"):
            self.put("tools/a.cc", GOOD + line + "\n")
            self.put("src/a.cc", GOOD + line + "\n")
            self.one_complaint(files.check_tree(self.root), "tools/a.cc:3: prints past")


class PathsTest(Tree):
    def complaints(self, text):
        self.put("src/engine/cache.h", "")
        self.put("tests/sim/a_test.py", "")
        self.put("doc/a.md", text)
        return paths.check_tree(self.root)

    def test_names_of_files_and_folders_that_are_there_pass(self):
        self.assertEqual(self.complaints("`engine/cache.h`, cache.h, src/engine, `tests/sim/`, tests/sim/a_test.py.\n"
                                         "```\ncat a/missing.h\n```\n`*.cc`, tests/*/none.h, doc/a.md\n"), [])

    def test_names_of_files_and_folders_that_are_not_there_are_seen(self):
        self.one_complaint(self.complaints("```\n```\nSee `policy.h`.\n"), "doc/a.md:3: there is no policy.h")
        self.one_complaint(self.complaints("store/cache.h\n"), "there is no store/cache.h")
        self.one_complaint(self.complaints("In src/layout are\n"), "there is no src/layout")

    def test_names_of_the_sources_and_tests_that_are_not_there_are_seen(self):
        self.put("src/engine/engine.cc", "class Engine { void write(); int is_open; };")
        self.put("tests/mount/disks_test.py", "")
        self.assertEqual(self.complaints("`Engine`, `Engine::write`, `Engine::write()`, Reader, `is_open`\n"), [])
        self.assertEqual(self.complaints("`mount_disks`\n"), [])
        self.one_complaint(self.complaints("`mount_disk`\n"), "there is no mount_disk")
        self.one_complaint(self.complaints("`is_closed`\n"), "there is no is_closed")
        self.one_complaint(self.complaints("`Reader`\n"), "doc/a.md:1: there is no Reader")
        self.one_complaint(self.complaints("`Engine::read`\n"), "there is no Engine::read")


class LayersTest(Tree):
    def setUp(self):
        super().setUp()
        rows = layers.LAYERS + [f"engine/{name}" for name in layers.ENGINE_FOLDERS]
        self.put(layers.DOCUMENT, "".join(f"| {row} | what it does |\n" for row in rows) + "`src/device/testing`\n")

    def include(self, layer, include):
        self.put(f"src/{layer}/a.cc", f"#include {include}\n")
        return layers.check_tree(self.root)

    def test_down_is_allowed(self):
        self.assertEqual(self.include("store", '"device/disk.h"'), [])

    def test_up_is_seen(self):
        self.one_complaint(self.include("device", '"store/store.h"'), "src/device/a.cc:1: device lies below store")

    def test_sim_knows_only_geometry_and_model(self):
        self.one_complaint(self.include("sim", '"store/store.h"'), "sim may not include store")
        self.assertEqual(self.include("sim", '"geometry/geometry.h"'), [])

    def test_a_third_party_header_in_the_wrong_folder_is_seen(self):
        self.one_complaint(self.include("store", "<liburing.h>"), "<liburing.h> belongs in device")

    def test_an_unknown_library_is_seen(self):
        self.one_complaint(self.include("store", "<boost/any.hpp>"), "in no table")
        self.one_complaint(self.include("store", "<lz4.h>"), "in no table")
        self.assertEqual(self.include("store", "<signal.h>"), [])

    def test_a_test_library_in_the_product_is_seen(self):
        self.one_complaint(self.include("base", "<gtest/gtest.h>"), "belongs in tests")

    def test_a_disk_for_tests_in_a_program_is_seen(self):
        self.one_complaint(self.include("store", '"device/testing/memory_disk.h"'), "only tests and benchmarks include")
        self.put("src/store/a.cc", "")
        self.assertEqual(self.include("device/testing", '"device/testing/memory_disk.h"'), [])

    def test_input_and_output_in_pure_code_is_seen(self):
        self.one_complaint(self.include("geometry", "<fstream>"), "geometry is pure code")

    def test_a_header_without_its_layer_is_seen(self):
        self.put("src/base/b.h", "")
        self.one_complaint(self.include("base", '"b.h"'), 'write "base/b.h"')

    def test_a_circle_of_a_header_and_another_source_is_seen(self):
        self.put("src/store/a.h", '#include "store/b.h"\n')
        self.put("src/store/b.h", "")
        self.put("src/store/b.cc", '#include "store/b.h"\n#include "store/c.h"\n')
        self.put("src/store/c.h", "")
        self.assertEqual(layers.check_tree(self.root), [])
        self.put("src/store/c.cc", '#include "store/a.h"\n')
        self.one_complaint(layers.check_tree(self.root), "src/store/c.cc: includes go in a circle: "
                           "store/a -> store/b -> store/c -> store/a")

    def test_a_circle_through_subfolders_is_seen(self):
        self.put("src/engine/a.h", '#include "engine/map/b.h"\n')
        self.put("src/engine/map/b.h", '#include "engine/a.h"\n')
        self.one_complaint(layers.check_tree(self.root), "in a circle: engine/a -> engine/map/b -> engine/a")

    def test_each_circle_is_named(self):
        for name in ("a", "b"):
            self.put(f"src/store/{name}1.h", f'#include "store/{name}2.h"\n')
            self.put(f"src/store/{name}2.h", f'#include "store/{name}1.h"\n')
        self.assertEqual(len(layers.check_tree(self.root)), 2)

    def test_a_subfolder_of_the_engine_that_includes_one_above_it_is_seen(self):
        self.put("src/engine/write/w.h", '#include "engine/read/r.h"\n')
        self.put("src/engine/read/r.h", "")
        self.assertEqual(layers.check_tree(self.root), [])
        self.put("src/engine/map/m.h", '#include "engine/read/r.h"\n')
        self.one_complaint(layers.check_tree(self.root), "engine/map lies below engine/read")
        self.put("src/engine/map/m.h", "")
        self.put("src/engine/other/o.h", '#include "engine/map/m.h"\n')
        self.one_complaint(layers.check_tree(self.root), "engine/other is in no table")

    def test_the_plugin_uses_libmdfs_and_gstreamer_alone(self):
        self.put("gst/a.cc", '#include <gst/gst.h>\n#include <mdfs/mdfs.h>\n#include "a.h"\n')
        self.assertEqual(layers.check_tree(self.root), [])
        self.put("gst/a.cc", '#include "geometry/geometry.h"\n')
        self.one_complaint(layers.check_tree(self.root), "gst/a.cc:1: gst uses libmdfs alone")
        self.put("gst/a.cc", '#include "geometry/display.h"\n')
        self.assertEqual(layers.check_tree(self.root), [])
        self.put("gst/a.cc", "<fmt/format.h>\n#include <fmt/format.h>\n")
        self.one_complaint(layers.check_tree(self.root), "gst/a.cc:2: <fmt/format.h> belongs in")
        self.put("gst/a.cc", "")
        self.one_complaint(self.include("views", "<gst/gst.h>"), "<gst/gst.h> belongs in gst")

    def test_a_folder_that_is_no_layer_is_seen(self):
        self.one_complaint(self.include("util", "<vector>"), "src/util is no layer")


    def test_a_folder_that_the_page_of_the_architecture_does_not_describe_is_seen(self):
        self.put("src/store/a.h", "")
        self.put("src/engine/map/a.h", "")
        self.assertEqual(layers.check_tree(self.root), [])
        self.put("src/store/check/a.h", "")
        self.one_complaint(layers.check_tree(self.root), "src/store/check is not described")
        self.put(layers.DOCUMENT, "| store | |\n| engine/map | |\n`src/store/check`\n")
        self.one_complaint(layers.check_tree(self.root), "the rows of folders are store, not store, engine")
        self.put(layers.DOCUMENT, "| engine | |\n| store | |\n| engine/map | |\n`src/store/check`\n")
        self.one_complaint(layers.check_tree(self.root), "the rows of folders are engine, store, not store, engine")


class FilesTest(Tree):
    def complaints(self, text, name="src/base/a.cc"):
        self.put(name, text)
        return files.check_tree(self.root)

    def test_a_good_file_passes(self):
        self.assertEqual(self.complaints(GOOD + "int x;\n"), [])

    def test_a_missing_sentence_is_seen(self):
        self.one_complaint(self.complaints("#pragma once\n// SPDX-License-Identifier: Apache-2.0\n"), "one sentence")

    def test_a_missing_licence_is_seen(self):
        self.one_complaint(self.complaints("// One sentence about the file.\nint x;\n"), "no SPDX line")
        joined = "// One sentence about the file. SPDX-License-Identifier: Apache-2.0\nint x;\n"
        self.one_complaint(self.complaints(joined), "the SPDX line has something before it")

    def test_long_lines_and_files_are_seen(self):
        self.one_complaint(self.complaints(GOOD + "//" + "x" * 119 + "\n"), "121 columns")
        self.one_complaint(self.complaints(GOOD + "//\n" * 600), "split it")

    def test_leftovers_are_seen(self):
        self.one_complaint(self.complaints(GOOD + "// TO" + "DO: more\n"), "unfinished work")
        self.one_complaint(self.complaints(GOOD + "\tint x;\n"), "a tab")
        self.one_complaint(self.complaints(GOOD + "int x; \n"), "blanks")
        self.one_complaint(self.complaints(GOOD + "int x;"), "no end")


class DocumentsTest(Tree):
    def test_a_long_line_of_a_document_is_seen(self):
        for name in ("README.md", "doc/a.md", "man/a.1.scd"):
            self.put(name, "x" * 100 + "\n")
            self.assertEqual(files.check_tree(self.root), [])
            self.put(name, "\n" + "x" * 101 + "\n")
            self.one_complaint(files.check_tree(self.root), f"{name}:2: 101 columns, more than 100")
            self.put(name, "")

    def test_a_long_line_of_another_text_is_seen(self):
        for name in ("dev", "src/base/meson.build", "completion/_a", "debian/control", "systemd/a.conf",
                     "python/a/b.py"):
            self.put(name, "x" * 120 + "\n")
            self.assertEqual(files.check_tree(self.root), [])
            self.put(name, "x" * 121 + "\n")
            self.one_complaint(files.check_tree(self.root), f"{name}:1: 121 columns, more than 120")
            self.put(name, "")

    def test_a_row_of_a_table_may_be_longer(self):
        self.put("doc/a.md", "| " + "x" * 100 + " |\n")
        self.assertEqual(files.check_tree(self.root), [])


class HeadersTest(Tree):
    def complaints(self):
        return headers.check_tree(self.root, self.root / "cache", *COMPILERS)

    def test_a_header_that_needs_another_is_seen_and_seen_again(self):
        self.put("src/base/a.h", "#pragma once\n#include <cstdint>\nstd::uint8_t a();\n")
        self.assertEqual(self.complaints(), ([], 1))
        self.put("src/base/b.h", "#pragma once\nstd::string b();\n")
        for _ in range(2):
            self.one_complaint(self.complaints()[0], "src/base/b.h does not compile alone")

    def test_what_others_include_and_a_header_does_not_is_seen(self):
        for name in "abcdef":
            self.put(f"src/base/{name}.h", f"#pragma once\n#include <map>\n#include <vector>\n"
                                           f"std::map<int, std::vector<int>> {name}();\n")
        self.assertEqual(self.complaints(), ([], 6))
        (self.root / "cache").unlink()
        self.put("src/base/g.h", "#pragma once\n#include <vector>\nstd::map<int, std::vector<int>> g();\n")
        self.one_complaint(self.complaints()[0], "src/base/g.h does not compile alone")

    def test_system_headers_are_precompiled_only_for_headers_that_include_them(self):
        small, large, other = frozenset({"map"}), frozenset({"map", "vector"}), frozenset({"string"})
        needs = [large] * 10 + [small] * 4 + [other]
        self.assertEqual(headers.shared_sets(needs, 8), [large, small])
        self.assertEqual(headers.shared_sets(needs, 1), [large])
        self.assertEqual(headers.shared_sets([], 8), [])

    def test_a_public_header_that_is_no_c_is_seen(self):
        self.put("include/mdfs/c.h", "namespace mdfs {}\n")
        self.one_complaint(self.complaints()[0], "include/mdfs/c.h as C does not compile alone")

    def test_a_change_below_a_good_header_is_seen(self):
        self.put("src/base/a.h", "#pragma once\nusing A = int;\n")
        self.put("src/base/b.h", '#pragma once\n#include "base/a.h"\nA b();\n')
        self.assertEqual(self.complaints(), ([], 2))
        self.put("src/base/a.h", "#pragma once\n")
        self.one_complaint(self.complaints()[0], "src/base/b.h does not compile alone")


if __name__ == "__main__":
    COMPILERS = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
