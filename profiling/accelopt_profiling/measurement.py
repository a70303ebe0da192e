"""The measurement of a kernel as plain data: cost, correctness, cost by line, findings; ``findings.json`` says what
the code of a finding means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from accelopt_profiling.quantity import Known, Quantity
from accelopt_profiling.ran import Ran
from accelopt_profiling.receipt import Receipt
from accelopt_profiling.timeline import Timeline

Dialect = Literal["triton", "nki"]
Severity = Literal["error", "warning", "information", "hint"]
CorrectnessStatus = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True)
class Latency:
    """Time of one run of the kernel in microseconds, with its interval. ``us`` is None when not measured."""

    us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    known: Known = Known.NOT_MEASURED

    def __post_init__(self) -> None:
        Quantity(self.us, self.known, unit="us", low=self.low_us, high=self.high_us)  # the same rules hold


@dataclass(frozen=True)
class Correctness:
    """The agreement of the kernel with its reference.

    ``compared`` elements ``of`` those of all outputs were compared. ``device`` tells of the outputs that a device
    computed alone; one that is wrong there makes the whole fail.
    """

    status: CorrectnessStatus = "not checked"
    detail: str = ""
    compared: int = 0
    of: int = 0
    device: CorrectnessStatus = "not checked"

    @property
    def extent(self) -> str:
        """How much was compared, "all 4,096 elements" or "512 of 4,096 elements"; "" where nothing was."""
        if not self.compared:
            return ""
        return f"{'all' if self.compared == self.of else f'{self.compared:,} of'} {self.of:,} elements"


@dataclass(frozen=True)
class Launchability:
    """Whether the target can compile and launch the kernel, in the configurations that the problem launches.

    ``known`` is "compiled" where the target's compiler said so, "executed" where an emulation of the target held its
    limits; it is "not measured" where nobody looked, and ``detail`` says why.
    """

    status: Literal["yes", "no", "not checked"] = "not checked"
    known: Known = Known.NOT_MEASURED
    detail: str = ""


@dataclass(frozen=True)
class Finding:
    """A message about one line, 1-based. ``code`` is stable and has an entry in ``findings.json``."""

    code: str
    line: int
    severity: Severity
    message: str


@dataclass(frozen=True)
class LineCost:
    """The cost of one source line (1-based): a text that tells all of it, and its quantities by name.

    ``share`` is the line's part (0..1) of the kernel's critical resource, None when unknown; where engines work beside
    each other, of the kernel's time on ``engine``, so that those of all lines may come to more than 1. ``cause`` says
    in a few words why it costs that: "strided", "waits on VectorE"; empty where the text does.
    """

    line: int
    text: str
    share: float | None = None
    quantities: dict[str, Quantity] = field(default_factory=dict)
    cause: str = ""
    engine: str = ""


@dataclass(frozen=True)
class LaunchTime:
    """The time of one of a kernel's launches, and as a part of a much larger one; ``case`` is its largest tensor."""

    case: str
    latency: Latency
    at_scale: Latency


@dataclass(frozen=True)
class KernelMeasurement:
    """The verdict on one kernel at one content, for one target, on one host: can it be launched, is it right, what does
    it cost. Whatever decides, ranks, shows or remembers a version reads this.

    A version with an error among its findings, with a wrong result, or whose main work did not run, has no cost:
    whoever states one, it is dropped here. ``fault`` is the error. ``launchable`` says whether the target can compile
    and launch it.
    ``percent_of_peak`` is 0..100 against the roofline of the target, known in the same way as the latency.
    ``bound`` says in a word or two what limits the kernel ("memory", "VectorE", "tensor core", ...); where that is
    latency, ``waiting`` says what waits for what.
    ``stage`` grows while results arrive: "traced", "executed", "compiled", "checked", "timed".
    ``content_hash`` is that of the kernel's source text (see ``kernels.Kernel``). ``timeline`` is
    present if it was requested (``ProfileRequest.timeline``) and a model schedules the kernel. ``case`` says what the
    cost is stated for ("x 4096x1024 fp16"), ``configuration`` what it was compiled for ("TILE=128, num_warps=4"),
    ``arguments`` what it was launched with, one text each: name, type, shape and strides, or value. Where times are to
    be compared and the kernel was launched several times, ``launches`` has each launch in the order of the run, None
    for one without an estimate; ``launch`` is the place there of the one that the cost is stated for.
    ``slow_configurations`` are an autotuner's that cannot compete with ``configuration``, in the same words. ``ran``
    says what of the kernel's text ran in the launches that the cost is of.
    """

    name: str
    line: int
    dialect: Dialect
    target: str
    host: str = "local"
    correctness: Correctness = Correctness()
    latency: Latency = Latency()
    percent_of_peak: float | None = None
    bound: str | None = None
    quantities: dict[str, Quantity] = field(default_factory=dict)
    lines: list[LineCost] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    receipt: str | None = None
    content_hash: str = ""
    stage: str = "traced"
    toolchain: dict[str, str] = field(default_factory=dict)
    timeline: Timeline | None = None
    waiting: str = ""
    case: str = ""
    configuration: str = ""
    arguments: tuple[str, ...] = ()
    launches: tuple[LaunchTime | None, ...] = ()
    launch: int | None = None
    slow_configurations: tuple[str, ...] = ()
    launchable: Launchability = Launchability()
    ran: Ran = field(default_factory=Ran)

    def __post_init__(self) -> None:
        if self.fault is not None or any(f.code in NO_TIME_BY for f in self.findings):
            for name, value in self._no_cost().items():
                object.__setattr__(self, name, value)

    @property
    def fault(self) -> Finding | None:
        """The error for which this version is refused. None where there is none."""
        error = worst(self.findings, errors=True)
        if error is None and self.correctness.status == "failed":
            detail = self.correctness.detail or "Its result disagrees with the reference."
            return Finding("wrong-result", self.line, "error", detail)
        return error

    def without_cost(self) -> KernelMeasurement:
        """Return the measurement of a version of which no time may be stated."""
        return replace(self, **self._no_cost())

    def _no_cost(self) -> dict[str, Any]:
        quantities = {name: value for name, value in self.quantities.items() if name not in _TIMES}
        return {**_NO_COST, "quantities": quantities}


