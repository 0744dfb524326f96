#!/usr/bin/env python3
"""Compiles each header alone: src/, gst/ and tests/support/ as C++20, include/mdfs/ as C11 and C++20.

usage: headers.py SOURCE_ROOT CACHE_FILE C_COMPILER CXX_COMPILER
A header that compiled and has not changed since, nor anything that it includes from this tree, is not compiled again.
Headers of the system are read once for several headers of this tree: as precompiled headers that hold nothing which
the header, or what it includes, does not include itself.
"""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

RADOS = "rados/librados.hpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*if", re.MULTILINE)
PACKAGES = ["fmt", "spdlog", "liburing", "blkid", "fuse3"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
DEFINES = ["-D_FILE_OFFSET_BITS=64", "-D_GNU_SOURCE"]


def package_flags():
    result = subprocess.run(["pkg-config", "--cflags", *PACKAGES], capture_output=True, text=True, check=True)
    return shlex.split(result.stdout)


@functools.cache
def included(root, path):
    """What a header includes: the paths of headers of this tree, and the names of headers of the system."""
    ours, systems = [], []
    for name in INCLUDE.findall(path.read_text()):
        folders = (root / "include", root / "src", root / "tests/support", path.parent)
        found = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if found:
            ours.append(found)
        else:
            systems.append(name)
    return ours, systems


def digest(root, path, seen):
    """Of a header and of all headers of this tree that it includes."""
    if path in seen:
        return b""
    seen.add(path)
    total = hashlib.sha256(path.read_bytes())
    for header in included(root, path)[0]:
        total.update(digest(root, header, seen))
    return total.digest()


def system_headers(root, path, seen):
    """The headers of the system that a header includes for certain, through headers of this tree as well."""
    if path in seen or CONDITION.search(path.read_text()):
        return frozenset()
    seen.add(path)
    ours, systems = included(root, path)
    return frozenset(systems).union(*(system_headers(root, header, seen) for header in ours))


def shared_sets(needs, most):
    """Up to `most` of the sets in `needs`, those that spare most when each set uses the largest that it contains."""
    chosen, spared = [], [0] * len(needs)

    def gain(candidate):
        """How many headers are not read again, less those of the candidate itself: precompiling takes twice as long."""
        better = (max(0, len(candidate) - s) for n, s in zip(needs, spared) if candidate <= n)
        return sum(better) - 2 * len(candidate)

    for _ in range(most):
        best = max(sorted(set(needs), key=sorted), key=gain, default=frozenset())
        if not best or gain(best) <= 0:
            break
        chosen.append(best)
        spared = [max(s, len(best)) if best <= n else s for n, s in zip(needs, spared)]
    return chosen


class Precompiled:
    """Sets of system headers, precompiled in a folder, for jobs that have one compiler and its options."""

    MOST = 8

    def __init__(self, root, folder, todo, pool):
        self.folder = folder
        self.compiler = todo[0][2] if todo else []
        self.needs = {header: system_headers(root, header, set()) for _, header, _, _ in todo}
        sets = shared_sets(list(self.needs.values()), self.MOST)
        paths = pool.map(self.precompile, range(len(sets)), sets)
        self.made = {headers: path for headers, path in zip(sets, paths) if path}

    def precompile(self, number, headers):
        """The path to include; None if the set does not compile."""
        path = self.folder / f"set{number}.h"
        path.write_text("".join(f"#include <{name}>\n" for name in sorted(headers)))
        command = self.compiler + ["-x", "c++-header", str(path), "-o", f"{path}.gch"]
        return path if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None

    def options(self, header, compiler):
        """For the compilation of a header: the largest set of which it includes everything itself."""
        if compiler != self.compiler or header not in self.needs:
            return []
        sets = [headers for headers in self.made if headers <= self.needs[header]]
        return ["-Winvalid-pch", "-include", str(self.made[max(sets, key=len)])] if sets else []


@functools.cache
def compiles(words):
    return subprocess.run(words, input="", text=True, stderr=subprocess.DEVNULL, check=False).returncode == 0


def has_header(compiler, name):
    return compiles((*compiler, "-x", "c++", "-fsyntax-only", "-include", name, "-"))


def jobs(root, c_compiler, cxx_compiler):
    """(name, header, compiler with its options) of each compilation."""
    flags = WARNINGS + DEFINES + ["-I", str(root / "include")]
    ours = ["-I", str(root / "src"), "-I", str(root / "tests/support")] + package_flags()
    c = shlex.split(c_compiler) + ["-std=c11"] + flags
    cxx = shlex.split(cxx_compiler) + ["-std=c++20"] + flags
    found = []
    for header in sorted((root / "include/mdfs").glob("*.h")):
        found.append((f"{header.relative_to(root)} as C++", header, cxx))
        found.append((f"{header.relative_to(root)} as C", header, c))
    for folder in ("src", "tests/support"):
        for header in sorted((root / folder).rglob("*.h")):
            if RADOS in system_headers(root, header, set()) and not has_header(cxx, RADOS):
                continue  # a build without librados has none of them
            found.append((str(header.relative_to(root)), header, cxx + ours))
    for header in sorted((root / "gst").glob("*.h")):
        # A build without GStreamer has none of the others.
        if not any(name.startswith("gst/") for name in system_headers(root, header, set())):
            found.append((str(header.relative_to(root)), header, cxx + ["-I", str(root / "src")]))
    return found


def compile_alone(header, compiler, precompiled):
    language = "c" if "-std=c11" in compiler else "c++"
    command = compiler + precompiled.options(header, compiler) + ["-x", language, "-fsyntax-only", "-"]
    source = f'#include "{header}"\nextern int not_empty;\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return result.returncode == 0, result.stderr


def check_tree(root, cache_file, c_compiler, cxx_compiler):
    cache = json.loads(cache_file.read_text()) if cache_file.exists() else {}
    todo, good = [], {}
    for name, header, compiler in jobs(root, c_compiler, cxx_compiler):
        key = hashlib.sha256(digest(root, header, set()) + " ".join(compiler).encode()).hexdigest()
        if cache.get(name) == key:
            good[name] = key
        else:
            todo.append((name, header, compiler, key))
    complaints = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        precompiled = Precompiled(root, pathlib.Path(folder), [job for job in todo if job[0].startswith("src/")],
                                  pool)
        results = pool.map(lambda job: compile_alone(job[1], job[2], precompiled), todo)
        for (name, _, _, key), (ok, text) in zip(todo, results):
            if ok:
                good[name] = key
            else:
                complaints.append(f"{name} does not compile alone:\n{text}")
    cache_file.write_text(json.dumps(good))
    return complaints, len(good)


def main():
    root, cache_file = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    complaints, good = check_tree(root, cache_file, sys.argv[3], sys.argv[4])
    print("\n".join(complaints) or f"{good} headers compile alone")
    return 1 if complaints or good == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
