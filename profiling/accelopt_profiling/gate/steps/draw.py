"""The step ``gate.draw``: draw the inputs of each case, in a process that runs the problem's code only and ends with
the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np

from accelopt_profiling.comparison.inplace_outputs import Effects, effects_of
from accelopt_profiling.comparison.memory import arrays_of, byte_count
from accelopt_profiling.comparison.saved_values import NotCarriedError, digest, save_values
from accelopt_profiling.gate.case_files import (
    WIDE,
    case_folder,
    forget_requests,
    problem_errors,
    problem_files,
)
from accelopt_profiling.gate.observe.emulation import emulation, hollow_draws
from accelopt_profiling.gate.observe.hostwork import HostWork, count_work
from accelopt_profiling.gate.probes.probe import COUNTED_BYTES, SizeProbe
from accelopt_profiling.gate.probes.registry import SIZES, VALUES
from accelopt_profiling.gate.probes.rewriting import Shuffled
from accelopt_profiling.gate.probes.sizes import fit
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.step_schemas import CaseCall, DrawnCase, DrawParams
from accelopt_profiling.gate.steps.far_sizes import save_far_calls
from accelopt_profiling.jobs import StepError
from accelopt_profiling.plain import to_plain
from accelopt_profiling.problems.call import copied
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.loading.sizes import ProblemSizes
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.step_context import StepContext, StepFailedError

#: Arguments of a call of which only the launches are looked at may take so many times what is small: they hold zeros.
_WIDE_SHARE = 4


def draw(context: StepContext, params: DrawParams) -> list[DrawnCase]:
    """Draw every case and save it: ``inputs`` for the reference, ``arguments`` for the kernel. No seed is saved."""
    forget_requests(context)
    with (
        problem_files(context, params.source) as own,
        emulation(params.dialect, params.target),
        problem_errors(own, "drawing inputs: "),
    ):
        drawing = _Drawing(context, load_problem(own, params.problem, None), params)
        cases: list[DrawnCase] = []
        for index in range(len(params.cases)):
            started = process_time()
            drawn = drawing.case(index)
            if drawn is not None:
                cases.append(replace(drawn, busy=process_time() - started))
        if params.dialect == "triton" and params.far:
            save_far_calls(context, drawing.problem, params.target)
        return cases


class _Drawing:
    """Draws cases, each as it would be drawn alone: what they share follows from the check's first seed."""

    def __init__(self, context: StepContext, problem: Problem, params: DrawParams) -> None:
        self.context, self.problem, self.params = context, problem, params
        self.dialect, self.target = params.dialect, params.target
        self.limits, self.numbers = params.limits, params.numbers
        self.budget, self.large_bytes = params.budget, params.budget.large_bytes
        self.shapes = list(problem.shapes)
        self.sizes: dict[int | None, int] = {}  # bytes of the inputs, by shape index
        self.result_sizes: dict[int | None, int] = {}  # bytes of what the reference returns
        self.chosen: dict[str, list[dict[str, int]]] = {}  # sizes, by the probe that chose them
        self.used = self.results = 0
        self.doubled = False
        self.main = ProblemSizes(problem)
        if params.dialect == "triton":
            fit(self.main, params.target, self.budget.input_bytes, self.large_bytes)
        self.own_reference = problem.own_reference  # not the original kernel
        with self.main.applied():
            self.first = self._inputs(params.seed, None)
            self.size = byte_count(self.first)
            self.effects: dict[int | None, Effects] = {}  # by shape index
            self._effects_at(None)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of work that the reference does, seen at the first shape that is small enough."""
        work = HostWork()
        for at in self._shapes_tried():
            inputs = self._base(at)
            if byte_count(inputs) <= COUNTED_BYTES or (at is None and self.problem.call(inputs)[0].writes):
                count_work(self.problem, [copied(v) for v in inputs], work)
                break
        return frozenset(work.elements)

    @cached_property
    def home(self) -> int | None:
        """The shape for the cases whose point is their values: the main one unless a further one is small enough."""
        if self.size <= self.large_bytes:
            return None
        sizes = {at: byte_count(self._base(at)) for at in self._shapes_tried()}
        small = {at: size for at, size in sizes.items() if size <= self.large_bytes}
        return max(small, key=lambda at: small[at], default=None)

    def _shapes_tried(self) -> list[int | None]:
        return [None, *range(min(self.params.shapes, len(self.shapes)))]

    def _base(self, at: int | None) -> list[Any]:
        return self.first if at is None else self._inputs(self.params.seed, at)

    def case(self, index: int) -> DrawnCase | None:
        """Draw and save one case. None when the problem has no such shape, or no sums to lose anything in."""
        case = self.params.cases[index]
        if case.sizes:
            return self._at_sizes_of(SIZES[case.sizes], index, case)
        with self.main.applied():
            return self._case(index, case)

    def _at_sizes_of(self, probe: SizeProbe, index: int, case: Case) -> DrawnCase | None:
        """Return a case at sizes that a probe chooses: the problem need not be able to draw it."""
        if probe.name not in self.chosen:
            self.chosen[probe.name] = probe.shapes(self)
        shapes = self.chosen[probe.name]
        if case.number >= len(shapes):
            return None
        shape, sizes = shapes[case.number], ProblemSizes(self.problem)
        if probe.launches_only:
            self._keep_launch(index, sizes.at(shape))
            return None
        drawn = DrawnCase(
            index, case.name, case.distribution, shape=dict(shape), derived=True,
            open=probe.leaves_open(self, shape), fixed=sizes.fixed and not probe.stands_in, reduced=probe.stands_in,
            smaller=str(sizes.at(shape)) if probe.stands_in else "", probe=probe.name,
        )  # fmt: skip
        left_out = probe.too_large(self)
        try:
            with sizes.at(shape).applied():
                left_out = left_out or ("its inputs are large" if self._far_too_large(probe, sizes) else "")
                inputs = [] if left_out else sizes.inputs(case.seed)
                if byte_count(inputs) > self.large_bytes:
                    left_out = "its inputs are large"
                if not left_out:
                    return self._keep(drawn, inputs, shape)
        except Exception as error:  # the problem's own code, asked for what it never promised
            left_out = f"the problem does not draw it ({type(error).__name__})"
        return replace(drawn, left_out=left_out) if probe.told else None

    def _keep_launch(self, index: int, sizes: ProblemSizes) -> None:
        """Save a call of which only the launches are looked at: its arrays hold zeros."""
        folder = case_folder(self.context, index)
        with suppress(Exception), sizes.applied(), hollow_draws(self.target):  # nobody promised to draw them
            call, arguments = self.problem.call(sizes.inputs(0))
            if byte_count(arguments) <= _WIDE_SHARE * self.large_bytes:
                save_values(folder / WIDE / "arguments", arguments)
                save_values(folder / WIDE / "call", [to_plain(CaseCall(call, sizes=sizes.smaller))])

    def _far_too_large(self, probe: SizeProbe, sizes: ProblemSizes) -> bool:
        """Check whether sizes that may be many times the problem's take too much, without drawing their values."""
        if probe.told or self.dialect != "triton":
            return False
        with hollow_draws(self.target):
            return byte_count(sizes.inputs(0)) > self.large_bytes

    def _inputs(self, seed: int, at: int | None) -> list[Any]:
        if at is None and self.main.smaller:
            return self.main.inputs(seed)
        return self.problem.inputs(seed, self._shape(at))

    def _case(self, index: int, case: Case) -> DrawnCase | None:
        at = case.shape_index
        if at is not None and at >= len(self.shapes):
            return None
        if case.movable:
            at = self.home
        smaller = "" if at is not None else str(self.main)
        drawn = DrawnCase(
            index,
            case.name,
            case.distribution,
            shape=self._shape(at),
            smaller=smaller,
            probe=case.distribution,
        )
        if index and self.used + self.sizes.get(at, 0) > self.budget.input_bytes:
            return replace(drawn, left_out="the inputs of earlier cases are large", beyond_budget=True)
        if index and self.results + self.result_sizes.get(at, 0) > self.budget.result_bytes:
            return replace(drawn, left_out="the results of earlier cases are large", beyond_budget=True)
        probe = VALUES[case.distribution]
        inputs = self._inputs(case.seed if case.alters is None else case.alters, at)
        notes: list[str] = []
        self.sizes.setdefault(at, byte_count(inputs))
        if at not in self.result_sizes:
            self.result_sizes[at] = result_bytes(self.problem, inputs)
        if case.again or (case.movable and case.distribution == "original"):
            inputs, notes = self._fresh(inputs, case, at)
        inputs, changed = probe.inputs(self, inputs, case)
        if not changed and probe.fits_some:
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

    def is_finite(self, inputs: list[Any]) -> bool:
        """Check whether the reference takes ``inputs``, and gives numbers."""
        try:
            outputs = self.problem.reference([copied(v) for v in inputs])
        except Exception:  # the problem's own code, asked for what it never promised
            return False
        arrays = [_plain(array) for _, array in arrays_of(outputs or [])]
        return all(array.size and bool(np.isfinite(array).all()) for array in arrays)

    def takes(self, sizes: Mapping[str, int]) -> bool:
        """Check whether the problem draws inputs at ``sizes``, small ones, and its reference gives numbers there."""
        own = ProblemSizes(self.problem).at(sizes)
        with suppress(Exception), own.applied():  # the problem never promised to draw them
            inputs = own.inputs(self.params.seed)
            whole = all(0 not in array.shape for _, array in arrays_of(inputs))
            return whole and byte_count(inputs) <= COUNTED_BYTES and self.is_finite(inputs)
        return False

    def _keep(
        self, drawn: DrawnCase, inputs: list[Any], sizes: Mapping[str, int], effects: Effects | None = None
    ) -> DrawnCase:
        """Save a case. ``effects`` are those of its call where they are known."""
        call, arguments = self.problem.call(inputs)
        if call.style == "recorded" or (effects is None and not self.own_reference):
            effects = self._effects(inputs, call, arguments)  # zeros may hide what a recorded call writes
        effects = effects or self.effects[None]
        seed = self.params.cases[drawn.index].seed
        call = VALUES[drawn.distribution].call(call)
        if seed != self.params.seed:
            call = self.problem.with_parameters(call, seed ^ 0x2545F491)
        case_call = CaseCall(
            call,
            drawn.twice,
            derived=drawn.derived,
            altered=drawn.distribution != "original",
            compared=VALUES[drawn.distribution].compares(self),
            written=effects.written,
            sizes=dict(sizes),
            reduced=drawn.reduced,
        )
        digests = self._save(drawn.index, inputs, arguments, case_call)
        self.used += byte_count(inputs)
        arrays = [a for _, a in arrays_of(inputs)]
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

    def _fresh(self, inputs: list[Any], case: Case, at: int | None) -> tuple[list[Any], list[str]]:
        """Inputs that a seed makes differ, even where ``get_inputs`` seeds its generators itself."""
        before = self.first if at is None else self._inputs(case.seed ^ 1, at)
        if not _same(before, inputs):
            return inputs, []
        shuffled, changed = Shuffled(case.seed).of(inputs)
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
