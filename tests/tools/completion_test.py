"""What bash, zsh and fish, started here, offer at Tab: the verbs and options of --help, and the values of options.

usage: completion_test.py COMPLETION_FOLDER MDFS MKMDFS MDFSCK MDFS_SIM
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAMS = {name: os.path.abspath(sys.argv.pop(1)) for name in ("mdfs", "mkmdfs", "mdfsck", "mdfs-sim")}
COMMAND_FOLDERS = {os.path.dirname(program) for program in PROGRAMS.values()}
PATH = ":".join([*COMMAND_FOLDERS, os.environ["PATH"]])
FILE = "a-file-of-the-test"


def help_of(words):
    return subprocess.run([PROGRAMS[words[0]], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout


def verbs_of(text):
    return set(re.findall(r"^  ([a-z]+) ", text.partition("\nSubcommands:")[2], re.MULTILINE))


def options_of(text):
    names = re.findall(r"^  (-[^ ]+)", text.split("\nOptions:")[1], re.MULTILINE)
    return {name for list_of_names in names for name in list_of_names.split(",")}


def all_commands():
    """Each program and verb, as a list of words."""
    found = [[name] for name in PROGRAMS]
    for words in found:
        found += [[*words, verb] for verb in sorted(verbs_of(help_of(words)))]
    return found


def answers_in(text):
    """What stands before each line that is a dot."""
    return re.split(r"(?<=\n)\.\n", "\n" + text)[:-1]


class Shell:
    """A way to ask a shell what it offers for lines: a set of words for each."""

    def __init__(self, folder):
        self.folder = folder  # the working directory, which holds FILE


class Bash(Shell):
    name = "bash"
    SCRIPT = """source "$1"
    compopt() { [ "$*" != "-o default" ] || files=1; }
    while IFS= read -r COMP_LINE; do
      COMP_POINT=${#COMP_LINE} files=0
      _mdfs
      printf '%s\\n' "${COMPREPLY[@]}"
      [ $files = 0 ] || compgen -f -- "${COMP_LINE##* }"
      echo .
    done"""

    def offers(self, lines):
        # Bash puts what is offered behind the last = or : of the line.
        done = subprocess.run(["bash", "--norc", "-c", self.SCRIPT, "bash", FOLDER / "mdfs.bash"], cwd=self.folder,
                              text=True, input="".join(line + "\n" for line in lines), capture_output=True, check=True,
                              env={**os.environ, "PATH": PATH})
        if done.stderr:
            raise AssertionError(done.stderr)
        found = []
        for line, answer in zip(lines, answers_in(done.stdout), strict=True):
            word = line.split(" ")[-1]
            head = word[:len(word) - len(re.split("[=:]", word)[-1])]
            found.append({head + offered for offered in answer.split()})
        return found


class Fish(Shell):
    name = "fish"

    def offers(self, lines):
        script = f"source {FOLDER}/mdfs.fish; while read -l line; complete -C \"$line\"; echo .; end"
        done = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, text=True, check=True,
                              input="".join(line + "\n" for line in lines), capture_output=True,
                              env={**os.environ, "PATH": PATH, "HOME": self.folder})
        return [{offered.split("\t")[0] for offered in answer.split("\n")} - {""} for answer in answers_in(done.stdout)]


class Zsh(Shell):
    """On a terminal, since zsh completes in its line editor alone: a widget takes down what would be inserted."""
    name = "zsh"
    SETUP = """PS1= ; unsetopt beep auto_list auto_menu  # a list may end in a question
    fpath=({folder} $fpath); autoload -Uz compinit && compinit -u -d {dump}
    zstyle ':completion:*' completer _complete
    compadd() {{
      if [[ ${{@[(I)-[a-zA-Z]#[OAD]]}} -gt 0 ]]; then builtin compadd "$@"; return; fi
      local -a __found; builtin compadd -A __found "$@"
      print -rl -- "${{IPREFIX}}${{(@)^__found}}" >>{answers}
      builtin compadd "$@"
    }}
    take_down() {{
      zle complete-word; print -r -- . >>{answers}; BUFFER=; CURSOR=0
    }}
    zle -C complete-word complete-word _main_complete; zle -N take_down; bindkey '^T' take_down
    print ready >>{answers}
    """

    def offers(self, lines):
        with tempfile.TemporaryDirectory(prefix="mdfs-test-") as scratch:
            return self.offers_with(pathlib.Path(scratch), lines)

    def offers_with(self, scratch, lines):
        answers, setup = scratch / "answers", scratch / "setup"
        answers.write_text("")
        setup.write_text(self.SETUP.format(folder=FOLDER, dump=scratch / "dump", answers=answers))
        main, other = os.openpty()
        shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=self.folder, stdin=other, stdout=other, stderr=other,
                                 start_new_session=True, env={**os.environ, "PATH": PATH, "TERM": "dumb"})
        os.close(other)
        try:
            os.write(main, f"source {setup}\n".encode())
            self.wait(main, answers, lambda text: "ready\n" in text)
            for number, line in enumerate(lines, 1):
                os.write(main, line.encode() + b"\x14")
                self.wait(main, answers, lambda text, number=number: len(answers_in(text)) == number)
        finally:
            shell.kill()
            shell.wait()
            os.close(main)
        return [set(answer.split("\n")) - {""} for answer in answers_in(answers.read_text().removeprefix("ready\n"))]

    @staticmethod
    def wait(main, answers, ready):
        said, end = b"", time.monotonic() + 60
        while not ready(answers.read_text()):
            if time.monotonic() > end:
                raise AssertionError(f"zsh does not answer: {said[-2000:]!r}, {answers.read_text()[-2000:]}")
            if select.select([main], [], [], 0.02)[0]:
                said += os.read(main, 65536)


class Completion:
    """The claims about any shell."""

    def setUp(self):
        if not shutil.which(self.shell.name):
            self.skipTest(f"{self.shell.name} is not installed")
        folder = tempfile.TemporaryDirectory(prefix="mdfs-test-")
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / FILE).write_text("")
        self.asked = self.shell(pathlib.Path(folder.name))

    def offer(self, line):
        return self.asked.offers([line])[0]

    def test_every_verb_and_option_of_the_help_is_offered(self):
        commands = all_commands()
        self.assertGreater(len(commands), 40)
        lines = [" ".join(words) + " " for words in commands] + [" ".join(words) + " -" for words in commands]
        offered = self.asked.offers(lines)
        for words, found in zip(commands, offered[:len(commands)], strict=True):
            verbs = verbs_of(help_of(words))
            if verbs:
                self.assertEqual(found, verbs, words)
        for words, found in zip(commands, offered[len(commands):], strict=True):
            self.assertEqual(found, options_of(help_of(words)), words)

    def test_values_of_options_are_offered(self):
        types = {"u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"}
        policies = {"scatter", "first", "near"}
        expected = {
            "mdfs im": {"image"},
            "mdfs image create --type ": types,
            "mdfs image import --type f": {"f16", "f32", "f64"},
            "mdfs image import --codec ": {"raw", "zstd", "zstd:"},
            "mdfs image create --codec=z": {"--codec=zstd", "--codec=zstd:"},
            "mdfs image create --policy ": policies,
            "mkmdfs --policy ": policies,
            "mkmdfs --sparse --label x --policy n": {"near"},
            "mkmdfs --weights e": {"equal"},
            "mdfsck --da": {"--data"},
            "mdfs-sim poisson --seeks ": {"constant", "uniform"},
            "mdfs-sim machine sparc": {"sparc-disk"},
            "mdfs mount -o pol": {"policy=scatter", "policy=first", "policy=near"},
            "mdfs mount -o ro,no_": {"ro,no_grouping"},
            "mdfs mount -o ro,errors=z": {"ro,errors=zero"},
            "mdfs mount --options ca": {"cache=", "cached_images"},
            "mdfs meter --profile ": {"record", "edit", "playout", "archive", FILE},
            "mdfs meter a-f": {FILE},
            "mdfs image info a-f": {FILE},
            "mdfs window read a b -o a-f": {FILE},
            "mdfs-sim machine a-f": {FILE},
        }
        for line, found in zip(expected, self.asked.offers(list(expected)), strict=True):
            self.assertEqual(found, expected[line], line)

    def test_nothing_is_offered_where_nothing_can_stand(self):
        for line, found in zip(lines := ["mdfs nonsense ", "mdfs image create --shape a-f", "mdfs imagery"],
                               self.asked.offers(lines), strict=True):
            self.assertEqual(found - {FILE}, set(), line)


class InBash(Completion, unittest.TestCase):
    shell = Bash


class InFish(Completion, unittest.TestCase):
    shell = Fish


class InZsh(Completion, unittest.TestCase):
    shell = Zsh


class Values(unittest.TestCase):
    def test_the_programs_take_what_is_offered_and_nothing_else(self):
        """A value that a program refuses is named in its error; without a volume, so that it fails in any case."""
        for words in (["image", "create", "--shape", "8x8", "{}", "/nowhere/image"],):
            for option, values, wrong in (("--type", ["u8", "i64", "f16", "f64"], "u128"),
                                          ("--codec", ["raw", "zstd", "zstd:19"], "zstd:20"),
                                          ("--policy", ["scatter", "first", "near"], "far")):
                for value in [*values, wrong]:
                    call = [PROGRAMS["mdfs"], *[f"{option}={value}" if word == "{}" else word for word in words]]
                    said = subprocess.run(call, capture_output=True, text=True, check=False).stderr
                    self.assertEqual(value in said, value == wrong, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
