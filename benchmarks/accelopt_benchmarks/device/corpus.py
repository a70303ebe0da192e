"""Reads the kernels and tricks that run on a device: ``benchmarks/device_corpus`` and the examples with a problem."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from accelopt_benchmarks.checkout import DEVICE_CORPUS, EXAMPLES
from accelopt_profiling.examination import examine
from accelopt_profiling.jobs import Limits, Source
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.profiler import ProfileRequest

#: The kernels of the corpus whose times are looked at closely, from a launch with little to do to a matrix product.
TIMED = ("tiny", "scale", "layer_norm", "product")
LIMITS = Limits(seconds=90.0, memory_bytes=48 << 30)


@dataclass(frozen=True)
class CorpusKernel:
    """One kernel file; ``problem`` is the file beside it or another."""

    name: str
    path: Path
    problem: Path

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def request(self, target: str, text: str | None = None) -> ProfileRequest:
        targets: dict[Dialect, str] = {"triton": target, "nki": "trn1"}
        told = self.text() if text is None else text
        return ProfileRequest(examine(self.path, told, problem=str(self.problem)), targets, limits=LIMITS)

    def asked(self) -> tuple[Source, list[Kernel], ProblemRef]:
        """Return what a timing job needs of it. Raises ValueError: it has no kernel or no usable problem."""
        file = self.request("h100").file
        if file.problem.ref is None or not file.kernels:
            said = "; ".join(finding.message for finding in file.findings)
            raise ValueError(f"{self.path} cannot be timed: {said}")
        return file.source(ship_imports=True), file.kernels, file.problem.ref


@dataclass(frozen=True)
class Trick:
    """A way to look faster than one is on a device, and an honest twin that does something alike."""

    name: str
    about: str
    attack: CorpusKernel
    honest: CorpusKernel
    tricks: list[int] = field(default_factory=list)


def kernels(corpus: Path = DEVICE_CORPUS, examples: Path = EXAMPLES) -> list[CorpusKernel]:
    """Return the corpus's kernels, then the Triton examples that have a problem beside them."""
    problems = [
        *sorted((corpus / "kernels").glob("*_problem.py")),
        *sorted(examples.glob("triton_*_problem.py")),
    ]
    return [
        CorpusKernel(p.stem.removesuffix("_problem"), p.with_name(p.name.replace("_problem.py", ".py")), p)
        for p in problems
    ]  # fmt: skip


def tricks(corpus: Path = DEVICE_CORPUS) -> list[Trick]:
    """Return the tricks of the corpus by name."""
    found = []
    for file in sorted((corpus / "tricks").glob("*/case.json")):
        case, problem = json.loads(file.read_text(encoding="utf-8")), file.parents[1] / "problem.py"
        attack, honest = (
            CorpusKernel(f"{file.parent.name} {kind}", file.with_name(f"{kind}.py"), problem)
            for kind in ("attack", "honest")
        )
        found.append(Trick(file.parent.name, str(case["about"]), attack, honest, list(case["tricks"])))
    return found


def named(subjects: list[CorpusKernel], name: str) -> CorpusKernel:
    """Return the subject of that name, which has to be there."""
    return next(subject for subject in subjects if subject.name == name)
