#!/usr/bin/env python3
"""Writes machine files as initialisers of a C++ list.

usage: embed.py OUTPUT FILE.toml...
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys


def main():
    lines = []
    for name in sys.argv[2:]:
        path = pathlib.Path(name)
        text = path.read_text()
        if ')toml"' in text:
            sys.exit(f"{name}: cannot be put into a raw string")
        lines.append(f'{{"{path.stem}", R"toml({text})toml"}},\n')
    pathlib.Path(sys.argv[1]).write_text("".join(lines))


if __name__ == "__main__":
    main()
