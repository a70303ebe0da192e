"""Silence a finding: by a comment on its line or in its file, or in the project's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelopt_agent.suggestions.text_edit import TextEdit
from accelopt_lsp.errors import UserError
from accelopt_lsp.features.silence import file_comment, line_comment
from accelopt_lsp.server import convert
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.server.settings_file import OVER_FILES, settings_file, table_of
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.measurement import finding_codes
from accelopt_profiling.source_text import source_lines


class Silence:
    def __init__(self, session: Session) -> None:
        self._editor, self._jobs, self._files = session.editor, session.jobs, session.files
        self._documents = session.documents

    def actions(self) -> Mapping[str, Handler]:
        return {"ignore": self.ignore}

    def ignore(self, args: Arguments) -> BackgroundJob:
        """Silence the code ``args.id`` on the line, in the file or in the project that ``args.scope`` names."""
        uri, code = args.document(), args.id or ""
        if code not in finding_codes():
            raise UserError(f"{code or 'nothing'} is no code of a finding.")
        if args.scope not in ("line", "file", "project") or (args.scope == "line" and not args.line):
            raise UserError('`scope` is "line" (with `line`), "file" or "project".')
        job = BackgroundJob.of("ignore", uri, id=code)
        return self._jobs.start(job, self._run(uri, code, args))

    async def _run(self, uri: str, code: str, args: Arguments) -> None:
        if args.scope == "project":
            await self._in_project(uri, code)
            return
        text = self._documents.opened(uri) or ""
        lines = source_lines(text)
        edit = (
            line_comment(lines, args.line or 1, code) if args.scope == "line" else file_comment(lines, code)
        )
        if edit is None:
            raise UserError(
                f"No comment can stand on line {args.line}: write `# accelopt: ignore-file={code}`."
            )
        await self._apply(uri, edit, text, code)

    async def _apply(self, uri: str, edit: TextEdit, text: str, code: str) -> None:
        if not self._editor.applies_edits:
            self._editor.say(f"Write `{edit.new_text.strip()}` on line {edit.start_line + 1}.")
            return
        version, lines = self._documents.version(uri), self._documents.lines(text)
        changes: Any = convert.workspace_edit(uri, version, [edit], lines, self._editor.client)
        applied, why_not = await self._editor.apply_edit(changes, f"AccelOpt: ignore {code}")
        if not applied:
            raise UserError(f"The comment was not written. {why_not}".strip())

    async def _in_project(self, uri: str, code: str) -> None:
        file = await self._files.read(uri)
        codes = ", ".join(sorted(file.settings.ignored | {code}))
        line, layer = f'ignore = "{codes}"', file.settings.origins.get("ignore", "")
        if layer in OVER_FILES:
            self._editor.say(f"Set `{line}` in {layer}: it stands there, over every file.")
            return
        path, new = await asyncio.to_thread(settings_file, file, f"{line}\n")
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        if new:
            self._editor.say(f"{path} was written: `{line}`. Save {Path(file.path).name} again.")
        else:
            self._editor.say(f"Write `{line}` below {table_of(path)} in {path}, then save the kernel file.")
