"""A network that loses datagrams: a relay from one UDP port to another, for tests and measurements.

As a program: lossy_relay.py LISTEN_HOST:PORT TO_HOST:PORT [LOSS]..., where LOSS is `random:SHARE` or
`burst:SHARE:LENGTH`. At SIGTERM it prints how many datagrams came, and how many were lost, as JSON.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import random
import signal
import socket
import sys
import threading

SO_RCVBUFFORCE = 33


def random_loss(share, seed=23):
    """Loses each datagram with the same probability."""
    numbers = random.Random(seed)
    return lambda: numbers.random() < share


def bursts(share, length, seed=23):
    """Loses runs of `length` datagrams: a share of all."""
    numbers = random.Random(seed)
    begins = share / length / (1 - share + share / length)  # of a run, after a datagram that was not lost
    left = 0

    def is_lost():
        nonlocal left
        if left > 0:
            left -= 1
            return True
        if numbers.random() < begins:
            left = length - 1
            return True
        return False

    return is_lost


def every(*losses):
    """Loses what one of them loses."""
    return lambda: any([loss() for loss in losses])


class Relay(threading.Thread):
    """Hands datagrams on to a port, but for those that `is_lost` takes."""

    def __init__(self, to, is_lost=lambda: False, listen=("127.0.0.1", 0)):
        super().__init__(daemon=True)
        self.to = to
        self.is_lost = is_lost
        self.came = 0
        self.lost = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)  # as root
        self.socket.bind(listen)
        self.port = self.socket.getsockname()[1]

    def run(self):
        while True:
            try:
                datagram = self.socket.recv(65536)
            except OSError:
                return
            if datagram == b"stop":
                return
            self.came += 1
            if self.is_lost():
                self.lost += 1
                continue
            try:
                self.socket.sendto(datagram, self.to)
            except OSError:
                pass  # no program listens any more

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"stop", self.socket.getsockname())
        self.join()
        self.socket.close()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def parse_loss(text, seed):
    kind, *values = text.split(":")
    if kind == "random":
        return random_loss(float(values[0]), seed)
    if kind == "burst":
        return bursts(float(values[0]), int(values[1]), seed)
    raise SystemExit(f"{text}: a loss is random:SHARE or burst:SHARE:LENGTH")


def main():
    losses = [parse_loss(text, seed) for seed, text in enumerate(sys.argv[3:])]
    relay = Relay(address(sys.argv[2]), every(*losses), address(sys.argv[1]))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    relay.start()
    signal.sigwait({signal.SIGTERM})
    print(json.dumps({"came": relay.came, "lost": relay.lost}))


if __name__ == "__main__":
    main()
