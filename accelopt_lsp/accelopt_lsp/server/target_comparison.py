"""Profile a kernel for every target of its dialect, and show what it costs on each: as a page, or to choose from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from accelopt_lsp.features.target_table import by_time, target_table, time_on
from accelopt_lsp.resources import with_target
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.progress import WorkDoneProgress
from accelopt_lsp.server.searches import kernels_meant
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_lsp.state.state_store import Document
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.targets.target import target_names


class TargetComparison:
    def __init__(self, session: Session, pages: Pages) -> None:
        self._editor, self._jobs, self._files = session.editor, session.jobs, session.files
        self._service, self._parser, self._pages = session.service, session.parser, pages
        self._state = session.state
        self._measuring: dict[tuple[str, str], asyncio.Future[list[KernelMeasurement]]] = {}

    def actions(self) -> Mapping[str, Handler]:
        return {"compareTargets": self.compare, "targetCosts": self.costs}

    def compare(self, args: Arguments) -> BackgroundJob:
        """Show what a kernel would cost on each target; a profile that is stored is taken as it is."""
        job = BackgroundJob.of("compareTargets", args.document(), args.kernel)
        return self._jobs.start(job, self._compare(job, args))

    async def costs(self, args: Arguments) -> dict[str, Any]:
        """Return what a kernel costs on each target, fastest first; where that is cancelled, on those known by then."""
        uri = args.document()
        file, kernel = await self._read(uri, args)
        key = uri, kernel.content_hash
        if (work := self._measuring.get(key)) is not None:
            await asyncio.wait([work])  # asked for twice
        else:
            title = BackgroundJob.of("compareTargets", uri).title
            async with self._editor.progress(title, lambda: self._measuring[key].cancel()) as progress:
                work = asyncio.ensure_future(self._measure(uri, file, kernel, progress))
                self._measuring[key] = work
                await asyncio.wait([work])
            del self._measuring[key]
        if not work.cancelled():
            work.result()
        costs = [
            {"target": r.target, "time": time_on(r), "bound": r.bound or ""}
            for r in by_time(self._known(uri, kernel))
        ]
        target = file.settings.targets(file.source.kernels)[kernel.dialect]
        return {"kernel": kernel.name, "dialect": kernel.dialect, "target": target, "costs": costs}

    async def _compare(self, job: BackgroundJob, args: Arguments) -> None:
        file, kernel = await self._read(job.uri, args)
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id)) as progress:
            results = await self._measure(job.uri, file, kernel, progress)
        name = kernel.name
        heading = f"# {name} on each target\n\n"
        text = f"{heading}{target_table(results)}\n\nEstimates of one model, for the same text and sizes.\n"
        where = ", ".join(f"{r.target} {r.latency.us:.3g} us" for r in results if r.latency.us is not None)
        await self._pages.show(f"targets of {name}", file.path, f"{name}: targets", text, where)

    async def _read(self, uri: str, args: Arguments) -> tuple[FileRequest, Kernel]:
        file = await self._files.read(uri)
        (kernel,) = file.kernels(kernels_meant(file, args.kernel, args.line)[0])
        return file, kernel

    async def _measure(
        self, uri: str, file: FileRequest, kernel: Kernel, progress: WorkDoneProgress
    ) -> list[KernelMeasurement]:
        """Return the kernel's result for each target; the document's state gets each as soon as it is there."""
        results = {r.target: r for r in self._known(uri, kernel)}
        targets = target_names("gpu" if kernel.dialect == "triton" else "neuron")
        for target in targets:
            progress.report(f"{target}, {len(results)} of {len(targets)}")
            if target in results:
                continue
            result = self._shown(uri, kernel, target) or await self._on(file, kernel, target)
            if result is not None:
                results[target] = result
                self._state.update(uri, partial(_with_target, kernel.name, result))
        return list(results.values())

    def _known(self, uri: str, kernel: Kernel) -> tuple[KernelMeasurement, ...]:
        state = self._state.get(uri)
        now = state.kernel(kernel.name) if state is not None else None
        return now.on_targets if now is not None and now.kernel.content_hash == kernel.content_hash else ()

    def _shown(self, uri: str, kernel: Kernel, target: str) -> KernelMeasurement | None:
        """Return the result that the document shows, if it is for that text and target."""
        state = self._state.get(uri)
        now = state.kernel(kernel.name) if state is not None else None
        if now is None or now.shown is None or now.old or now.shown.latency.us is None:
            return None
        same = (now.shown.target, now.shown.content_hash) == (target, kernel.content_hash)
        return replace(now.shown, timeline=None) if same else None

    async def _on(self, file: FileRequest, kernel: Kernel, target: str) -> KernelMeasurement | None:
        """Return the kernel's measurement for a target, None where its profile has none."""
        settings = with_target(file.settings, target, [kernel.dialect])
        request = await self._parser.examine(Path(file.path), file.text, settings)
        results = request.stored
        if results is None:
            async for growing in self._service.profile(request, [kernel.name]):
                results = growing
        result = next((k for k in results.kernels if k.name == kernel.name), None) if results else None
        return result and replace(result, content_hash=kernel.content_hash, timeline=None)


def _with_target(kernel: str, result: KernelMeasurement, state: Document) -> Document:
    return state.with_target(kernel, result)
