"""Write new files for a kernel file: a problem with inferred inputs, a Beta 1 kernel in today's NKI, type stubs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.resources import read_source, write_new
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.settings.load import Settings
from accelopt_lsp.state.jobs import BackgroundJob

#: The first number of two digits in the function that makes a problem's inputs: a size.
_SIZE = re.compile(r"^def get_inputs\(.*?\b(\d{2,})\b", re.MULTILINE | re.DOTALL)


class NewFiles:
    """Writes files that do not exist, and opens them; an existing file is never overwritten."""

    def __init__(self, session: Session) -> None:
        self._editor, self._jobs = session.editor, session.jobs
        self._files, self._service = session.files, session.service
        self._configuration, self._versions = session.configuration, session.versions
        self._documents = session.documents

    def actions(self) -> Mapping[str, Handler]:
        return {
            "createProblem": self.create_problem,
            "migrate": self.migrate,
            "writeStubs": self.write_stubs,
        }

    def create_problem(self, args: Arguments) -> BackgroundJob:
        """Write ``<stem>_problem.py`` beside the document."""
        job = BackgroundJob.of("createProblem", args.document(), args.kernel)
        return self._jobs.start(job, self._create_problem(job, args))

    def migrate(self, args: Arguments) -> BackgroundJob:
        """Write ``<stem>_nki.py``, the kernels in today's NKI, beside the document."""
        job = BackgroundJob.of("migrate", args.document(), args.kernel)
        return self._jobs.start(job, self._migrate(job))

    async def write_stubs(self, args: Arguments) -> dict[str, Any]:
        """Write type stubs of NKI into ``typings/`` of the document's project; answer with that folder at once."""
        from accelopt_lsp.language.stub_files import FOLDER

        path = self._documents.path(args.document())
        settings = await self._configuration.of(path)
        folder = (settings.project_root or Path(path).parent) / FOLDER
        job = BackgroundJob.of("writeStubs", args.document())
        self._jobs.start(job, self._write_stubs(path, folder, settings))
        return {"job": job.id, "folder": str(folder)}

    async def _write_stubs(self, path: str, folder: Path, settings: Settings) -> None:
        from accelopt_lsp.language.stub_files import ForeignFileError, write_stubs

        version = self._versions.cached(path).nki
        try:
            names = await asyncio.to_thread(write_stubs, folder, version)
        except ForeignFileError as error:
            raise UserError(str(error)) from None
        await self._versions.read(settings)
        where = "Pyright and Pylance find them there; `accelopt stubs` says what mypy and ty need."
        self._editor.say(f"Wrote {len(names)} type stubs of NKI {version} to {folder}. {where}")

    async def _create_problem(self, job: BackgroundJob, args: Arguments) -> None:
        file = await self._files.read(job.uri)
        name, kernel = Path(file.path).name, args.kernel or _kernel_at(file, args.line)
        path = _beside(file, "problem")
        if await asyncio.to_thread(path.exists):
            await self._open(path)
            raise UserError(f"{path} exists already; complete it there.")
        async with self._editor.progress(f"Inferring inputs for {name}", partial(self._jobs.cancel, job.id)):
            problem = await self._service.infer_problem(file, kernel)
        await self._write(path, problem.text, f"{problem.outcome} Then save {name}.")

    async def _migrate(self, job: BackgroundJob) -> None:
        file = await self._files.read(job.uri)
        path = _beside(file, "nki")
        if await asyncio.to_thread(path.exists):
            raise UserError(f"{path} exists already; move or delete it first.")
        title = f"Moving {Path(file.path).name} to today's NKI"
        async with self._editor.progress(title, partial(self._jobs.cancel, job.id)):
            moved = await self._service.migrate(file)
        await self._write(moved.written_as(path), moved.text, moved.outcome)

    async def _write(self, path: Path, text: str, outcome: str) -> None:
        await asyncio.to_thread(write_new, path, text)
        await self._open(path)
        self._editor.say(f"{path.name} was written. {outcome}")

    async def _open(self, path: Path) -> None:
        if self._editor.shows_files:
            text = await asyncio.to_thread(read_source, path)
            await self._editor.show_file(path, take_focus=True, selected=first_size(text))


def first_size(text: str) -> tuple[int, int, int] | None:
    """Return the 0-based line and columns of the first size of a problem's inputs; None in other files."""
    size = _SIZE.search(text)
    if size is None:
        return None
    begin, end = size.span(1)
    start = text.rfind("\n", 0, begin) + 1
    return text.count("\n", 0, begin), begin - start, end - start


def _beside(file: FileRequest, suffix: str) -> Path:
    """Return ``<stem>_<suffix>.py`` beside the kernel file."""
    path = Path(file.path)
    return path.with_name(f"{path.stem}_{suffix}.py")


def _kernel_at(file: FileRequest, line: int | None) -> str | None:
    """Return the name of the launched kernel at the 1-based ``line``, None where there is none."""
    at = (k.name for k in file.source.launched if line and k.first_line <= line <= k.end_line)
    return next(at, None)
