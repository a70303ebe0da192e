"""Notice changes made outside the editor (git, formatters, coding agents): from the editor, else from watchdog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from accelopt_lsp.server.document_sync import DocumentSync
from accelopt_lsp.server.documents import file_path, text_hash
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_sync import SettingsSync
from accelopt_profiling.source_text import UnreadableFileError, read_text

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch


log = logging.getLogger(__name__)

#: Files written within so many seconds of each other are looked at together: a checkout writes thousands.
TOGETHER = 0.1

PATTERNS = ("**/*.py", "**/accelopt.toml", "**/pyproject.toml")


class FileWatcher:
    """The editor watches where it can be asked to; otherwise the folders of open documents are watched here."""

    def __init__(self, session: Session, settings: SettingsSync, sync: DocumentSync) -> None:
        self._editor, self._state, self._tasks = session.editor, session.state, session.tasks
        self._documents, self._settings, self._sync = session.documents, settings, sync
        self._observer: BaseObserver | None = None
        self._watches: dict[str, ObservedWatch] = {}
        self._waiting: dict[str, str] = {}
        self._written: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._by_editor = False
        session.documents.shown.listen(self._opened)
        session.documents.settled.listen(self._settled)
        session.closing.listen(self._close)

    async def start(self) -> None:
        """Ask the editor to watch; called once after ``initialized``."""
        self._by_editor = await self._editor.watch_files(PATTERNS)

    def _opened(self, uri: str) -> None:
        """Watch the folder of an open document, unless the editor does; also before it answered, since it may refuse
        to."""
        path = file_path(uri)
        if self._by_editor or path is None:
            return
        folder = str(Path(path).parent)
        if folder in self._watches:
            return
        if self._observer is None:
            from watchdog.observers import Observer  # most editors watch by themselves

            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
        try:
            self._watches[folder] = self._observer.schedule(self._handler(), folder)
        except OSError as error:
            log.warning("%s cannot be watched: %s", folder, error)

    def changed(self, path: str) -> None:
        """Note that a file was written. If it is an open document, it is profiled as soon as the editor shows the
        same text."""
        self._written.add(path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER, self._handle_written)

    def deleted(self, path: str) -> None:
        for state in self._state.files():
            if state.path == path:
                self._tasks.start(self._deleted(state.uri, path))

    def _settled(self, uri: str) -> None:
        """Look at a document in which typing has paused: its text may be what was written to the disk before."""
        if uri in self._waiting:
            self._tasks.start(self._compare(uri, self._waiting[uri]))

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._observer is not None:
            self._observer.stop()

    def _handle_written(self) -> None:
        written, self._written, self._timer = self._written, set(), None
        self._tasks.start(self._changed(written))

    async def _changed(self, written: set[str]) -> None:
        settings = {path for path in written if Path(path).name in ("accelopt.toml", "pyproject.toml")}
        if settings:
            await self._settings.reconfigure()
        opened = {state.path: state.uri for state in self._state.files()}
        for path in written & set(opened):
            await self._compare(opened[path], path)
        if others := frozenset(written - settings - set(opened)):
            await self._sync.profile_dependents(others)

    async def _compare(self, uri: str, path: str) -> None:
        opened = self._documents.opened(uri)
        state = self._state.get(uri)
        if opened is None or state is None:
            return
        try:
            on_disk = await asyncio.to_thread(read_text, Path(path))
        except UnreadableFileError as error:
            if error.code != "not-text":
                return  # deleted again meanwhile: that is told separately
            on_disk = error.data.decode("utf-8", "replace")
        if _same_text(on_disk, opened):
            self._waiting.pop(uri, None)
            if state.profiled_text != text_hash(opened):
                self._sync.saved(uri)
        else:
            self._waiting[uri] = path

    async def _deleted(self, uri: str, path: str) -> None:
        if not await asyncio.to_thread(Path(path).exists):  # an editor or git may replace a file by a new one
            self._sync.deleted(uri)

    def _handler(self) -> FileSystemEventHandler:
        """Return what watchdog calls on its thread; it hands events to the event loop."""
        from watchdog import events

        loop, watcher = asyncio.get_running_loop(), self

        class Handler(events.FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.is_directory:
                    return
                if event.event_type == "moved":
                    tell(watcher.deleted, event.src_path)
                    tell(watcher.changed, event.dest_path)
                elif event.event_type == "deleted":
                    tell(watcher.deleted, event.src_path)
                elif event.event_type in ("created", "modified"):
                    tell(watcher.changed, event.src_path)

        def tell(method: Callable[[str], None], path: bytes | str) -> None:
            name = path.decode() if isinstance(path, bytes) else path
            if name.endswith((".py", "accelopt.toml", "pyproject.toml")) and not loop.is_closed():
                loop.call_soon_threadsafe(method, name)

        return Handler()


def _same_text(on_disk: str, in_editor: str) -> bool:
    return on_disk == in_editor or on_disk.replace("\r\n", "\n") == in_editor.replace("\r\n", "\n")
