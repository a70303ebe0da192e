"""The step ``gate.draw``: draw the inputs of each case, in a process that runs the problem's code only and ends with
the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np

from accelopt_profiling.comparison.inplace_outputs import Effects, effects_of
from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.comparison.saved_values import NotCarriedError, digest, save_values
from accelopt_profiling.gate.inputs.cases import derive_shapes, shapes_beyond
from accelopt_profiling.gate.inputs.distributions import altered, change, varied
from accelopt_profiling.gate.inputs.long_sums import half_range, long_sums
from accelopt_profiling.gate.inputs.lopsided import offset, skewed, spikes
from accelopt_profiling.gate.inputs.range_ends import end_integers, far_elements
from accelopt_profiling.gate.observe.emulation import emulation, hollow_draws
from accelopt_profiling.gate.observe.hostwork import HostWork, count_work
from accelopt_profiling.gate.request import (
    ALTERED,
    FAR_ELEMENTS,
    HALF_RANGE,
    HELD_BY_ORIGINAL,
    INTEGER_ENDS,
    LONG_SUMS,
    OFFSET,
    Case,
)
from accelopt_profiling.gate.step_schemas import CaseCall, DrawnCase, DrawParams
from accelopt_profiling.gate.steps.case_files import (
    case_folder,
    forget_requests,
    problem_errors,
    problem_files,
)
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.loading.call import copied
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.sizes import ProblemSizes
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.worker.step_context import StepContext, StepFailedError

#: Kinds of the reference's work that give the places of elements.
_INDICES = frozenset(["index of extreme", "extreme"])
#: Inputs up to this size are given to the reference once more, to see what kinds of work it does and what it looks at.
_COUNTED_BYTES = 4 << 20


def draw(context: StepContext, params: DrawParams) -> list[DrawnCase]:
    """Draw every case and save it: ``inputs`` for the reference, ``arguments`` for the kernel. No seed is saved."""
    forget_requests(context)
    with (
        problem_files(context, params.source) as own,
        emulation(params.dialect, params.target),
        problem_errors(own, "drawing inputs: "),
    ):
        drawing = _Drawing(context, load_problem(own, params.problem, None), params)
        return [drawn for index in range(len(params.cases)) if (drawn := drawing.case(index)) is not None]


class _Drawing:
    """Draws cases, each as it would be drawn alone: what they share follows from the check's first seed."""

    def __init__(self, context: StepContext, problem: Problem, params: DrawParams) -> None:
        self.context, self.problem, self.params = context, problem, params
        self.shapes = list(problem.shapes)
        self.sizes: dict[int | None, int] = {}  # bytes of the inputs, by shape index
        self.result_sizes: dict[int | None, int] = {}  # bytes of what the reference returns
        self.used = self.results = 0
        self.doubled = False
        self.main = ProblemSizes(problem)
        if params.dialect == "triton":
            fitting(self.main, params.target, params.input_bytes, params.large_bytes)
        self.own_reference = problem.own_reference  # not the original kernel
        with self.main.applied():
            self.first = self._inputs(params.seed, None)
            self.size = byte_count(self.first)
            self.effects: dict[int | None, Effects] = {}  # by shape index
            self._effects_at(None)

    @cached_property
    def derived(self) -> list[dict[str, int]]:
        """The shapes that are derived from the problem's sizes; of numbers, only those that an axis of the main case's
        inputs has are sizes.
        """
        sizes = ProblemSizes(self.problem)
        axes = {n for _, array in arrays_of(self.first) for n in array.shape}
        full = {name: size for name, size in sizes.full.items() if not sizes.fixed or size in axes}
        return derive_shapes(full, listed=bool(self.shapes))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of work that the reference does, seen at the first shape that is small enough."""
        work = HostWork()
        for at in self._shapes_tried():
            inputs = self._base(at)
            if byte_count(inputs) <= _COUNTED_BYTES or (at is None and self.problem.call(inputs)[0].writes):
                count_work(self.problem, [copied(v) for v in inputs], work)
                break
        return frozenset(work.elements)

    @cached_property
    def home(self) -> int | None:
        """The shape for the cases whose point is their values: the main one unless a further one is small enough."""
        if self.size <= self.params.large_bytes:
            return None
        sizes = {at: byte_count(self._base(at)) for at in self._shapes_tried()}
        small = {at: size for at, size in sizes.items() if size <= self.params.large_bytes}
        return max(small, key=lambda at: small[at], default=None)

    def _shapes_tried(self) -> list[int | None]:
        return [None, *range(min(self.params.shapes, len(self.shapes)))]

    def _base(self, at: int | None) -> list[Any]:
        return self.first if at is None else self._inputs(self.params.seed, at)

    def case(self, index: int) -> DrawnCase | None:
        """Draw and save one case; None when the problem has no such shape, or no sums to lose anything in."""
        case = self.params.cases[index]
        if case.reduced:
            return self._reduced(index, case)
        if case.beyond is not None:
            return self._beyond(index, case, case.beyond)
        with self.main.applied():
            return self._case(index, case)

    def _reduced(self, index: int, case: Case) -> DrawnCase | None:
        """Return a case at smaller sizes of a main shape that is large: the problem need not be able to draw it."""
        large = self.params.large_bytes
        if self.params.dialect != "triton" or self.main.smaller or self.size <= large:
            return None
        sizes = ProblemSizes(self.problem)
        fitting(sizes, self.params.target, large, large)
        if not sizes.smaller:
            return None
        drawn = DrawnCase(
            index, case.name, case.distribution, shape=dict(sizes.smaller), derived=True, smaller=str(sizes),
            reduced=True,
        )  # fmt: skip
        with suppress(Exception), sizes.applied():  # the problem's own code, asked for what it never promised
            inputs = sizes.inputs(case.seed)
            return self._keep(drawn, inputs, sizes.smaller)
        return None

    def _beyond(self, index: int, case: Case, number: int) -> DrawnCase | None:
        """Return a case at sizes beyond a number that the candidate compares sizes with: it says itself that it takes
        them. The problem need not be able to draw it.
        """
        if self.params.dialect != "triton" or self.main.smaller:
            return None
        sizes, most = ProblemSizes(self.problem), self.params.large_bytes
        shapes = [
            s for s, times in shapes_beyond(sizes.full, self.params.limits) if times * self.size <= most
        ]
        if number >= len(shapes):
            return None
        shape = shapes[number]
        with suppress(Exception), sizes.at(shape).applied():
            with hollow_draws(self.params.target):
                if byte_count(sizes.inputs(0)) > most:
                    return None
            inputs = sizes.inputs(case.seed)
            drawn = DrawnCase(
                index, case.name, case.distribution, shape=dict(shape), derived=True, open=True,
                fixed=sizes.fixed,
            )  # fmt: skip
            return self._keep(drawn, inputs, shape)
        return None

    def _inputs(self, seed: int, at: int | None) -> list[Any]:
        if at is None and self.main.smaller:
            return self.main.inputs(seed)
        return self.problem.inputs(seed, self._shape(at))

    def _case(self, index: int, case: Case) -> DrawnCase | None:
        if case.derived is not None:
            return self._derived(index, case) if case.derived < len(self.derived) else None
        at = case.shape_index
        if at is not None and at >= len(self.shapes):
            return None
        if case.movable:
            at = self.home
        smaller = "" if at is not None else str(self.main)
        drawn = DrawnCase(index, case.name, case.distribution, shape=self._shape(at), smaller=smaller)
        if index and self.used + self.sizes.get(at, 0) > self.params.input_bytes:
            return replace(drawn, left_out="the inputs of earlier cases are large")
        if index and self.results + self.result_sizes.get(at, 0) > self.params.result_bytes:
            return replace(drawn, left_out="the results of earlier cases are large")
        inputs, changed = self._inputs(case.seed if case.alters is None else case.alters, at), True
        notes: list[str] = []
        self.sizes.setdefault(at, byte_count(inputs))
        if at not in self.result_sizes:
            self.result_sizes[at] = result_bytes(self.problem, inputs)
        if case.again or (case.movable and case.distribution not in _CHANGES):
            inputs, notes = self._fresh(inputs, case, at)
        if case.alters is not None:
            inputs, changed = change("integers", inputs, _mixed(case.alters))
        if changed and case.distribution in _CHANGES:
            inputs, changed = _CHANGES[case.distribution](self, inputs, case.seed)
        if not changed and case.distribution in _FITTING:
            return None
        if not changed:
            return replace(drawn, left_out="it does not change these inputs")
        self.results += self.result_sizes.get(at, 0)
        twice = not self.doubled and (case.movable or len(self.params.cases) == 1)
        self.doubled = self.doubled or twice
        smaller_sizes = {} if at is not None else self.main.smaller
        return self._keep(
            replace(drawn, twice=twice, notes=notes), inputs, smaller_sizes, self._effects_at(at)
        )

    def _skewed(self, inputs: list[Any], seed: int) -> tuple[list[Any], bool]:
        moved, changed = skewed(inputs, seed)
        if self.own_reference and byte_count(moved) <= _COUNTED_BYTES:
            given, moved = moved, varied(self.problem, moved)
            changed = changed or given is not moved
        return moved, changed

    def _finite(self, inputs: list[Any]) -> bool:
        """Check whether the reference takes ``inputs``, and gives numbers."""
        try:
            outputs = self.problem.reference([copied(v) for v in inputs])
        except Exception:  # the problem's own code, asked for what it never promised
            return False
        return all(bool(np.isfinite(_plain(a)).all()) for _, a in arrays_of(outputs or []))

    def _derived(self, index: int, case: Case) -> DrawnCase:
        """Return a case at a shape that the problem did not list: it need not be able to draw it."""
        sizes, shape = ProblemSizes(self.problem), dict(self.derived[case.derived or 0])
        partial = self.params.dialect != "triton" and any(n % sizes.full[name] for name, n in shape.items())
        drawn = DrawnCase(
            index, case.name, case.distribution, shape=shape, derived=True, open=not (self.shapes or partial),
            fixed=sizes.fixed,
        )  # fmt: skip
        if 4 * self.size > self.params.large_bytes or self.main.smaller:
            return replace(drawn, left_out="the inputs are large enough at the main shape")
        try:
            with sizes.at(shape).applied():
                inputs = sizes.inputs(case.seed)
                if byte_count(inputs) > self.params.large_bytes:
                    return replace(drawn, left_out="its inputs are large")
                return self._keep(drawn, inputs, shape)
        except Exception as error:  # the problem's own code, asked for what it never promised
            return replace(drawn, left_out=f"the problem does not draw it ({type(error).__name__})")

    def _keep(
        self, drawn: DrawnCase, inputs: list[Any], sizes: Mapping[str, int], effects: Effects | None = None
    ) -> DrawnCase:
        """Save a case. ``effects`` are those of its call where they are known."""
        call, arguments = self.problem.call(inputs)
        if call.style == "recorded" or (effects is None and not self.own_reference):
            effects = self._effects(inputs, call, arguments)  # zeros may hide what a recorded call writes
        effects = effects or self.effects[None]
        seed = self.params.cases[drawn.index].seed
        if seed != self.params.seed:
            call = self.problem.with_parameters(call, seed ^ 0x2545F491)
        case_call = CaseCall(
            call, drawn.twice, drawn.derived, drawn.distribution != "original",
            drawn.distribution in HELD_BY_ORIGINAL or self._has_indices(drawn), effects.written,
            dict(sizes),
            drawn.reduced,
        )  # fmt: skip
        digests = self._save(drawn.index, inputs, arguments, case_call)
        self.used += byte_count(inputs)
        arrays = [a for _, a in arrays_of(inputs)]
        self.context.emit({"drawn": drawn.name})
        return replace(
            drawn, digests=digests, call=asdict(call),
            shapes=[list(a.shape) for a in arrays], dtypes=[str(a.dtype).removeprefix("torch.") for a in arrays],
            aliases=effects.aliases,
        )  # fmt: skip

    def _effects_at(self, at: int | None) -> Effects:
        """Return what a call at a shape writes: the original kernel's is another one at each shape."""
        key = None if self.own_reference else at
        if key not in self.effects:
            inputs = self._base(key)
            self.effects[key] = self._effects(inputs, *self.problem.call(inputs))
        return self.effects[key]

    def _effects(self, inputs: list[Any], call: Call, arguments: list[Any]) -> Effects:
        if not call.writes:
            return Effects()
        return effects_of(lambda copies: count_work(self.problem, copies, HostWork()), inputs, arguments)

    def _has_indices(self, drawn: DrawnCase) -> bool:
        """Check whether the case draws equal floats of which the reference may return the place."""
        return drawn.distribution == "integers" and bool(_INDICES & self.kinds)

    def _fresh(self, inputs: list[Any], case: Case, at: int | None) -> tuple[list[Any], list[str]]:
        """Inputs that a seed makes differ, even where ``get_inputs`` seeds its generators itself."""
        before = self.first if at is None else self._inputs(case.seed ^ 1, at)
        if not _same(before, inputs):
            return inputs, []
        shuffled, changed = change("shuffled", inputs, case.seed)
        note = "the inputs are the same for every seed" + (
            "; their elements were shuffled" if changed else ""
        )
        return shuffled, [note]

    def _shape(self, at: int | None) -> dict[str, Any] | None:
        chosen: Mapping[str, Any] | None = None if at is None else self.shapes[at]
        return None if chosen is None else dict(chosen)

    def _save(self, index: int, inputs: list[Any], arguments: list[Any], case_call: CaseCall) -> list[str]:
        folder = case_folder(self.context, index)
        try:
            save_values(folder / "inputs", inputs)
            if arguments is not inputs:
                save_values(folder / "arguments", arguments)
            save_values(folder / "call", [to_plain(case_call)])
        except NotCarriedError as error:
            message = f"An input cannot be checked: {error}."
            raise StepFailedError(StepError("problem-invalid", message, self.params.problem.path)) from error
        return case_digests(self.context, index)


