"""A problem that was inferred, as data, and the kernel file that is profiled with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from accelopt_profiling.kernels import Kernel, KernelSource
from accelopt_profiling.measurement import Finding
from accelopt_profiling.problems.catalogue import layout_of
from accelopt_profiling.problems.ref import ProblemLookup, ProblemRef


@dataclass(frozen=True)
class InferParams:
    """``kernels`` are those that are to be launched.

    ``cpu_seconds`` bounds all tries together, which a file of many long tries may reach; elsewhere their number is the
    bound.
    """

    kernels: list[Kernel]
    target: str
    cpu_seconds: float = 40.0


@dataclass(frozen=True)
class InferredProblem:
    """A written problem: its ``text``, the ``entry`` it calls, the kernels that this launches, and how it went.

    ``complete`` tells that the kernels ran without an error; else ``remaining`` is what still goes wrong. ``changes``
    are the repairs that were made, in order. ``note`` is what else a person should know of it, as a sentence.
    ``fault_line`` is the line of the kernel file whose fault ``remaining`` is, whatever the arguments; 0 where they may
    be at fault.
    """

    text: str
    entry: str
    launched: list[str] = field(default_factory=list)
    complete: bool = False
    remaining: str = ""
    changes: list[str] = field(default_factory=list)
    note: str = ""
    fault_line: int = 0

    @property
    def outcome(self) -> str:
        """What the problem launches, and what to do about it, as a sentence for the person."""
        launched, remaining = ", ".join(self.launched), self.remaining.rstrip(".")
        note = f" {self.note}" if self.note else ""
        if self.complete:
            unchecked = "results are not checked without a `reference`"
            return f"It runs {self.entry}, which launches {launched}; {unchecked}.{note}"
        if self.fault_line:
            return f"Line {self.fault_line} of the file fails whatever its inputs are: {remaining}.{note}"
        if self.launched:
            return (
                f"{self.entry} launches {launched} with it. Still wrong: {remaining}.{note} Edit its inputs."
            )
        why = f" ({remaining})" if remaining else ""
        return f"{self.entry} was not run with it{why}. Edit its inputs."


def inference_key(file: KernelSource) -> str:
    """Return a key of what an inferred problem rests on: the host code, and the kernels' names and
    arguments."""
    kernels = [(k.name, k.arguments) for k in file.kernels]
    return f"{file.path}:{file.rest_hash}:{kernels}"


def lacks_problem(file: KernelSource, kernels: Sequence[Kernel]) -> bool:
    """Return whether the file has no problem, none that cannot be used either, and ``kernels`` of one dialect: then one
    may be inferred."""
    none = file.problem.ref is None and [f.code for f in file.problem.findings] == ["no-problem"]
    return none and len({k.dialect for k in kernels}) == 1


def to_be_inferred(file: KernelSource) -> KernelSource:
    """Return the file with the problem that its profile is to infer, in place of none."""
    path = file.path.resolve().with_name(f"{file.path.stem}_problem.py").relative_to(file.root).as_posix()
    options = {"unreferenced": True, "inferred": True}
    ref = ProblemRef(
        "inferred", path, entry=None, origin="inferred", content_hash=file.rest_hash, options=options
    )
    return replace(file, problem=ProblemLookup(ref, root=file.root))


def with_problem(file: KernelSource, problem: InferredProblem) -> KernelSource:
    """Return the file with an inferred problem in place of none, as if its text stood in
    ``<stem>_problem.py``."""
    path = file.path.resolve().with_name(f"{file.path.stem}_problem.py")
    relative = path.relative_to(file.root).as_posix()
    digest = hashlib.sha256(problem.text.encode()).hexdigest()[:16]
    ref = ProblemRef(
        "module",
        relative,
        entry=None,
        origin="inferred",
        content_hash=digest,
        options={"unreferenced": True, "inferred": True},
    )
    lookup = ProblemLookup(
        ref,
        {relative: problem.text},
        findings=[inferred_finding(file, problem)],
        root=file.root,
        imports={relative: [("torch" if "import torch" in problem.text else "numpy", 0)]},
    )
    return replace(file, problem=lookup)


def inferred_finding(file: KernelSource, problem: InferredProblem) -> Finding:
    """Return the finding that says what the numbers of such a file rest on."""
    line = file.launched[0].line if file.launched else 1
    why = "No problem was found" if file.problem.ref is None or not layout_of(file.problem.ref).runs_itself else (
        "The file's own run launches no kernel here"
    )  # fmt: skip
    message = f"{why}: arguments of {problem.entry} were inferred, no result is checked."
    if problem.note:
        message += f" {problem.note}"
    if problem.fault_line:
        message += f" Line {problem.fault_line} fails whatever they are: {problem.remaining.rstrip('.')}."
    elif problem.remaining:
        message += f" What went wrong with them: {problem.remaining.rstrip('.')}."
    return Finding("inferred-problem", line, "information", message)


def not_inferred_finding(kernel: Kernel, why: str) -> Finding:
    """Return the finding of a file without a problem for which none could be inferred."""
    message = (
        f"No problem was found, and inputs for {kernel.name} could not be inferred ({why[:300].rstrip('.')}). "
        "Add get_inputs() here or in a problem file beside it; `accelopt problem` writes a first version."
    )
    return Finding("no-problem", kernel.line, "information", message)
