"""Write a Beta 1 kernel file in today's NKI beside the original, after both were run and compared."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from accelopt_lsp.backend.protocol import Backend
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.kernel_files import KernelFiles
from accelopt_lsp.server.problem_files import write_new
from accelopt_lsp.state.jobs import BackgroundJob, JobRegistry


class Migrations:
    def __init__(
        self, editor: EditorConnection, jobs: JobRegistry, files: KernelFiles, backend: Backend
    ) -> None:
        self._editor, self._jobs, self._files, self._backend = editor, jobs, files, backend

    def move(self, args: Arguments) -> BackgroundJob:
        """Write ``<stem>_nki.py`` beside the document and open it. An existing file is never overwritten."""
        job = BackgroundJob("migrate", args.document("migrate"), "Moving to today's NKI", args.kernel)
        return self._jobs.start(job, self._run(job))

    async def _run(self, job: BackgroundJob) -> None:
        file = await self._files.read(job.uri)
        path = Path(file.path).with_name(f"{Path(file.path).stem}_nki.py")
        if await asyncio.to_thread(path.exists):
            raise UserError(f"{path} exists already; move or delete it first.")
        title = f"Moving {Path(file.path).name} to today's NKI"
        async with self._editor.progress(title, partial(self._jobs.cancel, job.id)):
            moved = await self._backend.migrate(file)
        try:
            await asyncio.to_thread(write_new, path, moved.text)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}.") from None
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        self._editor.say(f"{path.name} was written. {moved.outcome}")