_Change = Callable[[_Drawing, list[Any], int], tuple[list[Any], bool]]


def _mixed(seed: int) -> int:
    """Return the seed of what changes inputs, which is not that of their drawing."""
    return seed ^ 0x5DEECE66D


def _redistribution(name: str) -> _Change:
    return lambda _, inputs, seed: change(name, inputs, _mixed(seed))


def _alteration(name: str) -> _Change:
    return lambda _, inputs, seed: altered(name, inputs, seed)


def _long_sums(name: str) -> _Change:
    return lambda _, inputs, seed: long_sums(name, inputs)


#: What makes the inputs of each distribution of those that were drawn: they, and whether anything changed.
_CHANGES: Mapping[str, _Change] = {
    **{name: _redistribution(name) for name in ("large", "small", "rows", "integers")},
    **{name: _alteration(name) for name in ALTERED},
    **{name: _long_sums(name) for name in LONG_SUMS},
    "skewed": lambda at, inputs, seed: at._skewed(inputs, _mixed(seed)),
    "spikes": lambda at, inputs, seed: spikes(inputs, _mixed(seed), at.kinds),
    HALF_RANGE: lambda at, inputs, _: half_range(inputs, at._finite),
    OFFSET: lambda at, inputs, _: offset(inputs, at.kinds),
    FAR_ELEMENTS: lambda at, inputs, seed: far_elements(inputs, _mixed(seed), at.kinds, at._finite),
    INTEGER_ENDS: lambda _, inputs, seed: end_integers(inputs, _mixed(seed)),
}  # fmt: skip
#: Distributions for some problems only; for others nobody asks for them.
_FITTING = frozenset([*LONG_SUMS, "spikes", HALF_RANGE, *HELD_BY_ORIGINAL])


