#!/usr/bin/env python3
"""Checks that each source of src/, lib/, gst/ and tools/ includes the headers of the names that it uses, itself or
through other headers. The builds of ./dev compile many sources as one, which hides a missing include.

usage: includes.py SOURCE_ROOT
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

from layers import LAYERS

FOLDERS = ["src", "lib", "gst", "tools"]  # a quoted name may be relative to each of them
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
TYPE = re.compile(r"\b(?:class|struct|enum(?: class)?|using)\s+([A-Z]\w*)\s*(?:final\s*)?[:={]")
CONSTANT = re.compile(r"\bconstexpr\b[^;={(]*?\b(k[A-Z]\w*)\s*[={\[]")
FUNCTION = re.compile(r"[\w>&*\]]\s+[&*]?([a-z]\w*)\s*\(")
# A use: a function that is called, a type or a constant, none of them a member. With the namespaces before it.
USE = re.compile(r"(?<![\w.:>])((?:\w*::)*)([a-z]\w*(?=\s*\()|k?[A-Z]\w*)")
NAMESPACE_BEGINS = re.compile(r"\bnamespace[\w:\s]*$|extern\s*$")
NOT_OURS = {"decltype", "read", "write"}  # of the language and of the system, which headers of ours name, too
NOT_BEFORE_A_NAME = {"return", "else", "co_return", "case", "throw", "not", "and", "or", "new", "co_await"}


def without_hidden(text):
    """The text with neither comments nor literals."""
    return HIDDEN.sub(" ", text)


def declared(text):
    """Names that a header declares outside of types and functions: of functions, types and constants."""
    outer, depth = [], 0
    for piece in re.split(r"([{}])", text):
        if piece == "{" and depth == 0:
            is_namespace = outer and NAMESPACE_BEGINS.search(outer[-1])
            outer.append(";" if is_namespace else "{")
            depth = 0 if is_namespace else 1
        elif piece == "{":
            depth += 1
        elif piece == "}" and depth > 0:
            depth -= 1
            outer.append(";")
        elif depth == 0:
            outer.append(piece)
    flat = "".join(outer)
    return set(TYPE.findall(flat)) | set(CONSTANT.findall(flat)) | set(FUNCTION.findall(flat))


def may_include(path, header):
    """Could the source include it, by the rules of layers.py?"""
    if path.parts[0] != "src":
        return True
    return header.parts[0] == "src" and LAYERS.index(header.parts[1]) <= LAYERS.index(path.parts[1])


class Tree:
    def __init__(self, root):
        self.root = root
        self.texts = {}
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix in {".h", ".cc", ".inc"}:
                    self.texts[path] = path.read_text()
        self.clean = {path: without_hidden(text) for path, text in self.texts.items()}
        self.words = {path: set(re.findall(r"\w+", text)) for path, text in self.clean.items()}
        self.namespaces = {name for text in self.clean.values() for found in re.findall(r"\bnamespace ([\w:]+)", text)
                           for name in found.split("::")}
        self.headers_of = {}
        for path, text in self.clean.items():
            if path.suffix == ".h":
                for name in declared(text):
                    self.headers_of.setdefault(name, []).append(path)

    def find(self, name, includer):
        for folder in [includer.parent, *(self.root / folder for folder in FOLDERS)]:
            if (folder / name) in self.texts:
                return folder / name
        return None

    def closure(self, path):
        """Headers that a file includes, and that these include."""
        found, left = set(), [path]
        while left:
            one = left.pop()
            for name in INCLUDE.findall(self.texts[one]):
                header = self.find(name, one)
                if header is not None and header not in found:
                    found.add(header)
                    left.append(header)
        return found

    def complaints(self, path):
        text = self.clean[path]
        closure = self.closure(path)
        # A name that is mentioned in any of these headers is known well enough: the build finds what is wrong with it.
        known = set().union(*(self.words[header] for header in closure)) if closure else set()
        own = {name for before, name in re.findall(r"([\w>&*\]]+)\s+[&*]?(\w+)\s*[({=;:,)]", text)
               if before not in NOT_BEFORE_A_NAME}
        own |= set(re.findall(r"\b(?:typename|class|struct|enum)\s+(\w+)", text)) | NOT_OURS
        seen = {}
        for namespaces, name in USE.findall(text):
            elsewhere = namespaces and not set(namespaces.split("::")[:-1]) <= self.namespaces
            if elsewhere or name in known or name in own:
                continue
            headers = [header for header in self.headers_of.get(name, [])
                       if may_include(path.relative_to(self.root), header.relative_to(self.root))]
            if headers:
                seen.setdefault(name, min(headers).relative_to(self.root).as_posix())
        for name, header in seen.items():
            yield f"{path.relative_to(self.root)}: {name} is declared in {header}, which is not included"


def check_tree(root):
    tree = Tree(root)
    return [complaint for path in tree.texts if path.suffix == ".cc" for complaint in tree.complaints(path)]


if __name__ == "__main__":
    found = check_tree(pathlib.Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
