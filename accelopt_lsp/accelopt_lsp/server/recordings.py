"""Record a problem from a test of the repository: find the tests that reach a kernel file, run one, profile again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelopt_lsp.errors import UserError
from accelopt_lsp.own_process import own_process
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.profiles import Profiles
from accelopt_lsp.server.session import Session
from accelopt_lsp.state.jobs import BackgroundJob

if TYPE_CHECKING:
    from accelopt_profiling.recording.reaching_tests import ReachingTest

#: Tests that a person is asked to choose from where the editor has no list.
_ASKED = 8
#: Seconds that a command gets to write down what it has when it is cancelled.
_GRACE_SECONDS = 15.0


class Recordings:
    """Runs ``accelopt record`` in a process of its own, as a job of the document."""

    def __init__(self, session: Session, profiles: Profiles) -> None:
        self._editor, self._jobs, self._files = session.editor, session.jobs, session.files
        self._configuration, self._profiles = session.configuration, profiles

    def actions(self) -> Mapping[str, Handler]:
        return {"record": self.record}

    def record(self, args: Arguments) -> BackgroundJob:
        """Run the test ``args.test`` and record it; without one, ask the person which."""
        uri = args.document()
        for job in self._jobs.running(uri, "record"):
            return job
        job = BackgroundJob.of("record", uri, args.kernel)
        return self._jobs.start(job, self._run(job, args.test))

    async def _found(self, uri: str) -> tuple[Path, list[ReachingTest]]:
        """Return the folder that tests are looked for in, and the tests."""
        file = await self._files.read(uri)
        settings = await self._configuration.of(file.path)
        path = Path(file.path).resolve()
        root = (settings.project_root or path.parent).resolve()
        stop = threading.Event()
        try:
            return root, await asyncio.to_thread(_reaching_tests, path, root, stop.is_set)
        finally:
            stop.set()

    async def _run(self, job: BackgroundJob, test_path: str | None) -> None:
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id)) as progress:
            progress.report("looking for tests that reach this file")
            root, tests = await self._found(job.uri)
            test = await self._chosen(tests, test_path)
            if test is None:
                return
            progress.report(" ".join(test.command))
            report = await self._recorded(job.uri, root, test)
        files = report.get("files") or []
        if not files:
            raise UserError(
                f"{test.path} launched nothing of this file that can be recorded; the log says more."
            )
        kernels = ", ".join(f"{k} ({n})" for k, n in files[0]["kernels"].items())
        self._editor.say(
            f"{Path(files[0]['recording']).name} was written: {kernels} calls of different shapes."
        )
        self._profiles.refresh(job.uri)

    async def _chosen(self, tests: list[ReachingTest], test_path: str | None) -> ReachingTest | None:
        if test_path is not None:
            test = next((t for t in tests if t.path == test_path), None)
            if test is None:
                raise UserError(f"{test_path} is none of the tests that reach this file.")
            return test
        if not tests:
            raise UserError(
                "No test or benchmark of the repository names something of this file; run one by hand: "
                "accelopt record -- COMMAND."
            )
        if not self._editor.asks:
            raise UserError(f'Name a test, such as {{"test": "{tests[0].path}"}}.')
        further = len(tests) - _ASKED
        closest = f" These come closest of {len(tests)}." if further > 0 else ""
        chosen = await self._editor.ask(
            f"Run which test, and record what it launches?{closest}", [t.path for t in tests[:_ASKED]]
        )
        return next((t for t in tests if t.path == chosen), None)

    async def _recorded(self, uri: str, root: Path, test: ReachingTest) -> dict[str, Any]:
        """Run the command line's ``record`` in the root; cancelling ends it and what it started."""
        file = await self._files.read(uri)
        python = (await self._configuration.of(file.path)).interpreter.path
        arguments = ["record", "--json", "--file", file.path, "--python", python]
        process = await asyncio.create_subprocess_exec(
            *own_process("accelopt_lsp.cli.main"), *arguments, "--", *test.command,
            cwd=root, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, limit=1 << 24,
        )  # fmt: skip
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        self._editor.note(err.decode(errors="replace")[-20_000:])
        try:
            report = json.loads(out)
        except ValueError:
            report = {}
        if not isinstance(report, dict) or "error" in report:
            reason = report.get("error", {}).get("message") if isinstance(report, dict) else None
            raise UserError(str(reason or f"accelopt record ended with exit code {process.returncode}."))
        return report


def _reaching_tests(path: Path, root: Path, stopped: Callable[[], bool]) -> list[ReachingTest]:
    from accelopt_profiling.recording.reaching_tests import reaching_tests  # a start has no time for it

    return reaching_tests(path, root, stopped)
