"""The step ``gate.judge``: compare each case's outputs with the expected values. No user code runs in its process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import process_time

import numpy as np

from accelopt_profiling.comparison.elements import Array, compare
from accelopt_profiling.comparison.leaves import Leaf
from accelopt_profiling.comparison.memory import is_unwritten
from accelopt_profiling.comparison.outputs import compared_elements, difference
from accelopt_profiling.comparison.saved_values import digest
from accelopt_profiling.comparison.tolerance import Allowed
from accelopt_profiling.gate.case_files import (
    TOLERANCE_FILE,
    case_folder,
)
from accelopt_profiling.gate.judge.judged_case import JudgedCase
from accelopt_profiling.gate.judge.kernel_contribution import only_moved
from accelopt_profiling.gate.judge.saved_outputs import SavedOutputs, is_finite
from accelopt_profiling.gate.probes.probe import ValueProbe
from accelopt_profiling.gate.probes.registry import PROBES, VALUES, raw_folders
from accelopt_profiling.gate.step_schemas import CaseVerdict, JudgeParams, OutputVerdict, ReferenceRule
from accelopt_profiling.gate.verdict import Reason
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.problem import Tolerance
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.project_modules import leave_project


def judge_tolerance(answers: SavedOutputs) -> tuple[bool, list[Reason]]:
    """Check whether zeros, a constant or a copy of an input pass under the tolerance that the problem states; with
    notes.

    From then on the gate's own rule holds for this case. Says so too where that rule cannot tell either.
    """
    notes: list[Reason] = []
    fakes = list(_fakes_that_pass(answers))
    stated = answers.stated.relative is not None or answers.stated.absolute is not None
    replaced = bool(fakes) and stated
    if replaced:
        message = f"Under the problem's tolerance {fakes[0]} would pass; the gate's own rule for the dtype was used."
        notes.append(Reason("loose-problem", message))
        answers.stated = Tolerance()
        fakes = list(_fakes_that_pass(answers))
    notes += [
        Reason(
            "loose-problem",
            f"{fake} would pass too: the problem's inputs cannot tell a wrong kernel from a right one.",
        )
        for fake in fakes
    ]
    return replaced, notes


def _fakes_that_pass(answers: SavedOutputs) -> Iterator[str]:
    for number, (theirs, native) in enumerate(zip(answers.expected, answers.native, strict=True)):
        if not theirs.floating or not theirs.values.size or not is_finite(theirs):
            continue
        limit = answers.allowed(native, number)
        mean = theirs.values.mean(dtype=np.float64)
        flat = (("zeros", 0.0), ("its mean", mean))
        fakes: list[tuple[str, Array]] = [(n, np.broadcast_to(np.float64(v), theirs.shape)) for n, v in flat]
        fakes += [
            (f"a copy of {leaf.where.replace('output', 'input')}", leaf.values)
            for leaf in answers.inputs
            if leaf.floating and leaf.shape == theirs.shape
        ]
        for name, values in fakes:
            if _passes(values, theirs.values, native.values, limit):
                yield f"{theirs.where} filled with {name}"


def _passes(values: Array, expected: Array, native: Array, limit: Allowed) -> bool:
    """Check whether ``values`` would be accepted. Most fail in their first part already."""
    for part in (
        (slice(0, max(1, len(values) // 64)), slice(None)) if values.ndim and len(values) > 64 else (...,)
    ):
        if compare(values[part], expected[part], native[part], limit).fault:
            return False
    return True


def judge(context: StepContext, params: JudgeParams) -> list[CaseVerdict]:
    """Judge every case that has expected values."""
    leave_project()  # this process runs none of the candidate's code
    rule = from_plain(
        ReferenceRule, json.loads((context.folder / "gate" / TOLERANCE_FILE).read_text(encoding="utf-8"))
    )
    stated = rule.tolerance
    judged: list[CaseVerdict] = []
    ordinary_is_finite = first = True
    for index, distribution in enumerate(params.distributions):
        folder = case_folder(context, index)
        if not (folder / "expected").is_dir():
            continue
        has_reference = params.alone or params.replaces or (folder / "original").is_dir()
        probe = VALUES[distribution]
        answers = SavedOutputs(folder, stated, probe.is_exact, rule.settled and has_reference)
        finite = answers.finite()
        if first:
            ordinary_is_finite = finite
        gates_own = distribution != "original" or index in params.own_sizes
        if not finite and ordinary_is_finite and gates_own and not probe.finite_alone:
            judged.append(CaseVerdict(index, skipped="the reference itself is not finite on these inputs"))
            continue
        notes: list[Reason] = []
        if first:
            replaced, notes = judge_tolerance(answers)
            stated = Tolerance() if replaced else stated
        first = False
        judged.append(_judged(index, probe, JudgedCase(answers, params), notes))
    return judged


def _judged(index: int, probe: ValueProbe, case: JudgedCase, notes: list[Reason]) -> CaseVerdict:
    answers = case.answers
    read = answers.read("outputs")
    actual = [] if isinstance(read, str) else read
    if isinstance(read, str):
        case.fail(probe.name, "wrong-output", read)
    case.known = answers.masks("outputs")
    case.asked = answers.finite_elements() if probe.finite_alone else {}
    outputs: list[OutputVerdict] = []
    busy: dict[str, float] = {}
    if not case.reasons and case.has_form(probe.name, actual):
        started = process_time()
        masks = case.masks("outputs")
        outputs = [
            _output(probe, case, notes=notes, number=number, mine=leaf, mask=masks.get(number))
            for number, leaf in enumerate(actual)
        ]
        busy = {probe.name: process_time() - started}
        for further in PROBES:
            started = process_time()
            further.judge(case, actual)
            busy[further.name] = busy.get(further.name, 0.0) + process_time() - started
    elif probe.beside_original and not isinstance(read, str) and not case.original_right():
        notes.append(
            Reason("range-ends", f"On {probe.name} the original is wrong too; {case.reasons[0].message}")
        )
        case.reasons.clear()
    digests = {raw: digest(answers.folder / raw) for raw in raw_folders(answers.folder)}
    return CaseVerdict(
        index, case.reasons, notes, outputs, "", case.repeatable, *compared_elements(actual, case.known), digests,
        case.idle, case.original_right(), only_moved(answers) if answers.has("again") else None, busy,
    )  # fmt: skip


def _output(
    probe: ValueProbe,
    case: JudgedCase,
    notes: list[Reason],
    number: int,
    mine: Leaf,
    mask: Array | None,
) -> OutputVerdict:
    """Judge one output, of which ``mask`` marks the elements that count. None for all."""
    answers = case.answers
    limit = answers.allowed(mine, number)
    comparison = answers.compare(mine.values, number, limit, mask)
    comparison = case.beside_the_original(mine, number, comparison, probe.name == "original")
    if comparison.fault:
        note = probe.excuse(case, mine, comparison)
        if note is not None:
            notes.append(note)
        else:
            wrong = Reason(comparison.fault, difference(mine, comparison))
            reason = probe.cause(mine, comparison) or _unwritten(mine) or wrong
            case.fail(probe.name, reason.code, reason.message)
    elif mask is None and (overlooked := probe.overlooked(case, mine, number)):
        case.fail(probe.name, overlooked.code, overlooked.message)
    own = comparison
    if limit.stated:
        strict = answers.allowed(mine, number, Tolerance())
        own = answers.compare(mine.values, number, strict, mask)
    return OutputVerdict(
        mine.where,
        mine.dtype,
        shape=list(mine.shape),
        relative=limit.relative,
        absolute=limit.absolute,
        comparison=comparison,
        own_ratio=own.worst,
    )


def _unwritten(mine: Leaf) -> Reason | None:
    """Return the reason where elements are of memory that nothing wrote."""
    places = is_unwritten(mine.values, mine.dtype)
    count = int(np.count_nonzero(places))
    if not count:
        return None
    first = [int(n) for n in np.unravel_index(int(np.argmax(places)), places.shape)]
    elements = "1 element" if count == 1 else f"{count} elements"
    share = f"{100 * count / places.size:.3g} %"
    return Reason("not-written", f"{mine.where}: nothing wrote {elements} ({share}), first at {first}.")