#: Findings that are no error of the kernel, and for which its run has no time that could be stated.
NO_TIME_BY = ("main-work-missed",)
#: What a version without a cost says of it, and the quantities that are times of the whole kernel.
_NO_COST: dict[str, Any] = {
    "latency": Latency(), "percent_of_peak": None, "bound": None, "waiting": "", "launches": (), "timeline": None,
}  # fmt: skip
_TIMES = ("time_at_scale", "all_launches_time", "estimated_time", "percent_of_peak")


def worst(findings: Iterable[Finding], errors: bool = False) -> Finding | None:
    """Return the first error, or else (unless only ``errors`` count) the first finding; what says that arguments were
    inferred comes after what says why."""
    inferred = ("inferred-problem", "inferred-size")
    ranked = sorted(findings, key=lambda f: (f.severity != "error", f.code in inferred))
    return next((f for f in ranked if not errors or f.severity == "error"), None)


@dataclass(frozen=True)
class FileMeasurement:
    """The measurements of one file, and the findings that belong to no kernel (syntax, problem).

    ``receipts`` are the evidence of its measurements, once it is ``complete``.
    """

    file: str
    kernels: list[KernelMeasurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    complete: bool = False
    receipts: list[Receipt] = field(default_factory=list)

    def refusal(self, *kernels: str) -> Finding | None:
        """Return the reason why ``kernels`` (all where none is named) have no cost: an error of theirs, or where one of
        them has no time, of the file's run, or whatever else was found. None where all have one."""
        chosen = [k for k in self.kernels if not kernels or k.name in kernels]
        untimed = [k for k in chosen if k.latency.us is None]
        if chosen and not untimed:
            return None
        own = [f for k in untimed for f in ([k.fault] if k.fault else k.findings)]
        return worst(own, errors=True) or worst([*own, *self.findings]) or NO_TIME


#: The reason where nothing says one.
NO_TIME = Finding("not-measured", 0, "information", "Its time could not be found out.")


_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration)\b")


#: Findings that are the fault of a kernel's own text, and will be the same next time.
OWN_FAULTS = frozenset(
    {"syntax-error", "kernel-raised", "kernel-crashed", "kernel-exited", "does-not-compile", "capacity", "wrong-result",
     "out-of-bounds", "uninitialised-read", "never-launched"}
)  # fmt: skip
#: Findings that are the fault of the host, or of what runs there, and of no file.
HOST_FAULTS = frozenset({"disk-full", "no-access", "host-failed", "tool-failed", "host-unreachable"})
#: Findings about a limit, and the setting that raises it.
LIMITS = {"timeout": "limits.seconds", "out-of-memory": "limits.memory_mb"}


@cache
def finding_codes() -> dict[str, dict[str, str]]:
    """Load the codes: a title each, what they are about, and for those that end a run what it came to, in short."""
    loaded: dict[str, dict[str, str]] = json.loads(
        Path(__file__).with_name("findings.json").read_text("utf-8")
    )
    return loaded


def short_text(finding: Finding) -> str:
    """Return a few words for a title, ``raises AttributeError, line 21``. Empty for codes that have none."""
    words = finding_codes().get(finding.code, {}).get("short", "")
    raised = _EXCEPTION.search(finding.message) if "{error}" in words else None
    return words.format(error=raised[0] if raised else "an error", line=f", line {finding.line}")
