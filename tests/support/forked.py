"""Programs that import once and are forked for each test: to import the server takes longer than most tests do.

``python forked.py serve SOCKET`` imports what they need and waits. ``python forked.py run SOCKET MODULE`` is what a
test starts in place of the program: it hands over its streams, environment and folder, and ends as the forked ``main``
of the module does. The streams are the pipes that the test made, so a test sees a process like any other. That a whole
process starts and ends well is tested in ``tests/server/test_server_process.py`` and ``tests/cli/test_lsp.py``.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import socket
import subprocess
import sys
from pathlib import Path

#: What the servers of the tests import; a server imports its own parts only after its first answer.
HEAVY = (
    "support.scripted_server",
    "accelopt_lsp.server.setup",
    "accelopt_lsp.server.request_stream",
    "accelopt_lsp.service.process_main",
)

#: The most that a request may hold, in bytes: an environment.
LARGEST = 1 << 20


class Parent:
    """The process that has imported, as its user sees it."""

    def __init__(self, folder: Path) -> None:
        self._address = folder / "forked"
        command = [sys.executable, __file__, "serve", str(self._address)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert ready == b"ready\n", f"{command} ended with {self._process.wait()}"

    def command(self, module: str) -> tuple[str, ...]:
        """What starts ``main`` of a module, such as ``support.scripted_server``."""
        return (sys.executable, "-I", "-S", __file__, "run", str(self._address), module)

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


def serve(address: str) -> str | None:
    """Fork for each connection until standard input ends; in the child, the module to run."""
    import_lsp_types = importlib.import_module("accelopt_lsp.server.lsp_types").import_lsp_types
    import_lsp_types()
    for heavy in HEAVY:
        importlib.import_module(heavy)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                return None
            if key.fileobj is listener:
                connection, _ = listener.accept()
                request, streams, _, _ = socket.recv_fds(connection, LARGEST, 3)
                child = os.fork()
                if child == 0:
                    for mine in (selector, listener, connection):
                        mine.close()
                    return become(request, streams)
                for stream in streams:
                    os.close(stream)
                selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))
            else:
                selector.unregister(key.fd)
                os.close(key.fd)
                child, connection = key.data
                tell_the_end(child, connection)


def become(request: bytes, streams: list[int]) -> str:
    """Take the streams, environment and folder of who asked; the module that it asked for."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    fields = json.loads(request)
    os.chdir(fields["folder"])
    os.environ.clear()
    os.environ.update(fields["environment"])
    return str(fields["module"])


def tell_the_end(child: int, connection: socket.socket) -> None:
    _, status = os.waitpid(child, 0)
    with connection:
        try:
            connection.send(b"%d" % os.waitstatus_to_exitcode(status))
        except BrokenPipeError:
            print(f"nobody waits for {child} any more", file=sys.stderr)


def run(address: str, module: str) -> int:
    """Have ``module`` run in a forked child with the streams of this process; its exit code."""
    request = {"module": module, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2])
        for stream in (0, 1, 2):
            os.close(stream)
        return int(connection.recv(32) or b"1")


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    sys.path[0] = str(Path(__file__).parents[1])  # the folder ``tests``, where ``support`` stands
    if what == "run":
        os._exit(run(*arguments) % 256)
    if (module := serve(*arguments)) is not None:
        importlib.import_module(module).main()
