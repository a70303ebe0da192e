"""Profile a kernel for every target of its dialect, and show what it costs on each as a page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from accelopt_lsp.features.target_table import target_table
from accelopt_lsp.resources import with_target
from accelopt_lsp.server.commands import Arguments, Handler
from accelopt_lsp.server.pages import Pages
from accelopt_lsp.server.searches import kernels_meant
from accelopt_lsp.server.session import Session
from accelopt_lsp.service.protocol import FileRequest
from accelopt_lsp.state.jobs import BackgroundJob
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.targets.target import target_names


class TargetComparison:
    def __init__(self, session: Session, pages: Pages) -> None:
        self._editor, self._jobs, self._files = session.editor, session.jobs, session.files
        self._service, self._parser, self._pages = session.service, session.parser, pages

    def actions(self) -> Mapping[str, Handler]:
        return {"compareTargets": self.compare}

    def compare(self, args: Arguments) -> BackgroundJob:
        """Show what a kernel would cost on each target; a profile that is stored is taken as it is."""
        job = BackgroundJob.of("compareTargets", args.document(), args.kernel)
        return self._jobs.start(job, self._compare(job, args))

    async def _compare(self, job: BackgroundJob, args: Arguments) -> None:
        file = await self._files.read(job.uri)
        name = kernels_meant(file, args.kernel, args.line)[0]
        (kernel,) = file.kernels(name)
        targets = target_names("gpu" if kernel.dialect == "triton" else "neuron")
        results: list[KernelMeasurement] = []
        async with self._editor.progress(job.title, partial(self._jobs.cancel, job.id)) as progress:
            for target in targets:
                progress.report(f"{target}, {len(results)} of {len(targets)}")
                results += await self._on(file, kernel, target)
        heading = f"# {name} on each target\n\n"
        text = f"{heading}{target_table(results)}\n\nEstimates of one model, for the same text and sizes.\n"
        where = ", ".join(f"{r.target} {r.latency.us:.3g} us" for r in results if r.latency.us is not None)
        await self._pages.show("targets", f"{name} in {file.path}", f"{name}: targets", text, where)

    async def _on(self, file: FileRequest, kernel: Kernel, target: str) -> list[KernelMeasurement]:
        """Return the kernel's measurement for a target, nothing where its profile has none."""
        settings = with_target(file.settings, target, [kernel.dialect])
        request = await self._parser.examine(Path(file.path), file.text, settings)
        results = request.stored
        if results is None:
            async for growing in self._service.profile(request, [kernel.name]):
                results = growing
        return [k for k in results.kernels if k.name == kernel.name] if results is not None else []
