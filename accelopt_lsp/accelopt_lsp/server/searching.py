"""Searches for faster versions as jobs: what passes the gate is offered at once, while the search goes on."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING

from accelopt_agent.suggestion import Suggestion
from accelopt_lsp.jobs import Job
from accelopt_lsp.server.backend import BackendProblem, Ended, FileText, Tried
from accelopt_lsp.server.progress import Progress

if TYPE_CHECKING:
    from accelopt_lsp.server.server import AccelOptServer


class Searches:
    def __init__(self, server: AccelOptServer) -> None:
        self._server = server

    def ask(self, uri: str, kernel: str | None, line: int | None, instructions: str = "") -> Job:
        """Search for faster versions of a kernel: the one named, the one at the 1-based ``line``, or every one of the
        file. A search for the same that runs already is the answer, unless there are ``instructions``: then it ends,
        and what it paid for is remembered."""
        state = self._server.board.get(uri)
        if kernel is None and line is not None and state is not None and (at := state.kernel_at(line)):
            kernel = at.kernel.name
        for job in self._server.jobs.running(uri, "optimize"):
            if job.kernel == kernel:
                if not instructions:
                    return job
                self._server.jobs.cancel(job.id)
        job = Job("optimize", uri, f"Optimizing {kernel or PurePath(uri).name}", kernel)
        return self._server.jobs.start(job, self._run(job, line, instructions))

    async def _run(self, job: Job, line: int | None, instructions: str) -> None:
        server = self._server
        shows = server.client.has("window", "work_done_progress")
        async with Progress(server, shows, job.title, lambda: server.jobs.cancel(job.id)) as progress:
            file = await server.editing.file(job.uri)
            for name in _kernels(file, job.kernel, line):
                await self._search(job.uri, file, name, progress, instructions)

    async def _search(
        self, uri: str, file: FileText, name: str, progress: Progress, instructions: str
    ) -> None:
        server = self._server
        found: dict[str, Suggestion] = {}
        async with aclosing(server.backend.optimize(file, name, instructions)) as events:
            async for event in events:
                if isinstance(event, Tried):
                    progress.report(event.message, event.share)
                elif isinstance(event, Suggestion):
                    found[event.id] = event
                    best_first = tuple(sorted(found.values(), key=lambda s: -s.speedup.value))
                    server.board.update(uri, lambda s, best=best_first: s.with_suggestions(name, best))  # type: ignore[misc]
                elif isinstance(event, Ended):
                    server.say(event.message)


def _kernels(file: FileText, kernel: str | None, line: int | None) -> list[str]:
    """The names of the kernels to search for. Raises BackendProblem: there is none."""
    found = [k for k in file.found.kernels if not k.device_function] or list(file.found.kernels)
    if kernel is not None:
        if all(k.name != kernel for k in file.found.kernels):
            raise BackendProblem(f"{file.path} has no kernel {kernel}.")
        return [kernel]
    if line is not None:
        inside = [k for k in file.found.kernels if k.first_line <= line <= k.end_line]
        if not inside:
            raise BackendProblem(f"There is no kernel at line {line} of {file.path}.")
        return [max(inside, key=lambda k: k.first_line).name]
    if not found:
        raise BackendProblem(f"{file.path} has no kernel.")
    return [k.name for k in found]
