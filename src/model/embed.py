#!/usr/bin/env python3
"""Writes the texts of files as initialisers of a C++ list: {"stem of the name", text}.

usage: embed.py [--names] OUTPUT FILE...      --names: {"whole name", text}
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys


def main():
    arguments = sys.argv[1:]
    whole_names = arguments[0] == "--names"
    output, *names = arguments[1:] if whole_names else arguments
    lines = []
    for name in names:
        path = pathlib.Path(name)
        text = path.read_text()
        if ')text"' in text:
            sys.exit(f"{name}: cannot be put into a raw string")
        # With its length, which a compiler counts only up to a limit.
        key, length = path.name if whole_names else path.stem, len(text.encode())
        lines.append(f'{{"{key}", std::string_view(R"text({text})text", {length})}},\n')
    pathlib.Path(output).write_text("".join(lines))


if __name__ == "__main__":
    main()
