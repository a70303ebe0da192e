"""The step ``profile`` of the worker for Triton kernels: its partial results, and its result or error."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import Any

from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host, JobFailedError
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import Job, JobFiles, MeasureOptions, Step
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import to_plain


class StepProfiles:
    """Profiles on a host, in plain data; ``close`` ends its event loop."""

    def __init__(self, host: Host) -> None:
        self._host, self._loop = host, asyncio.new_event_loop()

    def profile(
        self, files: dict[str, str], kernel: str, problem: dict[str, Any] | None, **params: Any
    ) -> dict[str, Any]:
        """Profile all kernels of one of the files; ``params`` are those of the step besides, and its options."""
        kernels = find_kernels(files[kernel]).launched
        options = {o.name: params.pop(o.name) for o in fields(MeasureOptions) if o.name in params}
        all_params = {"kernels": to_plain(kernels), "problem": problem, "target": "h100", **params}
        all_params["options"] = to_plain(MeasureOptions(**options))
        return self._loop.run_until_complete(self._run(JobFiles(kernel, files), all_params))

    async def _run(self, source: JobFiles, params: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = {"partial": [], "result": None, "error": None}
        try:
            async with aclosing(self._host.run(Job(source, [Step("profile", "torch", params)]))) as messages:
                async for message in messages:
                    if message.final:
                        answer["result"] = message.value["kernels"]
                    else:
                        answer["partial"].append(message.value)
        except JobFailedError as failed:
            answer["error"] = to_plain(failed.error)
        return answer

    def profile_path(self, path: Path, **params: Any) -> dict[str, Any]:
        """Profile a file on disk with the problem the product finds for it."""
        file = examine(path, path.read_text())
        return self.profile(
            job_files(file, ship_imports=False).files, path.name, to_plain(file.problem.ref), **params
        )

    def close(self) -> None:
        self._loop.close()
