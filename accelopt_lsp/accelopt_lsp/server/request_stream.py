"""Read the editor's messages on the event loop.

pygls reads each header line and each body on a thread: eight switches between threads per message, each of which waits
for a processor when kernels run beside the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select

_CHUNK = 1 << 16
#: pygls' reader takes a header line of any length, and so does this one.
_LINE_LIMIT = 1 << 30


class RequestStream(asyncio.StreamReader):
    """Gives what earlier messages began a turn before each body: an editor may send many messages at once."""

    async def readexactly(self, n: int) -> bytes:
        body = await super().readexactly(n)
        await asyncio.sleep(0)
        return body


def request_stream(first: bytes, requests: int) -> RequestStream:
    """Return a stream of ``first`` and of what the file descriptor ``requests`` brings from now on; needs the
    running loop.

    The descriptor stays in blocking mode, which it may share with the editor or with standard output: it is read only
    when it has something. That is asked again before each read: where a handler ends the loop with an exception, the
    call of a reader that is still to run is repeated, and would wait for a message that never comes.
    """
    loop = asyncio.get_running_loop()
    stream, events = RequestStream(_LINE_LIMIT, loop), select.poll()
    events.register(requests, select.POLLIN)
    if first:
        stream.feed_data(first)

    def read() -> bool:
        data = b""
        with contextlib.suppress(OSError):  # a terminal or socket that is gone is the end as well
            data = os.read(requests, _CHUNK)
        if data:
            stream.feed_data(data)
        else:
            stream.feed_eof()
        return bool(data)

    def readable() -> None:
        if events.poll(0) and not read():
            loop.remove_reader(requests)

    try:
        loop.add_reader(requests, readable)
    except PermissionError:  # a regular file, which nothing has to be waited for
        while read():
            pass
    return stream
