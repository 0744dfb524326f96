#!/usr/bin/env python3
"""Compiles each header alone: src/ and tests/support/ as C++20, include/mdfs/ as C11 and C++20.

usage: headers.py SOURCE_ROOT CACHE_FILE C_COMPILER CXX_COMPILER
A header that compiled and has not changed since, nor anything that it includes from this tree, is not compiled again.
"""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
PACKAGES = ["fmt", "spdlog", "liburing", "blkid", "fuse3"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
DEFINES = ["-D_FILE_OFFSET_BITS=64", "-D_GNU_SOURCE"]


def package_flags():
    result = subprocess.run(["pkg-config", "--cflags", *PACKAGES], capture_output=True, text=True, check=True)
    return shlex.split(result.stdout)


def digest(root, path, seen):
    """Of a header and of all headers of this tree that it includes."""
    if path in seen:
        return b""
    seen.add(path)
    text = path.read_text()
    total = hashlib.sha256(text.encode())
    for name in INCLUDE.findall(text):
        for folder in (root / "include", root / "src", path.parent):
            if (folder / name).is_file():
                total.update(digest(root, folder / name, seen))
                break
    return total.digest()


def jobs(root, c_compiler, cxx_compiler):
    """(name, header, command) of each compilation."""
    flags = WARNINGS + DEFINES + ["-I", str(root / "include")]
    cxx = shlex.split(cxx_compiler) + ["-std=c++20", "-x", "c++"] + flags + ["-fsyntax-only", "-"]
    ours = ["-I", str(root / "src"), "-I", str(root / "tests/support")] + package_flags()
    found = []
    for header in sorted((root / "include/mdfs").glob("*.h")):
        found.append((f"{header.relative_to(root)} as C++", header, cxx))
        c = shlex.split(c_compiler) + ["-std=c11", "-x", "c"] + flags + ["-fsyntax-only", "-"]
        found.append((f"{header.relative_to(root)} as C", header, c))
    for folder in ("src", "tests/support"):
        for header in sorted((root / folder).rglob("*.h")):
            found.append((str(header.relative_to(root)), header, cxx[:-2] + ours + cxx[-2:]))
    return found


def compile_alone(header, command):
    source = f'#include "{header}"\nextern int not_empty;\n'
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return result.returncode == 0, result.stderr


def check_tree(root, cache_file, c_compiler, cxx_compiler):
    cache = json.loads(cache_file.read_text()) if cache_file.exists() else {}
    todo, good = [], {}
    for name, header, command in jobs(root, c_compiler, cxx_compiler):
        key = hashlib.sha256(digest(root, header, set()) + " ".join(command).encode()).hexdigest()
        if cache.get(name) == key:
            good[name] = key
        else:
            todo.append((name, header, command, key))
    complaints = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: compile_alone(job[1], job[2]), todo)
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
