"""`mdfs serve`: files and views of a volume over HTTP."""
# SPDX-License-Identifier: Apache-2.0
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse

import harness
from harness import make_image, read_all, write_all

try:
    import numpy as np
except ImportError:
    print("SKIPPED: the tests of the web server need numpy")
    raise SystemExit(harness.SKIP)


class Serve(harness.MountTest):
    def setUp(self):
        super().setUp()
        self.data = np.random.default_rng(1).integers(0, 255, (200, 300), "u1")
        make_image(self.at("scan"), self.data.shape)
        write_all(self.at("scan"), self.data.tobytes())
        os.mkdir(self.at("a <folder>"))
        write_all(self.at("a <folder>/notes.txt"), b"0123456789")
        self.server = subprocess.Popen(
            [harness.MDFS, "serve", self.volume.path, "--listen", "127.0.0.1:0", "--root",
             os.path.basename(self.dir)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        line = self.server.stdout.readline()
        if not line and "cannot be loaded" in self.server.stderr.read():
            self.skipTest("built without cpp-httplib")
        self.port = urllib.parse.urlsplit(line.strip()).port

    def end(self):
        self.server.kill()
        self.server.communicate()

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def body(self, path):
        answer, body = self.ask(path)
        self.assertEqual(answer.status, 200, path)
        self.assertEqual(int(answer.headers["Content-Length"]), len(body))
        return body

    def raw(self, *requests):
        """What comes back on one connection for bytes that are sent at once, until the server ends it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"".join(requests))
            answer = b""
            while piece := connection.recv(1 << 16):
                answer += piece
            return answer

    def status_of(self, request):
        return int(self.raw(request).split(b" ", 2)[1])

    def test_files_windows_and_views_are_those_of_the_mount(self):
        self.assertEqual(self.body("/scan"), self.data.tobytes())
        for name, kind in (("win/y10+20,x30+40.npy", "application/octet-stream"), ("scan.tif", "image/tiff"),
                           ("win/y10+20,x30+40.png", "image/png"), ("win/all.jpg", "image/jpeg"),
                           ("info.json", "application/json"), ("ome.zarr/0/zarr.json", "application/json"),
                           ("ome.zarr/0/c/0/0", "application/octet-stream")):
            with self.subTest(name=name):
                answer, body = self.ask(f"/scan@/{name}")
                self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, kind))
                self.assertEqual(body, read_all(self.at(f"scan@/{name}")))
        self.assertEqual(self.body("/a%20%3Cfolder%3E/notes.txt"), b"0123456789")

    def test_a_range_is_that_part_of_the_file(self):
        tif = read_all(self.at("scan@/scan.tif"))
        for wanted, first, last in (("0-15", 0, 15), ("5000-", 5000, len(tif) - 1),
                                    ("-100", len(tif) - 100, len(tif) - 1),
                                    (f"10-{10 * len(tif)}", 10, len(tif) - 1)):
            answer, body = self.ask("/scan@/scan.tif", Range=f"bytes={wanted}")
            self.assertEqual((answer.status, body), (206, tif[first:last + 1]), wanted)
            self.assertEqual(answer.headers["Content-Range"], f"bytes {first}-{last}/{len(tif)}")
        answer, _ = self.ask("/scan@/scan.tif", Range=f"bytes={len(tif)}-")
        self.assertEqual((answer.status, answer.headers["Content-Range"]), (416, f"bytes */{len(tif)}"))
        for ignored in ("bytes=0-1,5-6", "bytes=a-b", "bytes", "bytes=", "bytes=5-3", "rows=0-1", "bytes=--1", "=0-1"):
            answer, body = self.ask("/scan@/scan.tif", Range=ignored)
            self.assertEqual((answer.status, body), (200, tif), ignored)
        answer, _ = self.ask("/scan@/scan.tif", "HEAD", Range="bytes=0-1")
        self.assertEqual((answer.status, answer.headers["Content-Length"]), (200, str(len(tif))))
        self.assertEqual(self.ask("/scan@/scan.tif", Range=f"bytes=0-1{'0' * 30}")[1], tif)
        self.assertEqual(self.ask("/scan@/scan.tif", Range=f"bytes=1{'0' * 30}-")[0].status, 416)
        self.assertEqual(self.ask("/scan@/scan.tif", Range="bytes=0-1", If_Range='"old"')[1], tif)

    def test_a_client_keeps_what_has_not_changed(self):
        path = "/scan@/win/y0+8.raw"
        answer, before = self.ask(path)
        tag, date = answer.headers["ETag"], answer.headers["Last-Modified"]
        again, body = self.ask(path, If_None_Match=tag)
        self.assertEqual((again.status, body, again.headers["ETag"]), (304, b"", tag))
        self.assertEqual(self.ask(path, If_Modified_Since=date)[0].status, 304)
        write_all(self.at("scan@/win/y0+1.raw"), bytes(300))
        answer, after = self.ask(path, If_None_Match=tag)
        self.assertEqual((answer.status, after), (200, bytes(300) + before[300:]))
        self.assertNotEqual(answer.headers["ETag"], tag)

    def test_conditions_that_say_nothing_of_the_version_give_the_file(self):
        path = "/a%20%3Cfolder%3E/notes.txt"
        tag = self.ask(path)[0].headers["ETag"]
        for headers, status in (({"If_None_Match": f'"a", W/{tag}'}, 304), ({"If_None_Match": "*"}, 304),
                                ({"If_None_Match": '"a,*,b"'}, 200), ({"If_Modified_Since": "garbage"}, 200),
                                ({"If_Unmodified_Since": "garbage"}, 200), ({"If_Match": "*"}, 200),
                                ({"If_Match": f'"a", {tag}'}, 200), ({"If_Match": f"W/{tag}"}, 412),
                                ({"Range": "bytes=0-1", "If_Range": tag}, 206),
                                ({"Range": "bytes=0-1", "If_Range": f"W/{tag}"}, 200)):
            self.assertEqual(self.ask(path, **headers)[0].status, status, headers)
        answer, _ = self.ask(path, If_None_Match=tag)
        self.assertNotIn("Content-Length", answer.headers)
        self.assertIn("Date", answer.headers)

    def test_requests_that_are_sent_together_are_all_answered(self):
        one = b"GET /a%20%3Cfolder%3E/notes.txt HTTP/1.1\r\nHost: a\r\n"
        answer = self.raw(*[one + b"\r\n"] * 20, one + b"Connection: close\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK\r\n"), 21)
        self.assertEqual(answer.count(b"0123456789"), 21)
        post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n"
        body = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"[:30]
        answer = self.raw(post, body, one + b"Connection: close\r\n\r\n")
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answer), [b"405", b"200"])

    def test_a_body_that_is_not_read_ends_the_connection(self):
        for fields in (b"Content-Length: 100000000\r\n", b"Transfer-Encoding: chunked\r\n",
                       b"Content-Length: 10\r\nExpect: 100-continue\r\n"):
            hidden = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            answer = self.raw(b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n" + hidden)
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answer), [b"405"], fields)
            self.assertIn(b"Connection: close", answer)

    def test_what_is_no_request_is_refused_by_its_reason(self):
        end = b"\r\nHost: a\r\nConnection: close\r\n\r\n"
        for request, status in ((b"GET / HTTP/1.1\r\n\r\n", 400), (b"GET / HTTP/1.0\r\n\r\n", 200),
                                (b"\r\nGET / HTTP/1.1" + end, 200),
                                (b"GET / HTTP/1.1\nHost: a\nConnection: close\n\n", 200),
                                (b"GET / HTTP/1.1\r\nHost: b" + end, 400), (b"GET / HTTP/3.0" + end, 505),
                                (b"BREW / HTTP/1.1" + end, 501), (b"TRACE / HTTP/1.1" + end, 405),
                                (b"CONNECT a:1 HTTP/1.1" + end, 405), (b"OPTIONS * HTTP/1.1" + end, 204),
                                (b"GET /" + b"a" * 9000 + b" HTTP/1.1" + end, 414), (b"GET /" + b"a" * 90000, 414),
                                (b"GET / HTTP/1.1\r\nA: " + b"a" * 9000 + end, 431),
                                (b"GET / HTTP/1.1" + b"\r\nA: a" * 9000 + end, 431),
                                (b"GET http://elsewhere:1/scan@/info.json HTTP/1.1" + end, 200),
                                (b"GET / HTTP/1.1\r\n A: folded" + end, 400)):
            self.assertEqual(self.status_of(request), status, request[:60])
        answer = self.raw(b"GET http://elsewhere:1/scan@/iiif/info.json HTTP/1.1" + end)
        self.assertIn(b'"http://elsewhere:1/scan@/iiif"', answer)

    def test_a_coding_is_used_if_the_client_wants_it(self):
        for wanted, coding in (("gzip", "gzip"), ("gzip;q=0", None), ("identity", None),
                               ("br;q=0, gzip;q=0.5", "gzip")):
            answer, _ = self.ask("/", Accept_Encoding=wanted)
            self.assertEqual((answer.headers["Content-Encoding"], answer.headers["Vary"]), (coding, "Accept-Encoding"))

    def test_a_change_that_keeps_the_time_of_the_bytes_is_a_new_version(self):
        times = (1_000_000_000, 1_000_000_000)
        os.utime(self.at("scan"), times)
        for path in "/scan", "/scan@/win/y0+8.raw", "/scan@/win/y0+8.png", "/scan@/scan.tif":
            tag = self.ask(path)[0].headers["ETag"]
            fd = os.open(self.at("scan"), os.O_WRONLY)
            os.pwrite(fd, os.urandom(300), 300)
            os.close(fd)
            os.utime(self.at("scan"), times)
            answer, body = self.ask(path, If_None_Match=tag)
            self.assertEqual((answer.status, body), (200, self.body(path)), path)
            self.assertEqual(self.ask(path, If_Match=tag)[0].status, 412, path)
            self.assertEqual(self.ask(path, If_Match=answer.headers["ETag"])[0].status, 200, path)
        write_all(self.at("a"), b"old")
        tag = self.ask("/a")[0].headers["ETag"]
        write_all(self.at("b"), b"new")
        shutil.copystat(self.at("a"), self.at("b"))
        os.rename(self.at("b"), self.at("a"))
        self.assertEqual(self.ask("/a", If_None_Match=tag)[1], b"new")
        self.assertEqual(self.ask("/a", If_Unmodified_Since="Thu, 01 Jan 1970 00:00:00 GMT")[0].status, 412)

    def test_head_options_and_other_methods(self):
        size = os.stat(self.at("scan@/scan.npy")).st_size
        answer, body = self.ask("/scan@/scan.npy", "HEAD")
        self.assertEqual((answer.status, body, answer.headers["Content-Length"]), (200, b"", str(size)))
        answer, _ = self.ask("/scan", "OPTIONS")
        self.assertEqual((answer.status, answer.headers["Access-Control-Allow-Origin"]), (204, "*"))
        self.assertEqual(answer.headers["Allow"], "GET, HEAD, OPTIONS")
        self.assertIn("Range", answer.headers["Access-Control-Allow-Headers"])
        for method in ("PUT", "POST", "DELETE", "PATCH"):
            answer, _ = self.ask("/scan", method)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD, OPTIONS"))
        self.assertEqual(read_all(self.at("scan")), self.data.tobytes())
        for path in "/scan", "/missing":  # a page of another origin sees errors, too
            self.assertEqual(self.ask(path)[0].headers["Access-Control-Allow-Origin"], "*")

    def test_no_path_leads_out_of_the_root(self):
        write_all(os.path.join(self.volume.path, "secret"), b"secret")
        os.symlink("../secret", self.at("link"))
        os.symlink("/etc/passwd", self.at("absolute"))
        os.symlink("scan", self.at("inside"))
        for path in ("/../secret", "/%2e%2e/secret", "/a%20%3Cfolder%3E/../../secret", "/link", "/absolute", "/missing",
                     "//etc/passwd", "/scan%00", "/scan/", "/scan@/win/y999.png", "/scan@/win/nonsense", "/.mdfs/"):
            self.assertEqual(self.ask(path)[0].status, 404, path)
        self.assertEqual(self.body("/inside"), self.data.tobytes())
        os.remove(os.path.join(self.volume.path, "secret"))

    def test_a_directory_is_a_page_of_links(self):
        answer, _ = self.ask("/a%20%3Cfolder%3E")
        self.assertEqual((answer.status, answer.headers["Location"]), (301, "/a%20%3Cfolder%3E/"))
        self.assertEqual(self.ask("//scan@?a=b")[0].headers["Location"], "/scan@/?a=b")
        page = self.body("/").decode()
        self.assertIn('<a href="./a%20%3Cfolder%3E/">a &lt;folder&gt;/</a>', page)
        self.assertIn('<a href="./scan@/">scan</a> (<a href="./scan">bytes</a>)', page)
        self.assertIn('<a href="./scan.tif">', self.body("/scan@/").decode())

    def test_pages_find_their_scripts_and_run_no_others(self):
        make_image(self.at("a <folder>/film"), (3, 20, 30), axes="tyx")
        for page in "/", "/a%20%3Cfolder%3E/", "/scan@/", "/a%20%3Cfolder%3E/film@/":
            answer, body = self.ask(page)
            self.assertIn("default-src 'self'", answer.headers["Content-Security-Policy"])
            scripts = re.findall(r'<script src="([^"]+)">', body.decode())
            self.assertTrue(scripts)
            for script in scripts:
                answer, text = self.ask(urllib.parse.urljoin(page, script))
                self.assertEqual(answer.status, 200)
                self.assertIn("text/javascript", answer.headers["Content-Type"])
                self.assertGreater(len(text), 500)
        if "openseadragon" not in self.body("/scan@/").decode():
            print("built without OpenSeadragon: no page of an image to look at")
            return
        found = re.search(r'id="image">(.*?)</script>', self.body("/a%20%3Cfolder%3E/film@/").decode())
        image = json.loads(found.group(1))
        self.assertEqual((image["path"], image["name"]), ("a <folder>/film", "film"))
        self.assertEqual(image["info"]["shape"], [3, 20, 30])

    def test_a_description_of_iiif_has_the_address_of_the_server(self):
        info = json.loads(self.body("/scan@/iiif/info.json"))
        self.assertEqual(info["id"], f"http://127.0.0.1:{self.port}/scan@/iiif")
        self.assertEqual((info["width"], info["height"], info["profile"]), (300, 200, "level0"))
        url = urllib.parse.urlsplit(info["id"]).path + "/0,0,256,200/128,100/0/default.jpg"
        self.assertEqual(self.body(url), read_all(self.at("scan@/win/l1,x0+128.jpg")))

    def test_idle_connections_do_not_keep_others_out(self):
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(100)]
        self.assertEqual(self.body("/a%20%3Cfolder%3E/notes.txt"), b"0123456789")
        for one in idle:
            one.close()

    def test_a_second_server_at_the_port_of_another_is_refused(self):
        done = subprocess.run([harness.MDFS, "serve", self.volume.path, "--listen", f"127.0.0.1:{self.port}"],
                              capture_output=True, text=True, check=False, timeout=30)
        self.assertEqual(done.returncode, 1, done.stderr)  # no data are at fault
        self.assertIn("in use", done.stderr)
        done = subprocess.run([harness.MDFS, "serve", self.volume.path, "--public", "--listen", "203.0.113.1:0"],
                              capture_output=True, text=True, check=False, timeout=30)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not an address of this machine", done.stderr)

    def test_addresses_of_the_network_need_public(self):
        done = subprocess.run([harness.MDFS, "serve", self.volume.path, "--listen", "0.0.0.0:0"], capture_output=True,
                              text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--public", done.stderr)
        for wrong in "8080", "localhost:", "localhost:99999", ":80":
            done = subprocess.run([harness.MDFS, "serve", self.volume.path, "--listen", wrong], capture_output=True,
                                  text=True, check=False)
            self.assertIn("HOST:PORT", done.stderr)


if __name__ == "__main__":
    harness.main()
