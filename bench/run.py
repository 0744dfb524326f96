#!/usr/bin/env python3
"""Measures MDFS through a mount, each figure beside its floor in the same run. Called by `./dev bench`; needs root.

Every read is compared with the source. Scratch space (up to 12 GB) is given back, also after a failure or a signal.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import pathlib
import signal
import subprocess
import sys

from mdfsbench import (ageing, channel, cold, durable, fill, ingest, levels, life, lists, many, peers, planes,
                       protect, scale, scan, simulator, small, streaming, streams, table, unequal, views, warm)
from mdfsbench.context import Context, Failed, Skip, machine, say

GROUPS = {"warm": warm, "cold": cold, "planes": planes, "peers": peers, "many": many, "channel": channel,
          "scan": scan, "small": small, "ingest": ingest, "scale": scale, "durable": durable, "ageing": ageing,
          "levels": levels, "life": life, "streaming": streaming, "simulator": simulator, "fill": fill,
          "unequal": unequal, "views": views, "lists": lists, "protect": protect,
          "streams": streams}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small images and few repetitions: does it work at all?")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print a table for the README")
    parser.add_argument("--save", type=pathlib.Path, metavar="DIR", help="also write bench.txt, .json and .md there")
    parser.add_argument("--scratch", help="directory for all files (default: the temporary directory)")
    parser.add_argument("--images", help="keep the source images in this directory and use them again")
    parser.add_argument("--extent", help="extent of the picture instead of the default: 256x256")
    parser.add_argument("--build", default="build", help="where the programs are built")
    parser.add_argument("group", nargs="*", metavar="NAME", help=f"of {', '.join(GROUPS)} (default: all)")
    options = parser.parse_args()
    for name in options.group:
        if name not in GROUPS:
            parser.error(f"there is no group '{name}'; there are {', '.join(GROUPS)}")
    return options


def measure(context, names, keep):
    """All rows, and what could not be measured, with reasons. `keep` is called after each group with what there is."""
    rows, skipped, failed = [], {}, {}
    for name in names:
        try:
            rows += GROUPS[name].rows(context)
        except Skip as reason:
            say(f"SKIPPED {name}: {reason}")
            skipped[name] = str(reason)
        # The rows of the others are kept.
        except (Failed, OSError, AssertionError, subprocess.SubprocessError) as reason:
            say(f"FAILED {name}: {reason}")
            failed[name] = str(reason)
        keep(rows, skipped | failed)
    return rows, skipped, failed


def main():
    options = arguments()
    if os.geteuid() != 0:
        sys.exit("bench: mounts and loop devices need root")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    here = machine() | {"warm_cache": warm.DEFAULT_CACHE}
    say(f"on {here['text']}, load {here['load']}")

    def texts(rows, missing):
        return {"txt": table.as_text(rows), "json": table.as_json(rows, here, missing),
                "md": table.as_markdown(rows, here)}

    def keep(rows, missing):
        if options.save:
            options.save.mkdir(parents=True, exist_ok=True)
            for suffix, text in texts(rows, missing).items():
                (options.save / f"bench.{suffix}").write_text(text)

    with Context(options) as context:
        rows, skipped, failed = measure(context, options.group or list(GROUPS), keep)
    print(texts(rows, skipped | failed)["json" if options.json else "md" if options.markdown else "txt"], end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
