"""Tries to break each promise of doc/SAFETY.md, says what was tried, and ends with one line of what was lost.

usage: prove.py BUILD [--quick] [--promise N]... [--json]

The tests run as a whole, not in the part that a test run can afford (an hour or so on two cores); --quick takes that
part. What they print is kept in BUILD/proof. As root, else what needs a mount is left out, and said so.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

SOURCES = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Step:
    """A command and what of its output is told. `whole` and `part` are appended to it."""
    command: list[str]
    whole: list[str] = dataclasses.field(default_factory=list)
    part: list[str] = dataclasses.field(default_factory=list)
    mounts: bool = False


def gtest(program, names):
    return Step([f"{{build}}/tests/{program}", f"--gtest_filter={names}", "--gtest_brief=1"])


def mount(name, *tests):
    return Step(["{python}", f"{{sources}}/tests/mount/{name}_test.py", *tests], mounts=True)


CRASH = "{build}/tests/crash/crash_tests"
CANARY = ["--ops", "write /f 4000 6000; fsync /f; mkdir /d/m"]
PROMISES = {
    1: ("a metadata operation is seen whole or not at all after a crash", [
        Step([CRASH, "--canary", "flushes", *CANARY]),
        Step([CRASH, "--canary", "mount", "--cuts", "few", "--kills", "3", *CANARY]),
        Step([CRASH, "--canary", "absent", "--disks", "3", "--cuts", "few", "--absent", "27", *CANARY]),
        Step([CRASH], whole=["--length", "2", "--nested", "1", "--sample", "1000", "--disks", "2,3",
                             "--kills", "3", "--absent", "5", "--again", "7"], part=["--length", "1"])]),
    2: ("what fsync acknowledged survives every later cut", [
        gtest("unit/store/store_tests", "*/CrashTest.*:CrashDuringRecoveryTest.*:ConcurrencyTest.*"),
        gtest("unit/volume/volume_tests", "SharedCommitsTest.*"), mount("torture/survive"), mount("daemon")]),
    3: ("a failed fsync stays failed: MDFS never claims lost bytes", [
        gtest("unit/store/store_tests", "*FaultTest.*"), gtest("unit/volume/volume_tests", "*FsyncGate*"),
        gtest("safety/safety_tests", "*StuckDiskTest.*"), gtest("safety/random_fault_tests", "*"),
        mount("failing_disks"),
        gtest("safety/allocation_tests", "*")]),
    4: ("damaged bytes are repaired or refused, never returned", [
        gtest("safety/safety_tests", "DamageTest.*:ScrubTest.*"), mount("scrub")]),
    5: ("torn, lost, misdirected and swapped blocks are noticed", [gtest("safety/safety_tests", "*LyingDiskTest.*")]),
    6: ("losing a disk loses the data on it, and nothing else", [
        gtest("safety/safety_tests", "LostDisksTest.*:UnequalDisksTest.*")]),
    7: ("a stale disk is never written and has no vote; forks never merge", [
        gtest("safety/safety_tests", "LostDisksTest.TwoHalves*:DrainTest.*Stale*"),
        gtest("unit/store/store_tests", "RecoveryTest.AStale*:RecoveryTest.Halves*:MembersTest.ADiskThatWasAway*")]),
    8: ("one valid label is enough, the newest valid commit wins", [
        gtest("unit/store/store_tests", "RecoveryTest.*:ChecksumRecordTest.*:*CrashTest.ACutAfterAKill*"),
        gtest("unit/volume/volume_tests", "FinalizationTest.*"),
        Step([CRASH, "--length", "1", "--disks", "2,3", "--cuts", "few"],
             whole=["--kills", "1", "--absent", "3"], part=["--kills", "7", "--absent", "23", "--seconds", "60"])]),
    9: ("a full volume reports it, and gives all its space back", [
        gtest("safety/safety_tests", "*FullVolume*")]),
    10: ("a crash during recovery, repair or a change of disks is safe", [
        gtest("unit/store/store_tests", "CrashDuringRecoveryTest.*:*MembersCrashTest.*"),
        gtest("unit/store/check/store_check_tests", "HardCheckTest.APowerCut*"),
        gtest("safety/safety_tests", "DrainTest.*:ScrubTest.ACrash*"), mount("disks")]),
    11: ("no contents of a disk crash the programs", [
        gtest("unit/format/format_tests", "*"),
        Step(["{sources}/dev", "fuzz", "label", "commit", "node", "space", "items", "volume", "npy", "pnm", "machine",
              "trace", "text"], whole=["--seconds", "60"], part=["--seconds", "5"])]),
    12: ("no ioctl and no virtual path escapes or overflows", [
        mount("bad_calls"), mount("privilege"), mount("confinement"),
        Step(["{sources}/dev", "fuzz", "ioctl", "window"], whole=["--seconds", "60"], part=["--seconds", "5"])]),
    13: ("a repaired volume checks clean; mdfsck -n writes nothing", [
        gtest("unit/store/check/store_check_tests", "*")]),
    14: ("all interfaces show the same bytes; a window write is atomic", [
        gtest("unit/engine/engine_tests", "*"), mount("windows"), mount("torture/exercise"), mount("torture/fio"),
        mount("torture/tools")]),
    15: ("a disk that fails leaves the commits, and no acknowledged byte is lost", [
        gtest("unit/store/store_tests", "*FailingDisk*:FailingMembersTest.*:MajorityTest.*:OutDisksTest.*"),
        Step([CRASH, "--length", "1", "--disks", "2,3", "--cuts", "few"],
             whole=["--failing", "1", "--absent", "11"], part=["--failing", "7", "--absent", "41", "--seconds", "60"]),
        mount("disk_condition")]),
}
# What a step says of itself; the second kind is what test programs and fuzzers say anyhow.
TRIED = re.compile(r"(?:^|\.\.\. )tried: (.*)$|^(\d+ distinct crash states, \d+ lost)$"
                   r"|^(?:\[  PASSED  \] )?(\d+ tests?)\.$"
                   r"|^(Ran \d+ tests?).*$|^dev: (\d+ targets, nothing found)$", re.M)
INPUTS = re.compile(r"number_of_executed_units: *(\d+)")


def figures(output):
    found = [next(filter(None, match.groups())) for match in TRIED.finditer(output)]
    inputs = sum(map(int, INPUTS.findall(output)))
    return found + ([f"{inputs} inputs of fuzzers"] if inputs else [])


class Proof:
    def __init__(self, build, quick):
        self.build, self.quick = build.resolve(), quick
        self.logs = self.build / "proof"
        self.logs.mkdir(exist_ok=True)
        self.environment = dict(os.environ, MDFS=f"{self.build}/tools/mdfs", MKMDFS=f"{self.build}/tools/mkmdfs",
                                OTHER_CALLS=f"{self.build}/tests/mount/other_calls.so",
                                MDFSCK=f"{self.build}/tools/mdfsck", MDFS_SIM=f"{self.build}/tools/mdfs-sim")
        if not quick:
            self.environment.update(MDFS_TEST_WHOLE="1", MDFS_TORTURE="20")

    def command(self, step):
        parts = step.command + (step.part if self.quick else step.whole)
        return [part.format(build=self.build, sources=SOURCES, python=sys.executable) for part in parts]

    def run(self, number, step, at):
        """What was tried, and whether all of it held; None where it cannot run here."""
        command = self.command(step)
        if step.mounts and (os.geteuid() != 0 or not os.path.exists("/dev/fuse")):
            return ["left out: it needs root and /dev/fuse"], None
        log = self.logs / f"{number}.{at}.log"
        with open(log, "w", encoding="utf-8") as out:
            out.write(" ".join(command) + "\n")
            out.flush()
            done = subprocess.run(command, env=self.environment, cwd=SOURCES, stdout=out, stderr=subprocess.STDOUT,
                                  check=False)
        output = log.read_text(encoding="utf-8", errors="replace")
        if done.returncode != 0:
            return figures(output) + [f"FAILED: exit {done.returncode}, see {log}"], False
        return figures(output), True

    def prove(self, number, show):
        text, steps = PROMISES[number]
        show(f"\n{number}. {text}")
        results, begin = [], time.monotonic()
        for at, step in enumerate(steps, 1):
            name = " ".join(pathlib.Path(part).name if "/" in part and " " not in part else part
                            for part in self.command(step))
            show(f"   {name}")
            said, held = self.run(number, step, at)
            for line in said:
                show(f"      {line}")
            results.append({"command": name, "tried": said, "held": held})
        return {"promise": number, "text": text, "seconds": round(time.monotonic() - begin), "steps": results}


def main():
    parser = argparse.ArgumentParser(description="Tries to break each promise of doc/SAFETY.md.")
    parser.add_argument("build", type=pathlib.Path, help="a directory that has been built")
    parser.add_argument("--quick", action="store_true", help="what a test run does of it")
    parser.add_argument("--promise", type=int, action="append", choices=list(PROMISES), metavar="N",
                        help="only this one; may be given again")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    arguments = parser.parse_args()
    proof = Proof(arguments.build, arguments.quick)

    def show(line):
        print(line, file=sys.stderr if arguments.json else sys.stdout, flush=True)

    results = [proof.prove(number, show) for number in arguments.promise or PROMISES]
    broken = [result["promise"] for result in results if any(step["held"] is False for step in result["steps"])]
    left_out = sum(step["held"] is None for result in results for step in result["steps"])
    if arguments.json:
        print(json.dumps({"version": 1, "quick": arguments.quick, "promises": results, "broken": broken}, indent=1))
    if left_out:
        show(f"\n{left_out} steps were left out")
    show(f"\n{len(results)} promises tried, {len(broken)} broken" + (f": {broken}" if broken else ""))
    return 1 if broken or left_out else 0


if __name__ == "__main__":
    sys.exit(main())
