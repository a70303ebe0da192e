"""Show the progress of one job, with cancel; silent where the client shows none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from uuid import uuid4

from lsprotocol import types
from pygls.lsp.server import LanguageServer

log = logging.getLogger(__name__)


class WorkDoneProgress:
    """``async with WorkDoneProgress(...) as progress: progress.report(...)``.

    It appears after ``delay`` seconds, so that quick work shows none; the client's cancel calls ``cancel``.
    """

    def __init__(
        self,
        server: LanguageServer,
        supported: bool,
        title: str,
        cancel: Callable[[], object],
        delay: float = 0.0,
    ) -> None:
        self._server, self._supported, self._title, self._cancel = server, supported, title, cancel
        self._delay = delay
        self._token: str | None = None
        self._latest: tuple[str, int] | None = None
        self._begin: asyncio.Task[None] | None = None
        self._asked = False
        self._ended: str | None = None

    async def __aenter__(self) -> WorkDoneProgress:
        if self._supported:
            self._begin = asyncio.get_running_loop().create_task(self._appear())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        self._ended = "cancelled" if cancelled else "failed" if kind else "done"
        if self._token is not None:
            self._end(self._token)
        elif self._begin is not None and not self._asked:
            self._begin.cancel()

    def report(self, message: str, share: float | None = None) -> None:
        """Say what is being done, and how much of it (0..1) is; as much as before where that is not told.

        A progress that begins with a percentage goes on with one: VS Code drops reports that have none.
        """
        before = self._latest[1] if self._latest is not None else 0
        self._latest = (message, before if share is None else round(100 * min(max(share, 0.0), 1.0)))
        if self._token is not None:
            self._send()

    def _send(self) -> None:
        assert self._token is not None
        if self._latest is not None:
            message, percentage = self._latest
            report = types.WorkDoneProgressReport(cancellable=True, message=message, percentage=percentage)
            self._server.work_done_progress.report(self._token, report)

    def _end(self, token: str) -> None:
        self._server.work_done_progress.tokens.pop(token, None)  # pygls keeps it otherwise
        self._server.work_done_progress.end(token, types.WorkDoneProgressEnd(message=self._ended))

    async def _appear(self) -> None:
        await asyncio.sleep(self._delay)
        token, progress = uuid4().hex, self._server.work_done_progress
        self._asked = True  # from here on the client has a progress that must begin and end
        try:
            await progress.create_async(token)
        except Exception:
            log.warning("the client refused to create progress for %s", self._title)
            return
        begin = types.WorkDoneProgressBegin(title=self._title, cancellable=True, percentage=0)
        progress.begin(token, begin)
        if self._ended is not None:
            self._end(token)
            return
        loop = asyncio.get_running_loop()
        progress.tokens[token].add_done_callback(
            lambda f: loop.call_soon_threadsafe(self._cancel) if f.cancelled() else None
        )
        self._token = token
        self._send()
