"""Parameters and results of the steps that a check runs in sandbox processes, as plain data.

``busy`` are processor seconds of a process, of one case or by the names of probes; nothing is decided by them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accelopt_profiling.comparison.elements import OutputComparison
from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.request import Case, GateDialect
from accelopt_profiling.gate.verdict import Reason, Refusal
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.measurement import Launchability
from accelopt_profiling.problems.problem import Call, Tolerance
from accelopt_profiling.problems.ref import ProblemRef


@dataclass(frozen=True)
class StepParams:
    """``cases`` is the number of cases that may have been drawn. ``budget`` bounds what they take."""

    dialect: GateDialect
    target: str
    cases: int
    budget: GateBudget


@dataclass(frozen=True)
class DrawParams:
    """``source`` holds the original kernel file and the problem's files: never anything of a candidate but for
    ``limits``, the numbers that it compares sizes with, and ``numbers``, values of its text. ``seed`` is that of the
    check's first case, ``shapes`` bounds the further shapes that are tried: each case follows from these and itself,
    whatever ``cases`` are drawn with it. ``far`` asks for calls at sizes at which offsets pass 32 bits.
    """

    problem: ProblemRef
    source: JobFiles
    dialect: GateDialect
    target: str
    cases: list[Case]
    seed: int
    shapes: int
    budget: GateBudget
    limits: list[int] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    far: bool = False


@dataclass(frozen=True)
class DrawnCase:
    """A case as drawn.

    ``probe`` names the probe that it was drawn for. ``digests`` are of its saved files; ``left_out`` says why a case
    was not drawn, ``beyond_budget`` that it would have gone beyond what the check may take. ``shapes`` and ``dtypes``
    are those of the array inputs, ``shape`` the problem's own name for them. ``twice`` asks for two runs, further calls
    and runs without kernels; ``derived`` tells that the gate chose the shape itself, ``open`` that the problem leaves
    such sizes open, ``fixed`` that it states its own as numbers. ``smaller`` says which sizes were made smaller,
    ``reduced`` that the case stands for the main one where that cannot be interpreted. ``aliases`` are the places of
    the reference's outputs that share memory with an argument, each with that argument's.
    """

    index: int
    name: str
    distribution: str
    left_out: str = ""
    digests: list[str] = field(default_factory=list)
    call: dict[str, Any] = field(default_factory=dict)
    shapes: list[list[int]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    shape: dict[str, Any] | None = None
    twice: bool = False
    derived: bool = False
    open: bool = False
    fixed: bool = False
    smaller: str = ""
    reduced: bool = False
    notes: list[str] = field(default_factory=list)
    aliases: list[list[str]] = field(default_factory=list)
    probe: str = ""
    beyond_budget: bool = False
    busy: float = 0.0


@dataclass(frozen=True)
class CaseCall:
    """The call of a case, saved beside its arguments.

    ``written`` are the arguments that are outputs as well, counted from the end. ``altered`` tells that the gate
    changed the values that the problem drew, ``compared`` that the original kernel runs on them as well. ``sizes`` are
    those of the problem that were made smaller.
    """

    call: Call
    twice: bool = False
    derived: bool = False
    altered: bool = False
    compared: bool = False
    written: list[int] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    reduced: bool = False


@dataclass(frozen=True)
class PlanParams(StepParams):
    """``source`` is the original's, with the problem's files.

    ``seed`` is of the programs that are drawn where not all are interpreted; no other seed follows from it.
    """

    source: JobFiles
    seed: int


@dataclass(frozen=True)
class CasePlan:
    """``work`` is what interpreting the original whole takes in a case, in elements (see ``interpreter.work``);
    ``share`` the part of every launch's programs that are interpreted there.
    """

    index: int
    work: int
    share: float


@dataclass(frozen=True)
class PlanResult:
    """``cases`` holds the cases of which not all programs are interpreted.

    ``lanes`` names tensors of which lanes of the original's programs read what other lanes write, with no barrier
    between. ``left_out`` are cases of which the original itself leaves too little to compare, unless all of their
    programs run, which is too much, and those at shapes of the gate's own that take it too much work.
    """

    seed: int = 0
    cases: list[CasePlan] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class RunParams(StepParams):
    """``hidden`` are module names that the candidate may
    not import (the problem's), ``neutralised`` names of its own that must not help it (a reference in its file).
    ``case_seconds`` bounds each case; ``loop_order`` draws the order of the iterations of NKI's loops that
    promise to take any. ``unchanged`` are the job's files that the original has too, ``uses_files`` tells that it reads
    or writes files.
    """

    hidden: list[str] = field(default_factory=list)
    neutralised: list[str] = field(default_factory=list)
    case_seconds: float = 60.0
    loop_order: int = 0
    unchanged: list[str] = field(default_factory=list)
    uses_files: bool = False


@dataclass(frozen=True)
class RunCase:
    """``inputs_changed`` tells which arguments the candidate changed, ``aliases`` which outputs shared memory with an
    argument (as in ``DrawnCase``), ``reused`` that it gave the same memory out twice. ``launched`` names the kernels in
    the order of their launches, ``again`` those of a second call on the same data, ``later`` those of calls under
    other circumstances (``probes.circumstances``), by circumstance; None
    where launches cannot be observed. ``complete`` is False when only a sample of some launch's programs was run.
    ``raised`` is how a call failed at a shape, or on values, that the gate chose itself; ``silent`` tells that a device
    would not have raised, ``unjudged`` that it takes too much work there. ``work`` is what its launches took to
    interpret, in elements; None where that is not counted. ``initial`` tells that the model's parameters stayed as they
    were built, since they could not be drawn anew.
    """

    index: int
    seconds: float
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[list[str]] = field(default_factory=list)
    reused: bool = False
    launched: list[str] | None = None
    again: list[str] | None = None
    later: dict[str, list[str]] | None = None
    complete: bool = True
    raised: str = ""
    silent: bool = False
    unjudged: bool = False
    work: int | None = None
    initial: bool = False
    busy: float = 0.0


@dataclass(frozen=True)
class RunResult:
    """``patched`` names shared functions that were replaced, ``threads`` and ``processes`` count what still ran at the
    end, ``calls`` all calls. ``host_work`` is what host code computed around kernels that did nothing, in elements by
    kind; ``moved_only`` tells that no kernel left a value that it had not been given; ``late`` that outputs changed
    after they had been returned; ``attributes`` that outputs carried methods of their own; ``races`` names tensors of
    which programs of one launch read what others write, ``lanes`` those of which lanes of a program did. ``tried``
    tells of autotuned kernels which configurations ran, ``untried`` which did not, ``refused`` which fail an assertion
    of their own at compile time, so that no device chooses them. ``keeps`` names what it keeps of its calls' data and
    takes results from, ``changed`` what it changes of the process, ``returns_one`` tells that it returns one value,
    not a list or tuple, ``salted`` that it computes with hashes that differ from process to process.
    """

    cases: list[RunCase] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)
    threads: int = 0
    processes: int = 0
    calls: int = 0
    host_work: dict[str, int] = field(default_factory=dict)
    moved_only: bool = False
    late: bool = False
    attributes: list[str] = field(default_factory=list)
    races: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    tried: dict[str, list[str]] = field(default_factory=dict)
    untried: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)
    keeps: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    returns_one: bool | None = None
    busy: dict[str, float] = field(default_factory=dict)
    salted: bool = False


@dataclass(frozen=True)
class FarParams(StepParams):
    """``original`` is the original's source, with the problem's files."""

    original: JobFiles


@dataclass(frozen=True)
class LaunchResult:
    """Whether the target can launch what the candidate launches for the problem's own inputs; ``refusals`` say why
    not. ``wide`` says why it does not take what is launched at other sizes, by these, "" where it does."""

    launchable: Launchability
    refusals: list[Reason] = field(default_factory=list)
    wide: dict[str, str] = field(default_factory=dict)
    busy: float = 0.0


@dataclass(frozen=True)
class DeviceRunParams(StepParams):
    """``seconds`` bounds each program that is started."""

    seconds: float = 180.0


@dataclass(frozen=True)
class DeviceRunResult:
    """``ran`` are the cases whose outputs on the device were saved.

    ``failed`` is what the kernel did wrong there, ``unavailable`` why the device could not be used; "" where neither
    happened.
    """

    ran: list[int] = field(default_factory=list)
    failed: str = ""
    unavailable: str = ""


@dataclass(frozen=True)
class OriginalParams(StepParams):
    """``source`` is the original's, with the problem's files.

    ``same`` tells that the candidate is the original, ``measured`` that its own error is wanted in every case.
    ``loop_order`` is as in ``RunParams``.
    """

    source: JobFiles
    same: bool = False
    measured: bool = False
    loop_order: int = 0


@dataclass(frozen=True)
class OriginalResult:
    """``host_work`` is what the original's host code computes around its kernels, in elements by kind. ``changed`` and
    ``returns_one`` are as in ``RunResult``. ``repeatable`` tells whether two runs on the same inputs gave the same
    bits; None where nobody had to know. ``inputs_changed`` and ``aliases`` are as in ``RunCase``, of all cases in which
    it ran, ``wide`` as in ``LaunchResult``, ``salted`` as in ``RunResult``.
    """

    host_work: dict[str, int] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    returns_one: bool | None = None
    repeatable: bool | None = None
    inputs_changed: list[int] = field(default_factory=list)
    aliases: list[list[str]] = field(default_factory=list)
    wide: dict[str, str] = field(default_factory=dict)
    salted: bool = False


@dataclass(frozen=True)
class ReferenceParams(StepParams):
    """``source`` holds the original kernel file and the problem's files, as for ``draw``."""

    problem: ProblemRef
    source: JobFiles


@dataclass(frozen=True)
class ReferenceCase:
    """``digests`` are of the inputs and arguments as this process found them: the client compares them with
    those of the drawing. ``precision`` says in which precision the expected values were computed, and
    ``note`` why not float64. ``layout_fault`` is why the candidate's outputs could not be brought into the
    reference's layout. ``unusable`` is why the reference has no answer at a shape, or on values, that the gate chose
    itself.
    """

    index: int
    precision: str
    digests: list[str] = field(default_factory=list)
    note: str = ""
    layout_fault: str = ""
    unusable: str = ""
    busy: float = 0.0


@dataclass(frozen=True)
class ReferenceResult:
    """``work`` is what the reference computes, in elements by kind.

    ``changed`` and ``returns_one`` are as in ``RunResult``.
    """

    tolerance: Tolerance
    cases: list[ReferenceCase] = field(default_factory=list)
    work: dict[str, int] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    returns_one: bool | None = None


@dataclass(frozen=True)
class ReferenceRule:
    """What holds for all cases: the problem's ``tolerance``, and whether places among equal elements are ``settled``
    where the reference always takes the first.
    """

    tolerance: Tolerance
    settled: bool = False


@dataclass(frozen=True)
class JudgeParams:
    """``distributions`` has one entry per planned case.

    ``dialect`` decides how strict types are. ``alone`` tells that there is no original besides the candidate,
    ``replaces`` that what the candidate replaces is the reference itself. ``own_sizes`` are the cases at sizes that the
    gate chose itself.
    """

    dialect: GateDialect
    distributions: list[str]
    own_sizes: list[int] = field(default_factory=list)
    alone: bool = True
    replaces: bool = False


@dataclass(frozen=True)
class OutputVerdict:
    """``own_ratio`` is the worst error over what the gate's own rule allows, whatever the problem says."""

    where: str
    dtype: str
    shape: list[int]
    relative: float
    absolute: float
    comparison: OutputComparison
    own_ratio: float = 0.0


@dataclass(frozen=True)
class CaseVerdict:
    """``reasons`` are why the case fails; ``notes`` do not.

    ``skipped`` says why it decides nothing. ``digests`` are of the candidate's outputs by folder, as they were found
    here. ``idle`` is the share of the elements that matter which were right without any kernel; None where that was not
    tried. ``original_right`` tells whether the original kernel is right at a shape that the gate chose; None where
    there is no other original. ``given`` tells that all expected values occur among the inputs, so that moving data
    about is enough; None where nobody looked. ``compared`` elements ``of`` those of all outputs were compared.
    """

    index: int
    reasons: list[Refusal] = field(default_factory=list)
    notes: list[Reason] = field(default_factory=list)
    outputs: list[OutputVerdict] = field(default_factory=list)
    skipped: str = ""
    bitwise_repeatable: bool | None = None
    compared: int = 0
    of: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    idle: float | None = None
    original_right: bool | None = None
    given: bool | None = None
    busy: dict[str, float] = field(default_factory=dict)

    @property
    def checked(self) -> float:
        """The share (0..1) of the elements that were compared."""
        return self.compared / self.of if self.of else 1.0
