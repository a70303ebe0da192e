"""Changes made outside the editor (git, formatters, coding agents): heard from the client, else from watchdog."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from accelopt_lsp.server.documents import file_path, read_source

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer

log = logging.getLogger(__name__)

#: Files written within so many seconds of each other are looked at together: a checkout writes thousands.
TOGETHER = 0.1

PATTERNS = ("**/*.py", "**/accelopt.toml", "**/pyproject.toml")


class Watching:
    """The client watches where it can be asked to; otherwise the folders of open documents are watched here."""

    def __init__(self, server: AccelOptServer) -> None:
        self._server = server
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._waiting: dict[str, str] = {}
        self._written: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._by_client = False

    async def start(self) -> None:
        """Ask the client to watch; called once after ``initialized``."""
        server = self._server
        if server.client.has("workspace", "did_change_watched_files", "dynamic_registration"):
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in PATTERNS]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration("accelopt-watch", method, options)
            try:
                await server.client_register_capability_async(types.RegistrationParams([registration]))
                self._by_client = True
                return
            except JsonRpcException as error:
                log.warning("the client does not watch files: %s", error)
        for state in server.board.files():
            self.opened(state.uri)

    def opened(self, uri: str) -> None:
        """Watch the folder of an open document, unless the client does."""
        path = file_path(uri)
        if self._by_client or path is None:
            return
        folder = str(Path(path).parent)
        if folder in self._watches:
            return
        if self._observer is None:
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
        try:
            handler = _Handler(asyncio.get_running_loop(), self)
            self._watches[folder] = self._observer.schedule(handler, folder)
        except OSError as error:
            log.warning("%s cannot be watched: %s", folder, error)

    def changed(self, path: str) -> None:
        """A file was written. If it is an open document, profile it as soon as the editor shows the same text."""
        self._written.add(path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._look)

    def deleted(self, path: str) -> None:
        for state in self._server.board.files():
            if state.path == path:
                self._server.background(self._deleted(state.uri, path))

    def edited(self, uri: str) -> None:
        """The editor's text settled: it may be what was written to the disk before."""
        if uri in self._waiting:
            self._server.background(self._compare(uri, self._waiting[uri]))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._observer is not None:
            self._observer.stop()

    def _look(self) -> None:
        written, self._written, self._timer = self._written, set(), None
        self._server.background(self._changed(written))

    async def _changed(self, written: set[str]) -> None:
        settings = {path for path in written if Path(path).name in ("accelopt.toml", "pyproject.toml")}
        if settings:
            await self._server.reconfigure()
        opened = {state.path: state.uri for state in self._server.board.files()}
        for path in written & set(opened):
            await self._compare(opened[path], path)
        if others := frozenset(written - settings - set(opened)):
            await self._server.editing.profile_dependents(others)

    async def _compare(self, uri: str, path: str) -> None:
        opened = self._server.documents.opened(uri)
        state = self._server.board.get(uri)
        if opened is None or state is None:
            return
        try:
            on_disk, _ = await asyncio.to_thread(read_source, path)
        except OSError:
            return  # deleted again meanwhile: that is told separately
        if _same_text(on_disk, opened.text):
            self._waiting.pop(uri, None)
            if state.profiled_text != opened.hash:
                self._server.editing.saved(uri)
        else:
            self._waiting[uri] = path

    async def _deleted(self, uri: str, path: str) -> None:
        if not await asyncio.to_thread(Path(path).exists):  # an editor or git may replace a file by a new one
            self._server.editing.deleted(uri)


def _same_text(on_disk: str, in_editor: str) -> bool:
    return on_disk == in_editor or on_disk.replace("\r\n", "\n") == in_editor.replace("\r\n", "\n")


class _Handler(FileSystemEventHandler):
    """Watchdog's thread tells the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watching: Watching) -> None:
        self._loop, self._watching = loop, watching

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.is_directory:
            return
        if event.event_type == "moved":
            self._tell(self._watching.deleted, event.src_path)
            self._tell(self._watching.changed, event.dest_path)
        elif event.event_type == "deleted":
            self._tell(self._watching.deleted, event.src_path)
        elif event.event_type in ("created", "modified"):
            self._tell(self._watching.changed, event.src_path)

    def _tell(self, method: Any, path: bytes | str) -> None:
        name = path.decode() if isinstance(path, bytes) else path
        if name.endswith((".py", "accelopt.toml", "pyproject.toml")) and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(method, name)
