"""Implements ``accelopt watch``: profiles files below a folder when they are saved, as a live table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelopt_lsp.cli.failures import CommandError
from accelopt_lsp.cli.options import host_option, json_option, target_option
from accelopt_lsp.cli.surface import Terminal, call_service
from accelopt_lsp.cli.terminal import print_json
from accelopt_lsp.errors import UserError, file_fault
from accelopt_lsp.resources import read_file, read_source, settings_for, with_target
from accelopt_lsp.stderr import printable, say

if TYPE_CHECKING:
    from rich.live import Live

    from accelopt_lsp.service.protocol import Service
    from accelopt_profiling.measurement import FileMeasurement

#: Folders that hold other people's code or none.
SKIPPED = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", "site-packages", ".tox"})

#: Files found when the watch begins are profiled too, up to this many.
FIRST_FILES = 200


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@target_option
@host_option
@click.option("--once", is_flag=True, help="Profile what is there and end.")
@json_option
def watch(folder: Path, target: str | None, host: str | None, once: bool, as_json: bool) -> None:
    """Profile the kernels below FOLDER on every save. Ctrl-C ends it.

    With --json and --once: one object with the measurements of all files.
    """
    flags = {"host": host}
    watcher = Watcher(folder.resolve(), flags, target)
    if once:
        watcher.run(forever=False)
        settings = settings_for(folder, flags)
        with_target(settings, target, {k.dialect for m in watcher.shown() for k in m.kernels})
        if as_json:
            from accelopt_lsp.shapes import file_object

            print_json({"folder": str(folder), "files": [file_object(m) for m in watcher.shown()]})
            return
        from accelopt_lsp.cli.tables import print_measurement
        from accelopt_lsp.cli.terminal import out

        for measurement in watcher.shown():
            print_measurement(out(), measurement)
        return
    if as_json:
        raise click.UsageError("--json needs --once: a watch never ends, and an object must.")
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        watcher.changed = lambda: _redraw(live, watcher)
        watcher.run(forever=True)


class Watcher:
    """The latest measurement of every file with kernels below ``folder``. ``changed`` is called after each
    one; ``flags`` hold over the settings of each file."""

    def __init__(self, folder: Path, flags: Mapping[str, Any], target: str | None) -> None:
        self.folder, self._flags, self._target = folder, flags, target
        self.changed: Callable[[], None] = lambda: None
        self.measurements: dict[Path, FileMeasurement] = {}
        self._work: dict[Path, asyncio.Task[None]] = {}

    def shown(self) -> list[FileMeasurement]:
        return [self.measurements[path] for path in sorted(self.measurements)]

    def run(self, *, forever: bool) -> None:
        """Profile what is there, then what is saved, until interrupted or, unless ``forever``, all is done."""
        work = self.follow if forever else self._profile_all
        call_service(work, Terminal("The receipts were not kept."))

    async def _profile_all(self, service: Service) -> None:
        for path in kernel_files(self.folder):
            await self._profile(service, path)

    async def follow(self, service: Service) -> None:
        """Profile what is there, then what is saved, until cancelled."""
        saved: asyncio.Queue[Path] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(path: Path) -> None:  # from the observer's thread
            loop.call_soon_threadsafe(saved.put_nowait, path)

        observer = observe(self.folder, tell)
        try:
            for path in kernel_files(self.folder):
                saved.put_nowait(path)
            while True:
                self._start(service, await saved.get())
        finally:
            for task in self._work.values():
                task.cancel()
            await asyncio.gather(*self._work.values(), return_exceptions=True)
            observer.stop()
            await asyncio.to_thread(observer.join)

    def _start(self, service: Service, path: Path) -> None:
        """Profile a file; a profile of its older text ends."""
        running = self._work.pop(path, None)
        if running is not None:
            running.cancel()
        task = asyncio.create_task(self._profile(service, path))
        self._work[path] = task
        task.add_done_callback(lambda done: self._ended(path, done))

    def _ended(self, path: Path, done: asyncio.Task[None]) -> None:
        if self._work.get(path) is done:
            del self._work[path]
        if not done.cancelled() and (error := done.exception()) is not None:
            say(file_fault(error, str(path)) or f"{path}: {error}")

    async def _profile(self, service: Service, path: Path) -> None:
        from accelopt_profiling.kernels import may_hold_kernels

        try:
            text = read_source(path)
        except UserError as error:
            if self.measurements.pop(path, None) is not None:
                self.changed()
            if path.exists():
                say(str(error))
            return
        if not may_hold_kernels(text):
            self.measurements.pop(path, None)
            return
        settings = settings_for(path, self._flags)
        file = read_file(path, settings, self._target, among_others=True, text=text)
        async with aclosing(service.profile(file)) as growing:
            async for measurement in growing:
                if measurement.kernels or measurement.findings:
                    self.measurements[path] = file.without_ignored(measurement)
                self.changed()


def kernel_files(folder: Path) -> list[Path]:
    """Return the Python files below ``folder`` that may hold a kernel, links and skipped folders left out."""
    import os

    from accelopt_profiling.kernels import may_hold_kernels
    from accelopt_profiling.source_text import read_regular

    paths: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            path = Path(where, name)
            if is_watched(folder, path) and path.is_file() and not path.is_symlink():
                try:
                    text = read_regular(path).decode("utf-8", "replace")
                except OSError:
                    continue
                if may_hold_kernels(text):
                    paths.append(path)
                if len(paths) == FIRST_FILES:
                    say(f"More than {FIRST_FILES} files with kernels: the others when they are saved.")
                    return paths
    return paths


def is_watched(folder: Path, path: Path) -> bool:
    """Check whether a file below ``folder`` is Python and in no skipped folder there."""
    below = path.suffix == ".py" and path.is_relative_to(folder)
    return below and not SKIPPED & set(path.relative_to(folder).parts)


def observe(folder: Path, saved: Callable[[Path], None]) -> Any:
    """Call ``saved`` from another thread for every Python file that is written or moved into place; the
    started observer, which the caller stops. Raises CommandError: the system cannot watch the folder.
    """
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    from accelopt_lsp.cli.failures import Exit

    class Saved(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            if event.event_type in ("modified", "created", "moved", "deleted") and not event.is_directory:
                path = Path(str(event.dest_path or event.src_path))
                if is_watched(folder, path):
                    saved(path)

    observer = Observer()
    observer.schedule(Saved(), str(folder), recursive=True)
    try:
        observer.start()
    except OSError as error:
        raise CommandError(Exit.UNAVAILABLE, f"{folder} cannot be watched: {error.strerror}.") from None
    return observer


def _redraw(live: Live, watcher: Watcher) -> None:
    from rich.console import Group
    from rich.text import Text

    from accelopt_lsp.cli.tables import finding_line, measurement_table

    measurements = watcher.shown()
    findings = [
        Text(finding_line(m.file, f))
        for m in measurements
        for f in [*m.findings, *(g for k in m.kernels for g in k.findings)]
        if f.severity in ("error", "warning")
    ]
    empty = Text(printable(f"Waiting for a kernel to be saved below {watcher.folder} ..."))
    live.update(
        Group(measurement_table(measurements, with_file=True), *findings) if measurements else empty,
        refresh=True,
    )
