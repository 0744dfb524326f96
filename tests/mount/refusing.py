"""How tests check that a command refuses bad input: one clear line, and nothing changed."""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import stat
import subprocess


def digest(path, but=None):
    """Names, attributes and contents of everything below a path; of large files the ends; but for one folder."""
    found = hashlib.sha256()
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name != but)
        for name in sorted(files) + [""]:
            one = os.path.join(folder, name)
            info = os.lstat(one)
            found.update(repr((one, info.st_mode, info.st_uid, info.st_size, info.st_nlink, info.st_mtime_ns,
                               info.st_ctime_ns)).encode())
            if stat.S_ISREG(info.st_mode):
                with open(one, "rb") as file:
                    found.update(file.read(1 << 16))
                    file.seek(max(0, info.st_size - (1 << 16)))
                    found.update(file.read(1 << 16))
            for key in os.listxattr(one, follow_symlinks=False):
                found.update(key.encode() + os.getxattr(one, key, follow_symlinks=False))
    return found.hexdigest()


class Refusing:
    """How a refusal is checked: by tests that have `unchanged()` for what must stay as it was."""

    made = ()  # what a command makes if it is not refused

    def refused(self, says, *words, data=None, timeout=20):
        self.check_refusal(says, words, data, timeout)
        for path in self.made:
            if os.path.lexists(path):
                os.unlink(path)

    def check_refusal(self, says, words, data, timeout):
        words = [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words]
        shown = b" ".join(words).decode(errors="replace")[:300]
        before = self.unchanged()
        with self.subTest(shown):
            done = subprocess.run(words, input=data, capture_output=True, timeout=timeout,
                                  stdin=None if data is not None else subprocess.DEVNULL)
            text = done.stderr.decode(errors="replace")
            # Neither success, nor a signal, nor what a sanitizer ends with.
            self.assertIn(done.returncode, (1, 2, 3, 4, 8, 16, 32), f"{shown}: {text}")
            self.assertEqual(len(text.replace("Run with --help for the options.\n", "").splitlines()), 1,
                             f"{shown}: {text!r}")
            program = os.path.basename(words[0].decode())
            self.assertTrue(text.startswith(program + ": "), text)
            self.assertRegex(text, says or ".", shown)
            self.assertLess(len(text), 12000, shown)
            self.assertNotIn("\x1b", text)
            self.assertEqual(self.unchanged(), before, f"{shown} changed something")
