"""Reads the kernels and tricks that run on a device: ``benchmarks/device_corpus`` and the examples with a problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from accelopt_benchmarks.checkout import DEVICE_CORPUS, EXAMPLES
from accelopt_benchmarks.edit_cases import EditCase, read_edit_cases
from accelopt_profiling.examination import examine
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import JobFiles, Limits
from accelopt_profiling.kernels import Kernel
from accelopt_profiling.measurement import Dialect
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.profiler import ProfileRequest

#: The kernels of the corpus whose times are looked at closely, from a launch with little to do to a matrix product.
TIMED = ("tiny", "scale", "layer_norm", "product")
LIMITS = Limits(seconds=90.0, memory_bytes=48 << 30)


@dataclass(frozen=True)
class CorpusKernel:
    """The ``text`` of a kernel file at ``path``, and the file of its problem."""

    name: str
    path: Path
    problem: Path
    text: str

    def request(self, target: str) -> ProfileRequest:
        targets: dict[Dialect, str] = {"triton": target, "nki": "trn1"}
        return ProfileRequest(
            examine(self.path, self.text, problem=str(self.problem)), targets, limits=LIMITS
        )

    def profile_inputs(self) -> tuple[JobFiles, list[Kernel], ProblemRef]:
        """Return what a timing job needs of it. Raises ValueError: it has no kernel or no usable problem."""
        file = self.request("h100").file
        if file.problem.ref is None or not file.launched:
            faults = "; ".join(finding.message for finding in file.findings)
            raise ValueError(f"{self.path} cannot be timed: {faults}")
        return job_files(file, ship_imports=True), file.launched, file.problem.ref


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
    files = [(problem, problem.with_name(problem.name.replace("_problem.py", ".py"))) for problem in problems]
    return [CorpusKernel(file.stem, file, problem, file.read_text("utf-8")) for problem, file in files]


def tricks(corpus: Path = DEVICE_CORPUS) -> list[Trick]:
    """Return the tricks of the corpus by name."""
    base, *cases = read_edit_cases(corpus / "tricks.txt")
    return [_trick(corpus, base.lead, case) for case in cases]


def _trick(corpus: Path, base: str, case: EditCase) -> Trick:
    fields, problem = case.fields(), corpus / "tricks_problem.py"
    attack, honest = (
        CorpusKernel(f"{case.name} {part}", corpus / f"{part}.py", problem, case.version(part, base))
        for part in ("attack", "honest")
    )
    return Trick(case.name, fields["about"], attack, honest, [int(n) for n in fields["tricks"].split(", ")])


def named(subjects: list[CorpusKernel], name: str) -> CorpusKernel:
    """Return the subject of that name, which has to be there."""
    return next(subject for subject in subjects if subject.name == name)
