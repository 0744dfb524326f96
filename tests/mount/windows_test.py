"""Windows by ioctl and by virtual paths, against NumPy."""
# SPDX-License-Identifier: Apache-2.0
import errno
import fcntl
import json
import os
import random
import struct
import subprocess
import threading

import harness
from harness import APPLY, BIND, UNBIND, bind, make_image, read_all, read_now, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of windows need numpy")
    raise SystemExit(harness.SKIP)

RNG = np.random.default_rng(7)


def noise(shape, element="u8"):
    data = RNG.integers(0, 256, size=int(np.prod(shape)) * np.dtype(harness.NUMPY[element]).itemsize, dtype="u1")
    return data.view(harness.NUMPY[element]).reshape(shape)


class Windows(harness.MountTest):
    direct = 0

    def open_image(self, name, flags):
        """A descriptor that windows can be bound to."""
        return os.open(self.at(name), flags | self.direct)

    def image(self, name, shape, element="u8", channels=1, **options):
        """An image with noise in it; returns the array."""
        make_image(self.at(name), shape, element=element, channels=channels, **options)
        data = noise(shape + ((channels,) if channels > 1 else ()), element)
        write_all(self.at(name), data.tobytes())
        return data

    def same(self, path, expected, **options):
        found = np.load(path, **options)
        self.assertEqual(found.dtype, expected.dtype)
        np.testing.assert_array_equal(found.view("u1") if found.ndim else found,
                                      np.ascontiguousarray(expected).view("u1") if expected.ndim else expected)

    def test_every_face_of_an_image_shows_the_same_samples(self):
        for codec in (0, 1):
            for element, channels, shape in (("u8", 3, (200, 300)), ("u16", 1, (20, 70, 90)), ("f32", 2, (5000,)),
                                             ("f64", 1, (64, 65)), ("i16", 4, (3, 40, 50))):
                name = f"{element}{codec}{len(shape)}"
                data = self.image(name, shape, element, channels, codec=codec)
                self.assertEqual(read_all(self.at(name)), data.tobytes())
                self.same(self.at(f"{name}@/{name}.npy"), data)
                self.same(self.at(f"{name}@/{name}.npy"), data, mmap_mode="r")
                mapped = np.memmap(self.at(name), dtype=data.dtype, mode="r", shape=data.shape)
                np.testing.assert_array_equal(mapped.view("u1"), data.view("u1"))
                self.same(self.at(f"{name}@/win/x7+30.npy"), data[..., 7:37, :] if channels > 1 else data[..., 7:37])
                self.same(self.at(f"{name}@/win/x9.npy"), data[..., 9, :] if channels > 1 else data[..., 9])

    def test_spellings_of_one_window_are_one_inode(self):
        data = self.image("scan", (200, 300), channels=3)
        names = ["scan@/win/100,50,40,30.npy", "scan@/win/y50+30,x100+40.npy", "scan@/win/x100+40,y50+30.npy"]
        numbers = {os.stat(self.at(name)).st_ino for name in names}
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.basename(self.dir), "scan/win/y50+30,x100+40.npy")
        numbers.add(os.stat(mirror).st_ino)
        self.assertEqual(len(numbers), 1)
        self.same(mirror, data[50:80, 100:140])

    def test_pictures_carry_their_headers(self):
        data = self.image("scan", (200, 300), channels=3)
        self.assertEqual(read_all(self.at("scan@/win/y50+30,x100+40.ppm")),
                         b"P6\n40 30\n255\n" + data[50:80, 100:140].tobytes())
        self.assertEqual(read_all(self.at("scan@/win/y50+30,x100+40,c1.pgm")),
                         b"P5\n40 30\n255\n" + data[50:80, 100:140, 1].tobytes())
        deep = self.image("deep", (4, 30, 40), "u16")
        self.assertEqual(read_all(self.at("deep@/win/z2,y3+5,x7+9.pgm")),
                         b"P5\n9 5\n65535\n" + deep[2, 3:8, 7:16].astype(">u2").tobytes())

    def decoded(self, png):
        """Width, height, and the samples of a PNG, by another program's decoder, in the order of this machine."""
        done = subprocess.run(["ffmpeg", "-v", "error", "-f", "png_pipe", "-i", "-", "-f", "rawvideo",
                               "-c:v", "rawvideo", "-"], input=png, capture_output=True, check=True)
        return struct.unpack(">II", png[16:24]), done.stdout

    def test_a_png_is_encoded_when_it_is_opened(self):
        data = self.image("scan", (200, 300), channels=3)
        name = self.at("scan@/win/y50+30,x100+40.png")
        self.assertEqual(os.stat(name).st_size, 0)  # unknown before the open, as in procfs
        with open(name, "rb") as file:
            png = file.read()
            self.assertEqual(os.fstat(file.fileno()).st_size, len(png))
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_END), len(png))
        self.assertEqual(self.decoded(png), ((40, 30), data[50:80, 100:140].tobytes()))
        copy = os.path.join(self.volume.folder, "copy.png")
        subprocess.run(["cp", name, copy], check=True)
        self.assertEqual(read_all(copy), png)
        deep = self.image("deep", (4, 30, 40), "u16")
        size, samples = self.decoded(read_all(self.at("deep@/win/z2,y3+5,x7+9.png")))
        self.assertEqual((size, np.frombuffer(samples, ">u2").tobytes()),
                         ((9, 5), deep[2, 3:8, 7:16].astype(">u2").tobytes()))
        self.assertErrno(errno.EACCES, open, name, "r+b")

    def test_a_jpg_shows_the_window_to_other_programs(self):
        rows, columns = np.mgrid[0:64, 0:96]
        data = np.stack([rows + columns, 2 * rows + 40, 200 - columns], axis=-1).astype("u1")
        make_image(self.at("scan"), data.shape[:2], channels=3)
        write_all(self.at("scan"), data.tobytes())
        name = self.at("scan@/win/y16+32,x8+40.jpg")
        self.assertEqual(os.stat(name).st_size, 0)
        jpg = read_all(name)
        done = subprocess.run(["ffmpeg", "-v", "error", "-f", "jpeg_pipe", "-i", "-", "-f", "rawvideo", "-pix_fmt",
                               "rgb24", "-"], input=jpg, capture_output=True, check=True)
        shown = np.frombuffer(done.stdout, "u1").reshape(32, 40, 3).astype(int)
        self.assertLessEqual(np.abs(shown - data[16:48, 8:48]).max(), 8)
        self.image("deep", (30, 40), "u16")
        self.assertErrno(errno.ENOENT, os.stat, self.at("deep@/win/all.jpg"))

    def test_an_open_png_keeps_its_version(self):
        data = self.image("scan", (2000, 3000))
        name = self.at("scan@/win/all.png")
        with open(name, "rb") as file:
            head = file.read(1000)
            write_all(self.at("scan@/win/y0+2000.raw"), bytes(data.size))
            old = self.decoded(head + file.read())[1]
        self.assertEqual(old, data.tobytes())
        self.assertEqual(self.decoded(read_all(name))[1], bytes(data.size))

    def test_random_windows_agree_with_numpy(self):
        random.seed(3)
        data = self.image("vol", (30, 70, 90), "u16", extent=(8, 16, 32))
        fd = self.open_image("vol", os.O_RDONLY)
        for _ in range(60):
            start = [random.randrange(n) for n in data.shape]
            length = [random.randint(1, n - s) for n, s in zip(data.shape, start)]
            box = data[tuple(slice(s, s + n) for s, n in zip(start, length))]
            spec = ",".join(f"{axis}{s}+{n}" for axis, s, n in zip("zyx", start, length))
            self.same(self.at(f"vol@/win/{spec}.npy"), box)
            self.assertEqual(read_all(self.at(f"vol@/win/{spec}.raw")), box.tobytes())
            size = bind(fd, start, length)
            self.assertEqual(size, box.nbytes)
            self.assertEqual(os.pread(fd, size + 10, 0), box.tobytes())
            at = random.randrange(size)
            self.assertEqual(os.pread(fd, 100, at), box.tobytes()[at:at + 100])
        os.close(fd)

    def test_a_name_that_is_no_window_does_not_exist(self):
        self.image("scan", (200, 300), channels=3)
        write_all(self.at("plain"), b"x")
        os.mkdir(self.at("sub"))
        for name in ("scan@/win/q1.raw", "scan@/win/y1.ppm", "scan@/win/y0+1000.raw", "scan@/win/x.raw",
                     "scan@/win/y50+30.pgm", "scan@/win/y50+30", "scan@/win/y5+0.npy", "scan@/win/y-1.raw",
                     "scan@/win/y18446744073709551615+2.raw", "scan@/other", "scan@/win/y1:2.raw", "plain@", "sub@",
                     "nothing@", "@", "scan@@", "scan@/win/" + "9" * 240 + ".raw"):
            with self.subTest(name):
                self.assertErrno(errno.ENOENT, os.stat, self.at(name))

    def test_reserved_names_cannot_be_made(self):
        self.image("scan", (20, 30))
        write_all(self.at("plain"), b"x")
        for make in (lambda name: os.mkdir(name), lambda name: os.symlink("x", name), lambda name: write_all(name, b""),
                     lambda name: os.link(self.at("plain"), name), lambda name: os.mkfifo(name)):
            self.assertErrno(errno.EINVAL, make, self.at("new@"))
        self.assertErrno(errno.EPERM, os.rename, self.at("plain"), self.at("new@"))
        self.assertErrno(errno.EEXIST, os.mkdir, self.volume / ".mdfs")
        os.mkdir(self.at("sub"))
        self.assertErrno(errno.EPERM, os.rename, self.at("sub"), self.volume / ".mdfs")
        os.rmdir(self.at("sub"))
        for call in (lambda: os.unlink(self.at("scan@/info.json")), lambda: write_all(self.at("scan@/new"), b""),
                     lambda: os.mkdir(self.at("scan@/win/dir")), lambda: os.rmdir(self.at("scan@")),
                     lambda: os.rename(self.at("scan@/info.json"), self.at("info")),
                     lambda: os.chmod(self.at("scan@/win/y1.raw"), 0o777)):
            self.assertErrno(errno.EPERM, call)
        self.assertEqual(sorted(os.listdir(self.dir)), ["plain", "scan"])

    def test_info_says_what_the_image_is(self):
        self.image("scan", (200, 300), "u16", 3, extent=(32, 64))
        info = json.loads(read_all(self.at("scan@/info.json")))
        self.assertEqual(info["output_version"], 1)
        self.assertEqual(info["shape"], [200, 300])
        self.assertEqual(info["extent"], [32, 64])
        self.assertEqual((info["axes"], info["channels"], info["type"], info["codec"]), ("yx", 3, "u16", "zstd"))
        self.assertEqual(info["size_bytes"], 200 * 300 * 6)
        self.assertEqual(sorted(os.listdir(self.at("scan@"))),
                         ["dz.dzi", "dz_files", "iiif", "info.json", "ome.zarr", "scan.hdr", "scan.mhd", "scan.nhdr",
                          "scan.npy", "scan.raw", "scan.tif", "scan.vrt", "win"])
        self.assertEqual(os.listdir(self.at("scan@/win")), [])
        before = info["generation"]
        write_all(self.at("scan@/win/y0+1.raw"), b"\1" * 1800)
        self.assertGreater(json.loads(read_all(self.at("scan@/info.json")))["generation"], before)

    def test_the_mirror_shows_images_and_directories(self):
        self.image("scan", (20, 30))
        write_all(self.at("plain"), b"x")
        os.mkdir(self.at("sub"))
        make_image(self.at("sub/inner"), (4, 4))
        mirror = os.path.join(self.volume.path, ".mdfs/img", os.path.basename(self.dir))
        self.assertEqual(sorted(os.listdir(mirror)), ["scan", "sub"])
        self.assertEqual(os.listdir(mirror + "/sub"), ["inner"])
        self.assertErrno(errno.ENOENT, os.stat, mirror + "/plain")
        self.assertNotIn(".mdfs", os.listdir(self.volume.path))

    def test_programs_read_virtual_files(self):
        data = self.image("scan", (1500, 1000), channels=3)
        box = data[100:1300, 50:950]
        name = self.at("scan@/win/y100+1200,x50+900.raw")
        out = os.path.join(self.volume.folder, "out")
        os.makedirs(out, exist_ok=True)
        self.assertEqual(os.stat(name).st_size, box.nbytes)
        harness.run("cp", name, out + "/cp")
        harness.run("rsync", name, out + "/rsync")
        harness.run("dd", f"if={name}", f"of={out}/dd", "bs=37k", "status=none")
        with open(out + "/cat", "wb") as file:
            subprocess.run(["cat", name], stdout=file, check=True)
        harness.run("tar", "-C", os.path.dirname(name), "-cf", out + "/tar", os.path.basename(name))
        harness.run("tar", "-C", out, "-xf", out + "/tar")
        for copy in ("cp", "rsync", "dd", "cat", os.path.basename(name)):
            self.assertEqual(read_all(f"{out}/{copy}"), box.tobytes(), copy)

    def test_a_written_virtual_file_replaces_the_window(self):
        data = self.image("scan", (200, 300), channels=3)
        name = self.at("scan@/win/y50+30,x100+40")
        new = noise((30, 40, 3))
        data[50:80, 100:140] = new
        write_all(name + ".raw", new.tobytes())
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        new = noise((30, 40, 3))
        data[50:80, 100:140] = new
        with open(name + ".npy", "wb") as file:
            np.save(file, new)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        source = os.path.join(self.volume.folder, "new.npy")
        new = noise((30, 40, 3))
        data[50:80, 100:140] = new
        np.save(source, new)
        harness.run("cp", source, name + ".npy")
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        write_all(source, new.tobytes()[::-1])
        data[50:80, 100:140] = new.reshape(-1)[::-1].reshape(new.shape)
        with open(source, "rb") as file:
            subprocess.run(["sh", "-c", f"cat > '{name}.raw'"], stdin=file, check=True)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())

    def test_a_part_of_a_window_is_refused_at_close_and_changes_nothing(self):
        data = self.image("scan", (200, 300), channels=3)
        name = self.at("scan@/win/y50+30,x100+40.raw")
        fd = os.open(name, os.O_WRONLY | os.O_TRUNC)
        os.write(fd, b"x" * 100)
        self.assertErrno(errno.EINVAL, os.close, fd)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        os.close(os.open(name, os.O_WRONLY | os.O_TRUNC))  # nothing written: no change
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        fd = os.open(name, os.O_WRONLY)  # without truncation what is not written stays
        os.pwrite(fd, b"y" * 10, 5)
        os.close(fd)
        box = bytearray(data[50:80, 100:140].tobytes())
        box[5:15] = b"y" * 10
        self.assertEqual(read_all(name), bytes(box))
        fd = os.open(name, os.O_WRONLY)
        self.assertErrno(errno.EFBIG, os.pwrite, fd, b"z", len(box))
        os.close(fd)
        with open(self.at("scan@/win/y0+2.npy"), "wb") as file:  # the wrong shape
            np.save(file, noise((3, 300, 3)))
            self.assertErrno(errno.EINVAL, file.close)
        self.assertErrno(errno.EACCES, os.open, self.at("scan@/win/y0+2.ppm"), os.O_WRONLY)

    def test_a_bound_descriptor_applies_when_all_is_written(self):
        data = self.image("scan", (200, 300), channels=3)
        fd = self.open_image("scan", os.O_RDWR)
        size = bind(fd, (50, 100), (30, 40))
        new = noise(size).tobytes()
        os.pwrite(fd, new[1000:], 1000)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        self.assertEqual(os.pread(fd, size, 0)[1000:], new[1000:], "one's own staged bytes are seen")
        os.pwrite(fd, new[:1000], 0)
        data[50:80, 100:140] = np.frombuffer(new, "u1").reshape(30, 40, 3)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        os.pwrite(fd, b"abc", 7)
        fcntl.ioctl(fd, APPLY)
        flat = data[50:80, 100:140].copy().reshape(-1)
        flat[7:10] = list(b"abc")
        data[50:80, 100:140] = flat.reshape(30, 40, 3)
        self.assertEqual(read_all(self.at("scan")), data.tobytes())
        os.pwrite(fd, b"gone", 0)
        fcntl.ioctl(fd, UNBIND)
        self.assertEqual(os.pread(fd, data.nbytes, 0), data.tobytes())
        self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, APPLY)
        bind(fd, (0, 0), (200, 300), 2)
        self.assertEqual(os.pread(fd, 60000, 0), data[:, :, 2].tobytes())
        os.close(fd)

    def test_a_small_window_comes_in_one_call_and_nothing_stays_bound(self):
        for codec in (0, 1):
            data = self.image(f"scan{codec}", (200, 300), channels=3, codec=codec)
            fd = os.open(self.at(f"scan{codec}"), os.O_RDWR)
            self.assertEqual(read_now(fd, (130, 100), (64, 64), 64 * 64 * 3), data[130:194, 100:164].tobytes())
            self.assertEqual(read_now(fd, (199, 299), (1, 1), 16000), data[199, 299].tobytes())
            self.assertEqual(read_now(fd, (7, 8), (9, 10), 90, 1), data[7:16, 8:18, 1].tobytes())
            self.assertEqual(os.pread(fd, data.nbytes, 0), data.tobytes())
            self.assertErrno(errno.EFBIG, read_now, fd, (0, 0), (9, 10), 269)
            self.assertErrno(errno.ERANGE, read_now, fd, (199, 0), (2, 1), 100)
            self.assertErrno(errno.EINVAL, read_now, fd, (0,), (1,), 100)
            os.close(fd)
            fd = os.open(self.at(f"scan{codec}"), os.O_WRONLY)
            self.assertErrno(errno.EACCES, read_now, fd, (0, 0), (1, 1), 100)
            os.close(fd)

    def test_nonsense_in_an_ioctl_is_refused(self):
        self.image("scan", (200, 300), channels=3)
        good = harness.window((50, 100), (30, 40))
        fd = self.open_image("scan", os.O_RDWR)
        for bad in (b"\0" * len(good), good[:-1] + b"\1", harness.window((1,), (2,)),
                    harness.window((0, 0, 0), (1, 1, 1)), harness.window((50, 100), (0, 40))):
            self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, BIND, bad)
        for start, length, channel in (((199, 0), (2, 1), -1), ((0, 0), (1, 301), -1), ((2**64 - 1, 0), (1, 1), -1),
                                       ((0, 0), (2**64 - 1, 2**64 - 1), -1), ((0, 0), (1, 1), 3)):
            self.assertErrno(errno.ERANGE, fcntl.ioctl, fd, BIND, harness.window(start, length, channel))
        for command in (0x5401, harness.ioc(3, 3, 200), harness.ioc(1, 3, 16), harness.ioc(0, 77, 0), 0xD503):
            self.assertErrno(errno.ENOTTY, fcntl.ioctl, fd, command, bytes(200))
        os.close(fd)
        write_all(self.at("plain"), b"")
        fd = os.open(self.at("plain"), os.O_RDWR)
        self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, BIND, good)
        self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, harness.GET_GEOMETRY, bytes(harness.GEOMETRY.size))
        self.assertErrno(errno.EINVAL, fcntl.ioctl, fd, harness.SET_GEOMETRY, harness.geometry((0, 0)))
        os.close(fd)
        fd = os.open(self.at("plain"), os.O_RDONLY)
        self.assertErrno(errno.EACCES, fcntl.ioctl, fd, harness.SET_GEOMETRY, harness.geometry((4, 4)))
        os.close(fd)

    def test_mappings_and_open_views_follow_every_write(self):
        data = self.image("scan", (200, 300), channels=3)
        mapped = np.memmap(self.at("scan"), dtype="u1", mode="r", shape=data.shape)
        view = np.load(self.at("scan@/win/y50+30,x100+40.npy"), mmap_mode="r")
        whole = np.load(self.at("scan@/scan.npy"), mmap_mode="r")
        opened = open(self.at("scan@/win/y50+30,x100+40.raw"), "rb", buffering=0)
        fd = self.open_image("scan", os.O_RDWR)
        size = bind(fd, (50, 100), (30, 40))
        plain = self.open_image("scan", os.O_RDWR)
        for step in range(40):
            if step % 3 == 0:
                new = noise(size)
                os.pwrite(fd, new.tobytes(), 0)
                data[50:80, 100:140] = new.reshape(30, 40, 3)
            elif step % 3 == 1:
                row = noise((300, 3))
                os.pwrite(plain, row.tobytes(), 60 * 900)
                data[60] = row
            else:
                new = noise((30, 40, 3))
                write_all(self.at("scan@/win/y50+30,x100+40.raw"), new.tobytes())
                data[50:80, 100:140] = new
            np.testing.assert_array_equal(mapped, data)
            np.testing.assert_array_equal(view, data[50:80, 100:140])
            np.testing.assert_array_equal(whole, data)
            opened.seek(0)
            self.assertEqual(opened.read(), data[50:80, 100:140].tobytes())
        os.close(fd)
        os.close(plain)
        opened.close()

    def test_stores_through_a_mapping_count_after_msync(self):
        data = self.image("scan", (200, 300), channels=3)
        mapped = np.memmap(self.at("scan"), dtype="u1", mode="r+", shape=data.shape)
        mapped[10:20] = 9
        data[10:20] = 9
        mapped.flush()
        self.assertEqual(read_all(self.at("scan@/win/y5+30.raw")), data[5:35].tobytes())
        # A window written beside a store that is not flushed yet undoes neither.
        mapped[55, 0] = 77
        data[55, 0] = 77
        new = noise((30, 40, 3))
        write_all(self.at("scan@/win/y50+30,x100+40.raw"), new.tobytes())
        data[50:80, 100:140] = new
        mapped.flush()
        self.assertEqual(read_all(self.at("scan")), data.tobytes())

    def test_appended_frames_appear_and_cut_ones_vanish(self):
        data = self.image("movie", (4, 20, 30), axes="tyx")
        self.assertEqual(np.load(self.at("movie@/win/x3.npy")).shape, (4, 20))
        self.assertErrno(errno.ENOENT, os.stat, self.at("movie@/win/t4.raw"))
        frame = noise((1, 20, 30))
        with open(self.at("movie"), "ab") as file:
            file.write(frame.tobytes())
        data = np.concatenate([data, frame])
        self.same(self.at("movie@/win/t4.npy"), data[4])
        self.same(self.at("movie@/win/x3.npy"), data[:, :, 3])
        self.same(self.at("movie@/movie.npy"), data)
        os.truncate(self.at("movie"), 600 * 2)
        self.assertErrno(errno.ENOENT, os.stat, self.at("movie@/win/t4.raw"))
        self.same(self.at("movie@/win/x3.npy"), data[:2, :, 3])
        self.assertEqual(os.stat(self.at("movie@/movie.npy")).st_size, 4096 + 1200)
        os.truncate(self.at("movie"), 0)
        self.assertEqual(np.load(self.at("movie@/movie.npy")).shape, (0, 20, 30))

    def test_views_follow_renaming_and_removal(self):
        data = self.image("scan", (20, 30))
        os.stat(self.at("scan@/info.json"))
        os.rename(self.at("scan"), self.at("renamed"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("scan@/info.json"))
        self.same(self.at("renamed@/renamed.npy"), data)
        opened = open(self.at("renamed@/win/y3.raw"), "rb")
        os.unlink(self.at("renamed"))
        self.assertErrno(errno.ENOENT, os.stat, self.at("renamed@"))
        self.assertEqual(opened.read(), data[3].tobytes(), "an open view holds the image")
        opened.close()

    def test_a_reader_sees_a_window_write_whole_or_not_at_all(self):
        make_image(self.at("scan"), (256, 256), channels=3, extent=(32, 32))
        stop = threading.Event()
        mixed = []

        def read(kind):
            fd = self.open_image("scan", os.O_RDONLY)
            size = bind(fd, (16, 16), (200, 200))
            while not stop.is_set():
                got = os.pread(fd, size, 0) if kind else read_all(self.at("scan@/win/y16+200,x16+200.raw"))
                if got.count(got[:1]) != size:
                    mixed.append(set(got))
            os.close(fd)

        # The kernel fills its page cache a part at a time: where images go through it, only bound reads are whole.
        kinds = (1, 1, 1) if self.direct else (0, 1, 1)
        readers = [threading.Thread(target=read, args=(kind,)) for kind in kinds]
        for reader in readers:
            reader.start()
        fd = self.open_image("scan", os.O_RDWR)
        size = bind(fd, (16, 16), (200, 200))
        for value in range(1, 120):
            os.pwrite(fd, bytes([value]) * size, 0)
        stop.set()
        for reader in readers:
            reader.join()
        os.close(fd)
        self.assertEqual(mixed, [])

    def test_writers_side_by_side_leave_all_their_bytes(self):
        for codec in (0, 1):
            height, width, step = 1024, 700, 1 << 17
            make_image(self.at(f"scan{codec}"), (height, width), channels=3, codec=codec, extent=(64, 64))
            data = noise((height, width, 3)).tobytes()
            starts = list(range(0, len(data), step - 1))  # of pieces that overlap by a byte
            random.shuffle(starts)

            def write(mine, fd):
                for start in mine:
                    os.pwrite(fd, data[start:start + step], start)

            fds = [self.open_image(f"scan{codec}", os.O_RDWR) for _ in range(4)]
            writers = [threading.Thread(target=write, args=(starts[i::8], fds[i % 4])) for i in range(8)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            for fd in fds:
                os.close(fd)
            self.assertEqual(read_all(self.at(f"scan{codec}")), data)

    def test_writers_of_scattered_bytes_of_one_window_lose_nothing(self):
        """Parts of a window, plain writes beside them, and frames appended meanwhile: each byte has one owner."""
        self.image("scan", (90, 200), channels=3, extent=(32, 64))
        row = 200 * 3
        total = 90 * row
        failures = []
        expected = bytearray(read_all(self.at("scan")))
        rounds = 60

        def owned(kind, y):  # of each row: a part of its own for each kind of writer
            return slice(y * row + 120 * kind + y % 7, y * row + 120 * kind + 100 + y % 7)

        def work(kind):
            rng = random.Random(kind)
            try:
                fd = self.open_image("scan", os.O_RDWR)
                if kind < 2:
                    bind(fd, (0, 0), (90, 200))
                for _ in range(rounds):
                    rows = rng.sample(range(90), 8)
                    pieces = [(owned(kind, y), bytes([rng.randrange(256)]) * 100) for y in rows]
                    if kind == 4:  # the frames behind them come and go
                        os.truncate(self.at("scan"), total + rng.randrange(5 * row))
                        os.truncate(self.at("scan"), total)
                        continue
                    if kind == 2:
                        with open(self.at("scan@/win/y0+90.raw"), "r+b", buffering=0) as view:
                            for where, data in pieces:
                                os.pwrite(view.fileno(), data, where.start)
                    else:
                        for where, data in pieces:
                            os.pwrite(fd, data, where.start)
                    if kind < 2:
                        fcntl.ioctl(fd, APPLY)
                    for where, data in pieces:
                        expected[where] = data
                os.close(fd)
            except OSError as error:
                failures.append((kind, error))

        threads = [threading.Thread(target=work, args=(kind,)) for kind in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertTrue(read_all(self.at("scan")) == expected)

    def test_a_child_process_that_ends_leaves_the_window_to_its_writer(self):
        before = self.image("a", (60, 70), element="u16")
        path, after = self.at("a@/win/all.raw"), noise((60, 70), "u16")
        half = after.nbytes // 2
        for flags in (os.O_WRONLY, os.O_WRONLY | os.O_TRUNC):
            write_all(path, before.tobytes())
            fd = os.open(path, flags)
            os.pwrite(fd, after.tobytes()[:half], 0)
            subprocess.run(["true"], check=True)
            self.same(self.at("a@/win/all.npy"), before)
            os.pwrite(fd, after.tobytes()[half:], half)
            subprocess.run(["true"], check=True)
            self.same(self.at("a@/win/all.npy"), before)
            os.close(fd)
            self.same(self.at("a@/win/all.npy"), after)

    def test_a_child_process_may_write_the_rest_of_a_window(self):
        before = self.image("a", (60, 70))
        path, after = self.at("a@/win/all.raw"), noise((60, 70)).tobytes()
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
        os.pwrite(fd, after[:1000], 0)
        child = os.fork()
        if child == 0:
            os._exit(0 if os.pwrite(fd, after[1000:], 1000) == len(after) - 1000 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertNotEqual(after, before.tobytes())
        self.assertEqual(read_all(path), after)
        os.close(fd)

    def test_a_close_returns_with_the_window_stored_beside_processes_that_start(self):
        self.image("a", (600, 700), element="u16")
        path, running = self.at("a@/win/all.raw"), True
        def start_programs():
            while running:
                subprocess.run(["true"], check=True)
        threads = [threading.Thread(target=start_programs) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for version in range(1, 61):
                write_all(path, np.full((600, 700), version, "<u2").tobytes())
                self.assertEqual(np.unique(np.fromfile(path, "<u2")).tolist(), [version])
        finally:
            running = False
            for thread in threads:
                thread.join()

    def test_windows_survive_a_new_mount(self):
        data = self.image("scan", (300, 400), channels=3)
        new = noise((30, 40, 3))
        write_all(self.at("scan@/win/y50+30,x100+40.raw"), new.tobytes())
        data[50:80, 100:140] = new
        self.volume.unmount()
        self.volume.mount(self.options)
        self.same(self.at("scan@/scan.npy"), data)


class CachedWindows(Windows):
    """As on a kernel that cannot map direct_io files (before Linux 6.6): images go through the page cache."""
    options = "cache=64M,cached_images"
    direct = os.O_DIRECT

    def test_binding_wants_o_direct(self):
        self.image("scan", (20, 30))
        fd = os.open(self.at("scan"), os.O_RDONLY)
        self.assertErrno(errno.EOPNOTSUPP, bind, fd, (0, 0), (1, 1))
        os.close(fd)


class SmallWindows(harness.MountTest):
    """A mount that takes windows of 1 MiB at most."""
    options = "cache=64M,max_window=1M"

    def test_a_larger_window_names_its_size_and_the_option(self):
        harness.make_image(self.at("scan"), (2048, 2048), codec=0, extent=(64, 64))
        write = [harness.MDFS, "window", "write", self.at("scan")]
        done = subprocess.run([*write, "y0+1025,x0+1024", "-"], input=bytes(1025 * 1024), capture_output=True,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        for words in (b"scan: window y0+1025,x0+1024, 1 MiB: more than this mount", b"max_window=1049600"):
            self.assertIn(words, done.stderr)
        subprocess.run([*write, "y0+1024,x0+1024", "-"], input=bytes(1 << 20), check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    harness.main()
