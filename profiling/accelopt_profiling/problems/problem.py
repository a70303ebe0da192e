"""The interface of a loaded problem, in the child process that runs it, and the data that it exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal, Protocol

from accelopt_profiling.problems.loading.parameters import floating_buffers, parameter_shapes, redraw


@dataclass(frozen=True)
class Tolerance:
    """The stated distance of an output from the float64 reference.

    None where the rule for the dtype holds.

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

    With the style "model" the arguments are ``[constructor arguments, call arguments]``, each a list, and ``seed``
    seeds the generators before the constructor runs, as it does for the reference model. The last arguments are
    passed by the names in ``keywords``. With ``backward`` the gradients of the tensors among them are computed as
    well and follow the outputs (see ``loading.call.with_gradients``), with ``rows_apart`` from gradients that arrive in
    rows of a wider tensor. ``grid`` holds Python expressions of a
    launch's arguments, one for each axis, in which ``cdiv`` and ``next_power_of_2`` are known. ``on_chip`` names
    arguments of an NKI kernel that are tiles in SBUF: they are loaded before it begins.
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
    rows_apart: bool = False
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


class InputDrawing(Protocol):
    """Draws the inputs of the main case, or of ``shape``, after seeding every generator with ``seed``."""

    def __call__(self, seed: int, shape: Mapping[str, Any] | None = None) -> list[Any]: ...


def no_reference(inputs: list[Any]) -> list[Any] | None:
    """Return None: nothing says what the right outputs are."""
    return None


def as_they_are(outputs: list[Any], expected: list[Any]) -> list[Any]:
    """Return raw outputs, which have the layout of the reference's."""
    return outputs


@dataclass(eq=False)
class Problem:
    """Inputs, call and right answer for a kernel, in whatever layout they are written. Values are NumPy arrays, torch
    tensors, numbers, or lists of them.

    ``call`` returns the call of the kernel file that inputs ask for, and its arguments; ``loading.call.perform`` makes
    it, in the gate in the candidate's own process, which has no problem. ``reference`` returns the right outputs, as a
    list; None where there are none. It is the problem's own if ``own_reference``, else the original kernel, which has
    no float64. ``finish`` turns raw outputs into the layout of the reference's.

    ``shapes`` are further cases, keyword arguments for ``inputs``; ``counts`` says how often each case occurred, the
    main one first; ``headline`` how the main case was chosen, in words; all are empty where nobody tells. The shapes
    come from ``axes``, integer arguments of ``inputs``, or else from ``constants`` of ``module``; ``choices`` are other
    arguments of ``inputs`` that are whole numbers or flags. ``returns_one`` says,
    once it ran, that the reference returned one value and no list. ``model`` builds the reference's model, whose
    parameters are those of ``redrawn``. ``built`` is what the calls of this process share. A call that returns
    nothing is no fault of the file if ``may_be_empty``. ``file`` holds the problem.
    """

    inputs: InputDrawing
    call: Callable[[list[Any]], tuple[Call, list[Any]]]
    reference: Callable[[list[Any]], list[Any] | None] = no_reference
    finish: Callable[[list[Any], list[Any]], list[Any]] = as_they_are
    own_reference: bool = True
    tolerance: Tolerance = Tolerance()
    shapes: Sequence[Mapping[str, Any]] = ()
    counts: Sequence[int] = ()
    headline: str = ""
    axes: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    module: ModuleType | None = None
    returns_one: bool | None = None
    model: Callable[[], Any] | None = None
    redrawn: Call | None = None
    built: dict[str, Any] | None = None
    may_be_empty: bool = False
    file: str | None = None

    @property
    def rearranges(self) -> bool:
        """``finish`` does something."""
        return self.finish is not as_they_are

    def with_parameters(self, call: Call, seed: int) -> Call:
        """Return the call with parameters that are drawn anew from ``seed``, where the reference's model has any."""
        if self.model is None:
            return call
        model = self.model()
        shapes = parameter_shapes(model)
        return replace(call, parameters=shapes, parameter_seed=seed, buffers=floating_buffers(model))

    def redrawn_model(self) -> Any:
        """Return the reference's model with the parameters of ``redrawn``."""
        assert self.model is not None
        model = self.model()
        if self.redrawn is not None:
            redraw(model, self.redrawn.parameters, self.redrawn.buffers, self.redrawn.parameter_seed)
        return model

    def parameters(self) -> list[Any]:
        """Return what the reference's model holds besides its inputs: its parameters and buffers."""
        model = self.redrawn_model()
        return [tensor.detach() for tensor in (*model.parameters(), *model.buffers())]
