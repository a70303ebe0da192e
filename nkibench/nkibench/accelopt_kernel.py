"""AccelOpt's ``NKIKernel`` as a drop-in: ``from nkibench.accelopt_kernel import NKIKernel``.

The same constructor, attributes and result fields as ``accelopt.kernel_wrapper.NKIKernel``. Differences: correctness
is decided by our gate, and without a Trainium device the latency is the time model's, which ``metadata["known"]``
says ("estimated"; ``min_ms`` and ``max_ms`` are then the ends of its interval).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.hosts.host import Host
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.source_text import UnreadableFileError, read_text
from nkibench import measuring
from nkibench.case import BenchmarkCase
from nkibench.task import Task, tasks


@dataclass
class KernelProperties:
    """What one ``profile`` found.

    ``metadata`` holds the latency (ms) and the asked-for fields, or the error.
    """

    compiled: bool = False
    correct: bool = False
    runnable: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class NKIKernel:
    """A kernel file with its NumPy reference in NKIBench's layout.

    ``rel_tol`` is the relative L2 error allowed (where our task of the same name is stricter, that holds);
    ``perf_tol`` the spread of device timings that asks for another round; ``target`` what the latency is for.
    """

    def __init__(self, program_path: str, base_numpy_path: str) -> None:
        self.program_path = program_path
        self.base_numpy_path = base_numpy_path
        self.res = KernelProperties()
        self.rel_tol = 2e-5
        self.perf_tol = 0.01
        self.target = "trn1"

    def profile(self, save_fields: Sequence[str] = ()) -> KernelProperties:
        """Check the kernel and find out its latency and the profile fields named in ``save_fields``.

        What is wrong with the kernel is in the result's ``metadata`` and raised by nothing.

        Raises:
            HostUnreachableError: the worker could not be started.
        """
        self.res = KernelProperties()
        with ThreadPoolExecutor(1) as aside:  # a caller may have an event loop of its own
            aside.submit(asyncio.run, self._profile(list(save_fields))).result()
        return self.res

    async def _profile(self, save_fields: list[str]) -> None:
        host = LocalHost()
        try:
            await self._examine(host, save_fields)
        finally:
            await host.close()

    async def _examine(self, host: Host, save_fields: list[str]) -> None:
        metadata = self.res.metadata
        at = self.base_numpy_path
        try:
            read_text(Path(at))
            at = self.program_path
            subject = _subject(Path(self.program_path), Path(self.base_numpy_path))
            cost = await measuring.cost(host, subject, self.target)
            if cost.measurement is None:
                metadata["compilation_error"] = cost.why or "nothing is known of its time"
                metadata["compilation_traceback"] = "\n".join(
                    f"{f.code} at line {f.line}: {f.message}" for f in cost.findings
                )
                return
            self.res.compiled = self.res.runnable = True
            verdict, _ = await measuring.judge(host, subject, self.target, tolerance=self._tolerance(subject))
        except (UnreadableFileError, measuring.NoKernelError) as error:
            metadata["compilation_error"] = f"{at}: {error}"
            metadata["compilation_traceback"] = ""
            return
        self._decide(verdict)
        if self.res.correct:
            metadata.update(_latency(cost.measurement), **profile_fields(cost, save_fields))

    def _tolerance(self, subject: BenchmarkCase) -> float:
        task = subject.task
        if task is None or task.gate_tolerance == task.relative_tolerance:
            return self.rel_tol
        return min(self.rel_tol, task.gate_tolerance)

    def _decide(self, verdict: Verdict) -> None:
        self.res.correct = verdict.accepted
        if not verdict.accepted:
            self.res.metadata["correctness_error"] = [f"{r.code}: {r.message}" for r in verdict.reasons]


def _latency(measured: KernelMeasurement) -> dict[str, Any]:
    latency = measured.latency
    assert latency.us is not None
    low, high = latency.low_us or latency.us, latency.high_us or latency.us
    return {
        "latency": latency.us / 1000,
        "min_ms": low / 1000,
        "max_ms": high / 1000,
        "rel_diffs": (high - low) / low if low else 0.0,
        "known": str(latency.known),
    }


def profile_fields(cost: measuring.Cost, names: Sequence[str]) -> dict[str, Any]:
    """Return those of AccelOpt's profile fields in ``names`` that are known: all that a device's profiler gave, or
    what the emulator counted and the time model estimates."""
    measured = cost.measurement
    if cost.profile or measured is None:
        return {name: cost.profile[name] for name in names if name in cost.profile}
    table, quantities = _fields(), measured.quantities
    fields: dict[str, Any] = {}
    for name in names:
        source = quantities.get(table["quantities"].get(name, ""))
        busy = quantities.get(table["active_fractions"].get(name, ""))
        if source is not None and source.value is not None:
            fields[name] = source.value
        elif busy is not None and busy.value is not None and measured.latency.us:
            fields[name] = busy.value / measured.latency.us
        elif name.startswith("spill_"):
            fields[name] = 0  # the model would have said so
    return fields


@cache
def _fields() -> dict[str, dict[str, str]]:
    text = (Path(__file__).parent / "profile_fields.json").read_text(encoding="utf-8")
    data: dict[str, dict[str, str]] = json.loads(text)
    return data


def _subject(kernel: Path, reference: Path) -> BenchmarkCase:
    kernel, reference = kernel.resolve(), reference.resolve()
    root = Path(os.path.commonpath([kernel.parent, reference.parent]))
    task = _named(reference.stem)
    return BenchmarkCase(
        task.name if task else reference.stem,
        "0",
        values={},
        kernel=kernel,
        reference=reference,
        root=root,
        task=task,
    )


def _named(stem: str) -> Task | None:
    """Our task of a reference's file name: ``adamw_M10944_N2048_numpy_1`` is of adamw."""
    return next((t for name, t in tasks().items() if re.match(rf"{name}_[A-Z]", stem)), None)
