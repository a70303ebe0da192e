"""A ProxyCommand for tests: carries standard input and output to HOST PORT at so many bytes a second, with a delay."""

import socket
import sys
import threading
import time
from collections.abc import Callable


def carry(read: Callable[[], bytes], write: Callable[[bytes], object], rate: float, delay: float) -> None:
    while data := read():
        time.sleep(delay + len(data) / rate)
        write(data)


def main() -> None:
    host, port, rate, delay = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    far = socket.create_connection((host, port))
    out = sys.stdout.buffer

    def show(data: bytes) -> None:
        out.write(data)
        out.flush()

    up = threading.Thread(
        target=carry, args=(lambda: sys.stdin.buffer.read1(32768), far.sendall, rate, delay), daemon=True
    )
    up.start()
    carry(lambda: far.recv(32768), show, rate, delay)


main()