def fitting(sizes: ProblemSizes, target: str, most: int, wanted: int) -> None:
    """Make ``sizes`` smaller until the inputs take ``wanted`` bytes, if they take more than ``most`` as they are. They
    are drawn from the smallest on, so that none is drawn which does not fit.
    """
    steps = [sizes.smaller]
    while sizes.halve():
        steps.append(sizes.smaller)
    chosen = 0
    with hollow_draws(target):
        for number in reversed(range(len(steps) if len(steps) > 1 else 0)):
            size = 0
            with (
                suppress(Exception),
                sizes.at(steps[number]).applied(),
            ):  # the problem never promised to draw them
                size = byte_count(sizes.inputs(0))
            if size > most:
                break
            chosen = number if 0 < size <= wanted or number == 0 else chosen
    sizes.at(steps[chosen])


def case_digests(context: StepContext, index: int) -> list[str]:
    """Return the digests of what was drawn for a case: its inputs, its arguments where they differ, and the call."""
    folder = case_folder(context, index)
    return [digest(folder / name) for name in ("inputs", "arguments", "call") if (folder / name).exists()]


def _plain(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.detach().cpu().double().numpy()


def _same(one: list[Any], other: list[Any]) -> bool:
    pairs = list(zip(arrays_of(one), arrays_of(other), strict=False))
    return bool(pairs) and all(_equal(a, b) for (_, a), (_, b) in pairs)


def _equal(a: Any, b: Any) -> bool:
    if tuple(a.shape) != tuple(b.shape):
        return False
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool((a == b).all())


def result_bytes(problem: Problem, inputs: list[Any]) -> int:
    """Return how much the reference returns for ``inputs``, which it does not change; 0 where it does not run, or is
    the original kernel, which may take long."""
    if not problem.own_reference:
        return 0
    try:
        return byte_count(problem.reference([copied(v) for v in inputs]) or [])
    except Exception:  # whatever is wrong with it is said where its answers are asked for
        return 0
