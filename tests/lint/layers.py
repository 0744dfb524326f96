#!/usr/bin/env python3
"""Checks that includes in src/ go down the list of layers, that no headers and sources of a folder include each other
in a circle, that each third-party library stays in its folder, and that doc/ARCHITECTURE.md describes each folder.

usage: layers.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

LAYERS = ["base", "channel", "geometry", "layout", "format", "codec", "model", "device", "alloc", "store", "engine",
          "volume", "maintenance", "views", "streams", "fuse", "meter", "sim"]
# Layers that use fewer than all those below them. meter and sim are used by programs alone.
ONLY_USES = {"channel": {"base", "channel"}, "layout": {"base", "geometry", "layout"},
             "meter": {"base", "model", "meter"},
             "sim": {"base", "geometry", "layout", "model", "device", "streams", "sim"}}
FOR_PROGRAMS = {"meter", "sim"}

# The subfolders of src/engine: includes go down this list, too. Files of src/engine itself lie beside all of them.
ENGINE_FOLDERS = ["cache", "strips", "map", "read", "write", "relocate"]

# Folders beside src/ whose includes are checked. gst/ is built on libmdfs alone, but for how samples are shown.
BESIDE = ["tools", "gst"]
GST_SHARES = {"geometry/display.h"}

# Third-party headers: what the name in <> begins with, and the folders of src/ (or BESIDE) that may include it.
# An empty set: nowhere but in tests and benchmarks.
THIRD_PARTY = {
    "fmt/": set(LAYERS) | {"tools"},
    "spdlog/": {"base"},
    "isa-l": {"base", "gst"},
    "sodium": {"format"},
    "zstd": {"codec", "tools"},
    "zlib": {"tools"},
    "lzma": {"tools"},
    "spng": {"views"},
    "jpeglib": {"views"},
    "liburing": {"device"},
    "blkid/": {"device"},
    "rados/": {"device"},
    "fuse": {"fuse"},
    "sys/capability": {"fuse", "tools"},
    "seccomp": {"fuse"},
    "systemd": {"fuse"},
    "sys/acl": {"fuse", "tools"},
    "acl/": {"fuse", "tools"},
    "toml++/": {"model"},
    "nlohmann/": {"device", "volume", "maintenance", "views", "model", "fuse", "sim", "tools"},
    "OpenImageIO/": {"tools"},
    "CLI/": {"tools"},
    "httplib": {"tools"},
    "gst/": {"gst", "tools"},
    "glib": {"tools"},
    "gtest/": set(), "gmock/": set(), "rapidcheck": set(), "benchmark/": set(),
}
# Disks that no program is linked with.
TEST_DISKS = "device/testing/"

# Headers, and folders of them, that come with the C library and the kernel.
SYSTEM_HEADERS = {"dirent.h", "dlfcn.h", "fcntl.h", "fts.h", "grp.h", "limits.h", "malloc.h", "mntent.h", "netdb.h",
                  "poll.h", "pthread.h", "pwd.h", "sched.h", "signal.h", "spawn.h", "stdio.h", "syslog.h", "time.h",
                  "ucontext.h", "unistd.h"}
SYSTEM_FOLDERS = {"sys", "linux", "asm", "net", "netinet", "arpa"}

# Layers that know no file, clock, thread or random number (DESIGN: pure code), and what they therefore do not include.
PURE = {"geometry", "layout", "format", "codec", "alloc"}
IMPURE_HEADERS = {"thread", "mutex", "shared_mutex", "condition_variable", "chrono", "random", "fstream", "iostream",
                  "filesystem", "unistd.h", "fcntl.h", "time.h", "ctime", "pthread.h"}

DOCUMENT = "doc/ARCHITECTURE.md"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def third_party_rule(name):
    for prefix, folders in THIRD_PARTY.items():
        if name.startswith(prefix):
            return folders
    return None


def check_include(layer, name, quoted, path):
    """The complaint about one include, or None."""
    folder = name.split("/")[0] if "/" in name else None
    if quoted and name.startswith(TEST_DISKS) and TEST_DISKS.rstrip("/") not in path.parent.as_posix():
        return f"only tests and benchmarks include {TEST_DISKS}"
    if folder in LAYERS and quoted:
        if layer == "gst" and name not in GST_SHARES:
            return f"gst uses libmdfs alone and may not include {folder}"
        if layer in ONLY_USES and folder not in ONLY_USES[layer]:
            return f"{layer} may not include {folder}"
        if layer in LAYERS and LAYERS.index(folder) > LAYERS.index(layer):
            return f"{layer} lies below {folder} and may not include it"
        if folder in FOR_PROGRAMS and layer in LAYERS and layer != folder:
            return f"only programs include {folder}"
        return None
    if folder == "mdfs":
        return None
    if quoted:
        if layer in LAYERS and not (path.parent / name).exists():
            return f'"{name}" names no layer'
        if layer in LAYERS and not name.endswith(".inc"):
            return f'write "{layer}/{name}", not "{name}"'
        return None
    rule = third_party_rule(name)
    if rule is not None:
        return None if layer in rule else f"<{name}> belongs in {', '.join(sorted(rule)) or 'tests'}"
    is_system = folder in SYSTEM_FOLDERS or folder is None and (name in SYSTEM_HEADERS or not name.endswith(".h"))
    if not is_system:
        return f"<{name}> is in no table of tests/lint/layers.py"
    if layer in PURE and name in IMPURE_HEADERS:
        return f"{layer} is pure code: no <{name}>"
    return None


def check_engine_folders(name, path):
    """The complaint about an include of a file in a subfolder of src/engine, or None."""
    if path.parent.parent.name != "engine" or not name.startswith("engine/") or name.count("/") != 2:
        return None
    to, own = name.split("/")[1], path.parent.name
    if own not in ENGINE_FOLDERS or to not in ENGINE_FOLDERS:
        return f"engine/{own if own not in ENGINE_FOLDERS else to} is in no table of tests/lint/layers.py"
    if ENGINE_FOLDERS.index(to) > ENGINE_FOLDERS.index(own):
        return f"engine/{own} lies below engine/{to} and may not include it"
    return None


def includes_in_folders(source):
    """For each module (a header with its source, named without suffix): the modules of the same layer that it includes,
    and the file that does."""
    found = {}
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".h", ".cc", ".c"}:
            continue
        own = path.relative_to(source).with_suffix("").as_posix()
        for line in path.read_text().splitlines():
            match = INCLUDE.match(line)
            if match is None or match.group(1) != '"' or not (source / match.group(2)).is_file():
                continue
            to = pathlib.PurePosixPath(match.group(2)).with_suffix("").as_posix()
            if to != own and to.split("/")[0] == own.split("/")[0]:
                found.setdefault(own, {}).setdefault(to, path.relative_to(source).as_posix())
    return found


def find_circle(includes):
    """The modules of a circle in the order in which they include each other, the first one again at the end, or []."""
    done = set()
    for start in sorted(includes):
        stack = [(start, iter(sorted(includes[start])))] if start not in done else []
        way = [start]
        while stack:
            module, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(module)
                stack.pop()
                way.pop()
            elif following in way:
                return way[way.index(following):] + [following]
            elif following not in done:
                stack.append((following, iter(sorted(includes.get(following, {})))))
                way.append(following)
    return []


def check_circles(root):
    includes = includes_in_folders(root / "src")
    complaints = []
    while circle := find_circle(includes):
        last, first = circle[-2], circle[-1]
        complaints.append(f"src/{includes[last][first]}: includes go in a circle: {' -> '.join(circle)}")
        del includes[last][first]
    return complaints


def check_document(root):
    """doc/ARCHITECTURE.md has a row for each layer and each subfolder of the engine, lowest first, and names all other
    folders of src/."""
    text = (root / DOCUMENT).read_text()
    complaints = []
    for prefix, known in (("", LAYERS), ("engine/", ENGINE_FOLDERS)):
        wanted = [f"{prefix}{name}" for name in known if (root / "src" / prefix / name).is_dir()]
        rows = [row for row in re.findall(r"^\| ([a-z/]+) \|", text, re.MULTILINE) if row in wanted]
        if list(dict.fromkeys(rows)) != wanted:
            complaints.append(f"{DOCUMENT}: the rows of folders are {', '.join(rows)}, not {', '.join(wanted)}")
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root / "src").as_posix()
        if "/" in name and path.is_dir() and not name.startswith("engine/") and f"`src/{name}`" not in text:
            complaints.append(f"{DOCUMENT}: src/{name} is not described")
    return complaints


def check_tree(root):
    complaints = check_circles(root) + check_document(root)
    files = [(path, path.relative_to(root / "src").parts[0]) for path in sorted((root / "src").rglob("*"))]
    for folder in BESIDE:
        files += [(path, folder) for path in sorted((root / folder).rglob("*"))]
    for path, layer in files:
        if path.suffix not in {".h", ".cc", ".c"}:
            continue
        if layer not in BESIDE and layer not in LAYERS:
            complaints.append(f"{path.relative_to(root)}: src/{layer} is no layer")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            complaint = match and (check_include(layer, match.group(2), match.group(1) == '"', path)
                                   or check_engine_folders(match.group(2), path))
            if complaint:
                complaints.append(f"{path.relative_to(root)}:{number}: {complaint}")
    return complaints


def main():
    complaints = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "includes go down")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
