"""A host, a kernel and its problem, and a shorthand for the tests of the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelopt_profiling.examination import examine
from accelopt_profiling.gate.gate import check
from accelopt_profiling.gate.request import CaseOptions, GateRequest, Tell, untold
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import JobFiles, Limits
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.receipt import Receipt

PROBLEM = """
import numpy as np

shapes = [{"rows": 1, "columns": 1}, {"rows": 37, "columns": 61}]

def get_inputs(rows=48, columns=96):
    return [np.random.normal(size=(rows, columns)).astype(np.float32),
            np.random.normal(size=(columns,)).astype(np.float32)]

def reference(x, w):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * w
"""

ORIGINAL = """
import numpy as np

def kernel(x, w):
    out = np.empty_like(x)
    scale = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))
    out[:] = x * scale * w
    return out
"""


@dataclass
class Checker:
    """Runs the gate on a local host, in an event loop of its own."""

    loop: asyncio.AbstractEventLoop
    host: Host

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def numpy(
        self,
        candidate: str,
        problem: str,
        original: str,
        options: CaseOptions | None = None,
        limits: Limits | None = None,
        in_kernel_file: bool = False,
        beside: Mapping[str, str] | None = None,
        tell: Tell = untold,
    ) -> tuple[Verdict, Receipt]:
        """Check plain NumPy code whose function is called ``kernel``; the files ``beside`` do not change."""
        path = None if in_kernel_file else "problem_of_k.py"
        files = {**({} if in_kernel_file else {"problem_of_k.py": problem}), **(beside or {})}
        request = GateRequest(
            JobFiles("k.py", {"k.py": candidate, **files}), JobFiles("k.py", {"k.py": original, **files}),
            ProblemRef("module", path, "kernel"), "kernel", "numpy", "trn1",
            limits or Limits(seconds=20), options or CaseOptions(),
        )  # fmt: skip
        answer: tuple[Verdict, Receipt] = self.wait(check(self.host, request, tell))
        return answer

    def file(
        self,
        path: Path,
        candidate: str,
        target: str,
        options: CaseOptions | None = None,
        limits: Limits | None = None,
    ) -> tuple[Verdict, Receipt]:
        """Check ``candidate`` as a rewrite of the kernel file ``path`` with the problem that is found for it."""
        original = path.read_text(encoding="utf-8")
        file = examine(path, original)
        assert file.problem.ref is not None, file.findings
        kernel = file.launched[0]
        request = GateRequest(
            job_files(file, ship_imports=False, text=candidate),
            job_files(file, ship_imports=False),
            file.problem.ref, kernel.name, kernel.dialect, target, limits or Limits(seconds=60),
            options or CaseOptions(),
        )  # fmt: skip
        answer: tuple[Verdict, Receipt] = self.wait(check(self.host, request))
        return answer


def codes(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.reasons]
