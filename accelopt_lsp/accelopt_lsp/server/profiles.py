"""Profile files as background jobs: one at a time per file, a newer one replaces the one that runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

from accelopt_lsp.server.change_learning import ProfiledTexts
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.documents import text_hash
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.measurement import FileMeasurement, KernelMeasurement

#: A profile shorter than this many seconds shows no progress.
QUICK = 0.5


class Profiles:
    """``with_timeline`` are the documents whose profiles say when each engine works."""

    def __init__(self, session: Session) -> None:
        self._editor, self._state, self._jobs = session.editor, session.state, session.jobs
        self._service, self._files, self.texts = session.service, session.files, ProfiledTexts()
        self._status = session.status
        self.with_timeline: set[str] = set()

    def start(self, uri: str, file: FileRequest) -> BackgroundJob:
        """Profile ``file``; a profile of the same document that still runs is cancelled first."""
        earlier = self._jobs.cancel_for(uri, "profile")
        job = BackgroundJob.of("profile", uri)
        return self._jobs.start(job, self._run(job, file, earlier))

    def actions(self) -> Mapping[str, Handler]:
        return {"profile": self.profile}

    def profile(self, args: Arguments) -> BackgroundJob:
        """Profile a document because a person asked: from the text as it is, whatever is remembered.

        With ``timeline``, this and each later profile has the schedule of each engine, until its charts are closed.
        """
        if args.timeline:
            self.with_timeline.add(args.document())
        return self.refresh(args.document())

    def forget(self, uri: str) -> None:
        """Drop what is kept of a document that is closed."""
        self.texts.drop(uri)
        self.with_timeline.discard(uri)

    def refresh(self, uri: str) -> BackgroundJob:
        """Profile a document from the text as it is, whatever is remembered."""
        earlier = self._jobs.cancel_for(uri, "profile")
        job = BackgroundJob.of("profile", uri)
        return self._jobs.start(job, self._read_and_run(job, earlier))

    def is_running_for(self, uri: str, text: str) -> bool:
        """Return whether a profile of exactly this text runs."""
        state = self._state.get(uri)
        running = any(self._jobs.running(uri, "profile"))
        return running and state is not None and state.profiled_text == text_hash(text)

    async def _read_and_run(self, job: BackgroundJob, earlier: list[asyncio.Task[None]]) -> None:
        file = await self._files.read(job.uri)
        await self._run(job, replace(file, again=True), earlier)

    async def _run(self, job: BackgroundJob, file: FileRequest, earlier: list[asyncio.Task[None]]) -> None:
        uri = job.uri
        if earlier:
            await asyncio.wait(earlier, timeout=5)
        self.texts.note(uri, file.source)
        self._state.update(uri, lambda state: state.with_profile_started(text_hash(file.text)))
        if file.stored is not None and not file.again:
            self._state.show(uri, file.stored, file.source)
            self._note(file, file.stored, "known already")
            if uri not in self.with_timeline:
                return
        results: FileMeasurement | None = None
        async with (
            self._editor.progress(job.title, partial(self._jobs.cancel, job.id), delay=QUICK) as progress,
            aclosing(self._service.profile(file, timeline=uri in self.with_timeline)) as growing,
        ):
            async for results in growing:
                self._state.show(uri, _shortened(results), file.source)
                progress.report(f"{len(_timed(results))} of {len(file.source.kernels)} kernels")
        if results is not None:
            self._note(file, results, f"on {file.settings.host}")

    def _note(self, file: FileRequest, results: FileMeasurement, how: str) -> None:
        """Write to the editor's log what came of a text, and the seconds since it was taken from the editor."""
        timed = _timed(results)
        if timed:
            self._status.reached.add("profiled")
        if file.settings.asks_models:  # a folder below the editor's may have settings of its own
            self._status.reached.add("model")
        targets = " and ".join(dict.fromkeys(kernel.target for kernel in timed)) or "no target"
        seconds = time.time() - file.read_at
        count = f"{len(timed)} of {len(file.source.kernels)} kernels"
        self._editor.note(f"{Path(file.path).name}: {count} for {targets} in {seconds:.2f} s, {how}.", "info")


def _shortened(results: FileMeasurement) -> FileMeasurement:
    """Return the results with the part of each schedule that is shown: every edit moves the lines of what is kept."""
    kernels = [replace(k, timeline=k.timeline and k.timeline.middle()) for k in results.kernels]
    return replace(results, kernels=kernels)


def _timed(results: FileMeasurement) -> list[KernelMeasurement]:
    return [kernel for kernel in results.kernels if kernel.latency.us is not None]
