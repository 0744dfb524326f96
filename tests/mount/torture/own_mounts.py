"""Runs a program in a mount namespace of its own that has the needed mounts alone.

own_mounts.py PATH COMMAND...: PATH is on the mount under test. Called by `unshare --mount --propagation private`, so
that nothing outside changes. stress-ng's io stressor syncs every mount of the machine, and fails for foreign ones.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

NEEDED = ("/", "/proc", "/dev", "/sys", "/usr", "/etc")


def mounts():
    """Mount points, in the order of mounting."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        fields = [line.split(" ")[4] for line in file]
    return [field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
            for field in fields]


def is_above(mount, path):
    return mount == "/" or path == mount or path.startswith(mount + "/")


def is_kept(mount, path):
    return any(is_above(mount, needed) for needed in (*NEEDED, path))


def main():
    path, command = os.path.realpath(sys.argv[1]), sys.argv[2:]
    for mount in reversed(mounts()):
        if not is_kept(mount, path):
            subprocess.run(["umount", "--lazy", "--no-canonicalize", mount], stderr=subprocess.DEVNULL, check=False)
    left = [mount for mount in mounts() if not is_kept(mount, path)]
    if left:
        sys.exit(f"own_mounts: still mounted: {left}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
