"""fio writes and verifies: checksums in every block, several block sizes, through the page cache and past it."""
# SPDX-License-Identifier: Apache-2.0
import json
import os

from torture import LONGER, TortureTest, main, make_image, run, tried

MIB = 1 << 20
# All that fio 3.33 knows; null verifies nothing.
MODES = ("md5", "crc64", "crc32c", "crc32c-intel", "crc32", "crc16", "crc7", "xxhash", "sha512", "sha256", "sha1",
         "sha3-224", "sha3-256", "sha3-384", "sha3-512", "pattern", "meta")
ENGINES = ("psync", "mmap", "libaio", "io_uring")


class Fio(TortureTest):
    def setUp(self):
        super().setUp()
        self.need("fio")

    def fio(self, name, path, *options, size=12 * MIB):
        """Runs one job; returns how many bytes it wrote and read, of which it verified all that it read."""
        report = self.outside(name + ".json")
        run("fio", "--name=job", f"--filename={path}", f"--size={size}", "--verify=crc32c", "--verify_fatal=1",
            "--do_verify=1", "--output-format=json", f"--output={report}", "--ioengine=psync", "--randseed=7",
            f"--loops={LONGER}", "--fallocate=none", *options, cwd=self.volume.folder)
        with open(report, encoding="utf-8") as file:
            job = json.load(file)["jobs"][0]
        self.assertEqual(job["error"], 0)
        enough = size * 0.99  # blocks of mixed sizes do not fill it to the last byte
        self.assertGreaterEqual(job["write"]["io_bytes"], enough)
        self.assertGreaterEqual(job["read"]["io_bytes"], enough, "not all was verified")

    def sweep(self, path_of):
        for direct in (0, 1):
            for block in ("4k", "13k", "64k", "1m"):
                for pattern in ("write", "randwrite"):
                    with self.subTest(direct=direct, block=block, pattern=pattern):
                        name = f"{pattern}{block}{direct}"
                        path = path_of(name)
                        self.fio(name, path, f"--bs={block}", f"--rw={pattern}", f"--direct={direct}",
                                 size=12 * MIB // 13312 * 13312 if block == "13k" else 12 * MIB)
                        os.unlink(path)

    def test_files_verify_at_every_block_size(self):
        self.sweep(self.at)

    def test_images_verify_at_every_block_size(self):
        codecs = [0, 1]

        def make(name):
            codecs.reverse()
            make_image(self.at(name), (3000, 4096), extent=(100, 128), codec=codecs[0])
            return self.at(name)
        self.sweep(make)

    def test_verification_close_behind_the_writer(self):
        self.fio("backlog", self.at("file"), "--bs=8k", "--rw=randwrite", "--verify_backlog=64", "--fsync=50",
                 size=16 * MIB)
        make_image(self.at("scan"), (64, 512, 512), extent=(8, 64, 64))
        self.fio("backlog_image", self.at("scan"), "--bs=8k", "--rw=randwrite", "--verify_backlog=64", "--direct=1",
                 size=16 * MIB)

    def test_mixed_sizes_and_many_jobs_at_once(self):
        self.fio("mixed", self.at("file"), "--bsrange=512-128k", "--bs_unaligned=1", "--rw=randwrite", size=16 * MIB)
        run("fio", "--name=job", f"--directory={self.dir}", "--size=4m", "--bs=16k", "--rw=randwrite", "--numjobs=8",
            "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--ioengine=psync", "--fsync=20",
            "--fallocate=none",
            cwd=self.volume.folder)
        run("fio", "--name=job", f"--filename={self.at('mapped')}", "--size=8m", "--bs=16k", "--rw=randwrite",
            "--ioengine=mmap", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", cwd=self.volume.folder)

    def every_mode(self, engine, pattern, *options, on_images=False, size=512 << 10):
        """One job for each mode, all at once, each on its own file. Each must have verified what it wrote."""
        jobs = self.outside("jobs.fio")
        with open(jobs, "w", encoding="utf-8") as file:
            file.write(f"[global]\nioengine={engine}\nrw={pattern}\nsize={size}\nverify_fatal=1\ndo_verify=1\n"
                       f"fallocate=none\nrandseed=11\nverify_interval=4096\nloops={LONGER}\n")
            for option in options:
                file.write(option + "\n")
            for mode in MODES:
                path = self.at(f"{engine}-{pattern}-{mode}")
                if on_images:
                    make_image(path, (size // 1024, 1024), extent=(100, 128), codec=len(mode) % 2)
                file.write(f"[{mode}]\nfilename={path}\nverify={mode}\n")
                if mode == "pattern":
                    file.write("verify_pattern=%o\n")
        report = self.outside("report.json")
        run("fio", jobs, "--output-format=json", f"--output={report}", cwd=self.volume.folder)
        with open(report, encoding="utf-8") as file:
            done = json.load(file)["jobs"]
        self.assertEqual([job["jobname"] for job in done], list(MODES))
        for job in done:
            self.assertEqual(job["error"], 0, job["jobname"])
            self.assertGreater(job["write"]["io_bytes"], size * 0.3, job["jobname"])
            self.assertGreaterEqual(job["read"]["io_bytes"], job["write"]["io_bytes"] * 0.99, job["jobname"])
        for mode in MODES:
            os.unlink(self.at(f"{engine}-{pattern}-{mode}"))
        return sum(job["read"]["io_bytes"] for job in done)

    def test_every_mode_of_verification_by_every_engine(self):
        jobs = verified = 0
        for engine in ENGINES:
            deep = ("iodepth=8", "direct=1") if engine in ("libaio", "io_uring") else ()
            for on_images in (False, True):
                for pattern, mix in (("randwrite", ()), ("randrw", ("rwmixwrite=60",))):
                    with self.subTest(engine=engine, pattern=pattern, images=on_images):
                        verified += self.every_mode(engine, pattern, "bs=8k", *deep, *mix, on_images=on_images)
                        jobs += len(MODES)
        tried(f"{jobs} jobs of fio in {len(MODES)} modes of verification by {len(ENGINES)} engines, "
              f"{verified >> 20} MiB verified")

    def test_a_wrong_byte_is_seen(self):
        """fio itself must notice: it verifies a file in which one byte was changed."""
        job = ["fio", "--name=job", f"--filename={self.at('file')}", "--size=1m", "--bs=16k", "--rw=write",
               "--verify=crc32c", "--verify_fatal=1", "--ioengine=psync", "--fallocate=none"]
        run(*job, "--do_verify=0", cwd=self.volume.folder)
        run(*job, "--verify_only", cwd=self.volume.folder)
        with open(self.at("file"), "r+b") as file:
            file.seek(500_000)
            byte = file.read(1)
            file.seek(500_000)
            file.write(bytes([byte[0] ^ 1]))
        with self.assertRaisesRegex(AssertionError, "verify"):
            run(*job, "--verify_only", cwd=self.volume.folder)


if __name__ == "__main__":
    main()
