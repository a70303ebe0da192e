"""The editor's messages are read on the event loop, from whatever standard input is."""

from __future__ import annotations

import asyncio
import os
import pty
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelopt_lsp.server.request_stream import request_stream

BODY = b"x" * 300_000  # more than a pipe holds


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


async def test_the_first_message_comes_before_what_the_pipe_brings(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    stream = request_stream(b"first\r\n", reading)

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(b"second\r\n" + BODY)

    writer = threading.Thread(target=write)
    writer.start()
    assert [await stream.readline(), await stream.readline()] == [b"first\r\n", b"second\r\n"]
    assert await stream.readexactly(len(BODY)) == BODY
    assert await stream.readline() == b""
    writer.join()


async def test_what_a_message_begins_runs_before_the_next_one(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(writing)
    stream, order = request_stream(b"abcd", reading), []

    async def work() -> None:
        order.append("work")

    task = asyncio.create_task(work())
    order.append(await stream.readexactly(2))
    await task
    assert order == ["work", b"ab"]


async def test_the_descriptor_stays_blocking(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    stream = request_stream(b"", reading)
    assert os.get_blocking(reading)
    os.close(writing)
    assert await stream.readline() == b""


async def test_a_regular_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "requests").write_bytes(b"line\r\n" + BODY)
    with (tmp_path / "requests").open("rb", buffering=0) as file:
        stream = request_stream(b"", file.fileno())
        assert await stream.readline() == b"line\r\n"
        assert await stream.read() == BODY


async def test_a_terminal_that_is_gone_is_the_end() -> None:
    terminal, line = pty.openpty()
    stream = request_stream(b"", line)
    os.close(terminal)
    assert await stream.readline() == b""
    os.close(line)


def test_an_exit_of_the_loop_does_not_make_it_wait_for_another_message(pipe: tuple[int, int]) -> None:
    """A handler that raises SystemExit leaves the reader's call in the queue, and the next turn adds it again."""
    reading, writing = pipe
    loop = asyncio.new_event_loop()
    release = threading.Timer(20, os.write, (writing, b"too late"))
    release.start()

    async def serve() -> asyncio.StreamReader:
        stream = request_stream(b"", reading)
        os.write(writing, b"once")
        loop.call_soon(exit)
        await asyncio.sleep(0)
        return stream

    task = loop.create_task(serve())
    with pytest.raises(SystemExit):
        loop.run_until_complete(task)
    stream = loop.run_until_complete(task)
    assert loop.run_until_complete(stream.read(100)) == b"once"
    assert release.is_alive(), "it waited for bytes that had been read"
    release.cancel()
    loop.close()
