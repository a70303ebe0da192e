"""Raise a limit that ended a run: in a new settings file, or by pointing to the one that is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_file import OVER_FILES, settings_file, table_of
from accelopt_lsp.settings.schema import all_settings
from accelopt_lsp.state.jobs import BackgroundJob

#: So many times what a limit was is proposed.
STEP = 4


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
        path, new = await asyncio.to_thread(settings_file, file, f"[limits]\n{line}\n")
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        if new:
            self._editor.say(
                f"{path} was written: `{line}`, {now:g} before. Save {Path(file.path).name} again."
            )
        else:
            table = table_of(path, "limits")
            self._editor.say(
                f"Write `{line}` ({now:g} now) below {table} in {path}, then save the kernel file."
            )
