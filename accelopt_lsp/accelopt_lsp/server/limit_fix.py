"""Raise a limit that ended a run: in a new settings file, or by pointing to the one that is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.schema import all_settings
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.source_text import UnreadableFileError, read_text

#: So many times what a limit was is proposed.
STEP = 4
#: Layers of settings that a file does not change.
OVER_FILES = ("the environment", "the editor's settings", "the command line")


class LimitFix:
    def __init__(self, session: Session) -> None:
        self._editor, self._jobs, self._files = session.editor, session.jobs, session.files

    def actions(self) -> Mapping[str, Handler]:
        return {"raiseLimit": self.raise_limit}

    def raise_limit(self, args: Arguments) -> BackgroundJob:
        """Raise the limit named by ``args.id``, ``limits.seconds`` unless one is named. Nothing is overwritten."""
        uri = args.document()
        name = (args.id or "limits.seconds").removeprefix("limits.")
        if name not in ("seconds", "memory_mb"):
            raise UserError(f"{args.id} is no limit of a run.")
        job = BackgroundJob.of("raiseLimit", uri, id=f"limits.{name}")
        return self._jobs.start(job, self._run(uri, name))

    async def _run(self, uri: str, name: str) -> None:
        file = await self._files.read(uri)
        now, layer = getattr(file.settings.limits, name), file.settings.origins.get(f"limits.{name}", "")
        most = all_settings()[f"limits.{name}"].maximum
        limit = now * STEP if most is None else min(now * STEP, most)
        if limit <= now:
            self._editor.say(f"limits.{name} is {now:g}, and no more than that can be set.")
            return
        line = f"{name} = {limit:g}" if name == "seconds" else f"{name} = {limit:.0f}"
        if layer in OVER_FILES:
            self._editor.say(
                f"Set `limits.{line}` ({now:g} now) in {layer}: it stands there, over every file."
            )
            return
        path, new = await asyncio.to_thread(_settings_file, file, line)
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        if new:
            self._editor.say(
                f"{path} was written: `{line}`, {now:g} before. Save {Path(file.path).name} again."
            )
        else:
            table = "[tool.accelopt.limits]" if path.name == "pyproject.toml" else "[limits]"
            self._editor.say(
                f"Write `{line}` ({now:g} now) below {table} in {path}, then save the kernel file."
            )


def _settings_file(file: FileRequest, line: str) -> tuple[Path, bool]:
    """Return the project's settings file and whether it was written now, with ``line`` as its only limit.

    Raises:
        UserError: it cannot be written.
    """
    folder = file.settings.project_root or Path(file.path).parent
    for present in (folder / "accelopt.toml", folder / "pyproject.toml"):
        if present.is_file() and (present.name == "accelopt.toml" or _holds_settings(present)):
            return present, False
    path = folder / "accelopt.toml"
    try:
        with path.open("x", encoding="utf-8") as settings:
            settings.write(f"[limits]\n{line}\n")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path, True


def _holds_settings(project: Path) -> bool:
    """Tell whether a ``pyproject.toml`` has settings of ours; one that cannot be read as text has none."""
    try:
        return "[tool.accelopt" in read_text(project)
    except UnreadableFileError:
        return False
