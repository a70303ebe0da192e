"""The interface of a loaded problem, in the child process that runs it, and the data that it exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal


@dataclass(frozen=True)
class Tolerance:
    """The stated distance of an output from the float64 reference; None where the rule for the dtype holds.

    ``relative`` bounds the relative L2 error of the whole output and of each row; ``absolute`` is added per
    element.
    """

    relative: float | None = None
    absolute: float | None = None


class ProblemError(Exception):
    """A problem that cannot be used: what happened, to what, and what to do next. ``line`` is 1-based in
    ``file``.
    """

    def __init__(self, code: str, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.file, self.line = code, message, file, line


#: "returns": the function returns its outputs; "destination": outputs are passed after the inputs, filled
#: with NaN;
#: "model": a KernelBench class, built from its own arguments and then called; "script": the file runs itself;
#: "launch": a kernel that is launched on a grid, and leaves its outputs in its arguments;
#: "recorded": calls that were recorded, one after another.
#: "operator": benchmarks of a tritonbench operator.
CallStyle = Literal["returns", "destination", "model", "script", "launch", "recorded", "operator"]


@dataclass(frozen=True)
class OutputSpec:
    """An output the caller allocates: its shape and the name of its torch dtype."""

    shape: list[int]
    dtype: str


@dataclass(frozen=True)
class Call:
    """A call of ``function`` of the kernel file, which may be a class's (``Softmax.apply``).

    With the style "model" the arguments are ``[constructor arguments, call arguments]``, each a list, and
    ``seed`` seeds the generators before the constructor runs, as it does for the reference model. The last
    arguments are passed by the names in ``keywords``. With ``backward`` the gradients of the tensors among them, for
    ones at each output, are computed as well and follow the outputs. ``grid`` holds Python expressions of a launch's
    arguments, one for each axis, in which ``cdiv`` and ``next_power_of_2`` are known. ``on_chip`` names arguments of an
    NKI kernel that are tiles in SBUF: they are loaded before it begins.
    With the style "recorded" the arguments are the storages of the calls ``recorded``, each with its ``entry``, encoded
    ``arguments``, ``keywords`` and ``grid`` (see ``recording.recorded_call``). With the style "model" ``parameters``
    are the shapes, by name, of those that are drawn anew once it is built, from ``parameter_seed`` (see
    ``loading.parameters``), and ``buffers`` counts the floating buffers of the reference's model.
    ``own_check`` is the check of the file's own at which its statements end, also with the original kernel (see
    ``inference.failure_site``).
    """

    function: str
    style: CallStyle = "returns"
    outputs: list[OutputSpec] = field(default_factory=list)
    seed: int = 0
    keywords: list[str] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    on_chip: list[str] = field(default_factory=list)
    recorded: list[dict[str, Any]] = field(default_factory=list)
    backward: bool = False
    parameters: dict[str, list[int]] = field(default_factory=dict)
    parameter_seed: int = 0
    buffers: int = 0
    own_check: str = ""
    methods: list[str] = field(default_factory=list)
    member: str = ""

    @property
    def writes(self) -> bool:
        """True where the function may leave outputs in its arguments."""
        return self.style in ("returns", "launch", "recorded")


class Problem:
    """Inputs, reference and call of one problem, with all that is asked of any. Values are NumPy arrays, torch tensors,
    numbers, or lists of them.

    ``run`` is ``call`` and ``loading.call.perform`` in one. The gate uses the two halves: what makes the
    call comes from the original file, what answers it from the candidate, in another process.
    """

    #: The stated tolerance; the rule for the dtype holds for what is None in it.
    tolerance = Tolerance()
    #: Further cases: keyword arguments for ``inputs``. Empty when the problem has one shape only.
    shapes: Sequence[Mapping[str, Any]] = ()
    #: How often each case occurred: the main one, then each of ``shapes``; empty where nobody tells.
    counts: Sequence[int] = ()
    #: How the main case was chosen, in words; "" where it was not.
    headline: str = ""
    #: The sizes that ``inputs`` takes as arguments, or else the constants of ``module`` that the shapes come from.
    axes: Mapping[str, int] = {}
    constants: Mapping[str, int] = {}
    module: ModuleType | None = None
    #: The reference is the problem's own, so that it can run in float64; else the original kernel is.
    own_reference: bool = True
    #: ``finish`` does something.
    rearranges: bool = False
    #: The reference returned one value, and no list of them; None where that is not told.
    returns_one: bool | None = None
    #: Builds the reference's model, whose parameters are those of ``redrawn`` where that is given.
    model: Callable[[], Any] | None = None
    redrawn: Call | None = None

    def inputs(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]:
        """Draw the inputs of the main case, or of ``shape``, after seeding every generator with ``seed``."""
        raise NotImplementedError

    def reference(self, inputs: list[Any]) -> list[Any] | None:
        """Return the right outputs for ``inputs``, as a list; None when the problem has no reference."""
        raise NotImplementedError

    def run(self, module: ModuleType, inputs: list[Any]) -> list[Any]:
        """Call the entry point of the kernel file ``module`` with ``inputs`` and return its raw outputs as a
        list.
        """
        raise NotImplementedError

    def call(self, inputs: list[Any]) -> tuple[Call, list[Any]]:
        """Return the call of the kernel file that ``inputs`` ask for, and its arguments."""
        raise NotImplementedError

    def finish(self, outputs: list[Any], expected: list[Any]) -> list[Any]:
        """Turn raw outputs of ``run`` into the layout of the reference's outputs ``expected``; most leave
        them.
        """
        return outputs

    def with_parameters(self, call: Call, seed: int) -> Call:
        """Return the call with parameters that are drawn anew from ``seed``, where the reference's model has any."""
        return call

    def parameters(self) -> list[Any]:
        """Return what the reference's model holds besides its inputs: its parameters and buffers."""
        return []
