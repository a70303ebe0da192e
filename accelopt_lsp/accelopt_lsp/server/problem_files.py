"""Write a problem file beside a kernel file, with inputs that were inferred, for the person to keep and edit."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from accelopt_lsp.backend.protocol import Backend, FileText
from accelopt_lsp.errors import UserError
from accelopt_lsp.server.commands import Arguments
from accelopt_lsp.server.connection import EditorConnection
from accelopt_lsp.server.kernel_files import KernelFiles
from accelopt_lsp.state.jobs import BackgroundJob, JobRegistry
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.problems.inference.inferred import InferredProblem


class ProblemFiles:
    def __init__(
        self, editor: EditorConnection, jobs: JobRegistry, files: KernelFiles, backend: Backend
    ) -> None:
        self._editor, self._jobs, self._files, self._backend = editor, jobs, files, backend

    def create(self, args: Arguments) -> BackgroundJob:
        """Write ``<stem>_problem.py`` beside the document and open it. An existing file is never overwritten."""
        uri = args.document("createProblem")
        job = BackgroundJob("create-problem", uri, "Creating a problem file", args.kernel)
        return self._jobs.start(job, self._run(job, args))

    async def _run(self, job: BackgroundJob, args: Arguments) -> None:
        file = await self._files.read(job.uri)
        kernel = choose_kernel(file, args.kernel, args.line)
        path = Path(file.path).with_name(f"{Path(file.path).stem}_problem.py")
        if await asyncio.to_thread(path.exists):
            raise UserError(f"{path} exists already; complete it there.")
        problem = await self._inferred(job, file, kernel)
        try:
            await asyncio.to_thread(write_new, path, problem.text)
        except FileExistsError:
            raise UserError(f"{path} exists already; complete it there.") from None
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}.") from None
        if self._editor.shows_files:
            await self._editor.show_file(path, take_focus=True)
        self._editor.say(f"{path.name} was written. {problem.outcome} Then save {Path(file.path).name}.")

    async def _inferred(self, job: BackgroundJob, file: FileText, kernel: Kernel) -> InferredProblem:
        title = f"Inferring inputs for {Path(file.path).name}"
        async with self._editor.progress(title, partial(self._jobs.cancel, job.id)):
            return await self._backend.infer_problem(file, kernel.name, self._editor.client.trusted)


def choose_kernel(file: FileText, name: str | None, line: int | None) -> Kernel:
    """Return the kernel of that name, or at the 1-based ``line``, or the first one that host code launches.

    Raises:
        UserError: there is none.
    """
    kernels = file.found.kernels
    for kernel in kernels:
        if kernel.name == name or (name is None and line and kernel.first_line <= line <= kernel.end_line):
            return kernel
    launched = [k for k in kernels if not k.device_function] or list(kernels)
    if name is not None or not launched:
        raise UserError(f"{file.path} has no kernel{f' {name}' if name else ''}.")
    return launched[0]


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist. Raises FileExistsError, OSError."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
