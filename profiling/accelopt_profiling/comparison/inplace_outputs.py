"""What a call does to its arguments: those that a kernel has to write to are those that the reference writes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelopt_profiling.comparison.memory import fingerprint, overlapping, same_bits, with_gaps
from accelopt_profiling.problems.call import copied
from accelopt_profiling.problems.problem import ProblemError


@dataclass(frozen=True)
class Effects:
    """What a reference does to its arguments: ``written`` are the positions of those that it changes, counted from the
    end (-1 is the last), ``aliases`` the places of outputs that share memory with an argument, each with that
    argument's.
    """

    written: list[int] = field(default_factory=list)
    aliases: list[list[str]] = field(default_factory=list)


def effects_of(
    reference: Callable[[list[Any]], list[Any]], inputs: Sequence[Any], arguments: Sequence[Any]
) -> Effects:
    """Return what ``reference`` does to its arguments, from a run on a copy of the inputs."""
    if not passed_through(inputs, arguments):
        return Effects()
    copies = [copied(v) for v in inputs]
    outputs = reference(copies)
    aliases = overlapping(copies[-len(arguments) :], outputs)
    return Effects(changed_arguments(copies, inputs, arguments), aliases)


def changed_inputs(before: Sequence[bytes], arguments: Sequence[Any], written: Sequence[int]) -> set[int]:
    """Return the positions of arguments whose fingerprint, gaps included, is not that ``before``, leaving out those
    ``written``, which are outputs."""
    return {
        n
        for n, (a, old) in enumerate(zip(arguments, before, strict=True))
        if n - len(arguments) not in written and fingerprint(with_gaps(a)) != old
    }


def changed_arguments(after: Sequence[Any], inputs: Sequence[Any], arguments: Sequence[Any]) -> list[int]:
    """Return the positions of the arguments that a run changed, counted from the end (-1 is the last): a problem may
    put something before its arguments to make inputs of them. ``after`` is what the run left of a copy of ``inputs``.
    Empty where ``arguments`` are made anew from the inputs."""
    if not passed_through(inputs, arguments):
        return []
    return [n for n in range(-len(arguments), 0) if not same_values(after[n], inputs[n])]


def passed_through(inputs: Sequence[Any], arguments: Sequence[Any]) -> bool:
    """Check whether the last inputs themselves are the arguments."""
    return bool(arguments) and all(
        a is b for a, b in zip(reversed(arguments), reversed(inputs), strict=False)
    )


def same_values(one: Any, other: Any) -> bool:
    """Check whether two arguments have equal bits, or equal numbers where one of them was widened to float64."""
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(same_values, one, other))
    if getattr(one, "dtype", None) == getattr(other, "dtype", None):
        return same_bits(one, other)
    if isinstance(one, np.ndarray):
        return bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())
    one, other = one.double(), other.double()
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def with_inplace_outputs(
    call: Callable[[], list[Any] | None], arguments: list[Any], written: list[int]
) -> list[Any]:
    """Return the outputs of ``call``, followed by what it left in the arguments ``written``. Such a call may
    return nothing or one of these arguments: the result then holds a copy, since the next call is given the
    same memory.

    Raises:
        ProblemError: as ``call`` does.
    """
    try:
        outputs = call() or []
    except ProblemError as error:
        if error.code != "problem-empty" or not written:
            raise
        outputs = []
    return joined(outputs, arguments, written)


def returned(run: Callable[[], list[Any]]) -> list[Any] | None:
    """Return the outputs of ``run``.

    None where the kernel's function returned nothing, as those that write in place do.

    Raises:
        ProblemError: anything else that ``run`` raises.
    """
    try:
        return run()
    except ProblemError as error:
        if error.code != "problem-empty":
            raise
        return None


def joined(outputs: list[Any], arguments: list[Any], written: list[int]) -> list[Any]:
    """Join returned outputs and the arguments ``written``, copied where they share memory."""
    if not written:
        return outputs
    changed = [arguments[n] for n in written]
    return [copied(v) if overlapping(changed, [v]) else v for v in outputs] + [copied(v) for v in changed]
