"""Draw again where a result is a little beyond what is allowed, before it is held against a candidate.

Where a problem is ill conditioned, an honest rewrite is within the limit for some draws and beyond it for others. Such
a case is drawn three times more, beside the original kernel where there is one, whose own error then counts. A rewrite
that is far beyond it on values that only the gate draws has to do there what the original does: the same case is run
beside that.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from accelopt_profiling.gate.evidence import Evidence
from accelopt_profiling.gate.probes.probe import ValueProbe
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.step_schemas import CaseVerdict
from accelopt_profiling.gate.verdict import Reason

#: Errors up to so many times what is allowed are near the limit.
_NEAR = 4.0
#: Further draws of a case, and how many of them may be beyond the limit.
DRAWS, _BEYOND = 3, 1


def near_cases(evidence: Evidence, refusals: list[Reason], rewritten: bool) -> list[int]:
    """Return the cases, by index, of errors that are all that speaks against a candidate: a little beyond the limit, or
    of a rewrite on values that no problem draws, which nobody has asked its original for.
    """
    if not evidence.complete or any(r.code != "wrong-result" for r in refusals):
        return []
    probes = {drawn.index: VALUES[drawn.distribution] for drawn in evidence.drawn}
    derived = {drawn.index for drawn in evidence.drawn if drawn.derived}
    wrong = [v for v in evidence.verdicts if v.reasons and v.index not in derived]
    for verdict in wrong:
        probe = probes[verdict.index]
        asks = rewritten and probe.name != "original" and not probe.held_by_original
        beyond = [o for o in verdict.outputs if o.comparison.fault]
        if len(beyond) != len(verdict.reasons) or not (asks or _is_near(verdict, probe)):
            return []
    return [verdict.index for verdict in wrong]


def _is_near(verdict: CaseVerdict, probe: ValueProbe) -> bool:
    """Check whether another draw may be right: errors on values that are exact are none of rounding."""
    return worst(verdict) <= _NEAR and not probe.exact


def worst(verdict: CaseVerdict) -> float:
    """Return the worst error of a case, in units of what is allowed."""
    return max((output.comparison.worst for output in verdict.outputs), default=0.0)


def draws_again(evidence: Evidence, cases: list[Case], near: list[int]) -> dict[int, list[Case]]:
    """Return the cases to draw beside the original for each of ``near``: others of its kind, or where its error is
    large the very same.
    """
    verdicts = {v.index: v for v in evidence.verdicts}
    return {
        n: further_draws(cases, [n]) if _is_near(verdicts[n], VALUES[cases[n].distribution]) else [cases[n]]
        for n in near
    }


def further_draws(cases: list[Case], near: list[int]) -> list[Case]:
    """Return the cases to draw: other seeds, which follow from those of ``cases``, so that a replay draws the same."""
    return [
        replace(cases[n], name=f"{cases[n].name}, draw {k + 2}", seed=_seed(cases[n].seed, k), again=True)
        for n in near
        for k in range(DRAWS)
    ]


def _seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:7], "big")


def settle(evidence: Evidence, draws: dict[int, list[Case]], further: Evidence) -> None:
    """Take back what speaks against cases if nearly all their further ``draws`` are right, or the one that is the same
    is so beside the original; where one was not made, ``evidence`` tells why."""
    verdicts = {v.index: v for v in further.verdicts}
    left_out = {drawn.index: drawn.left_out for drawn in further.drawn}
    end = 0
    for again in draws.values():
        numbers = range(end, end + len(again))
        end += len(again)
        missing = [n for n in numbers if n not in verdicts]
        if missing:
            evidence.unsettled = left_out.get(missing[0]) or "the problem does not draw it again"
            return
        if sum(bool(verdicts[n].reasons) for n in numbers) > (_BEYOND if len(again) > 1 else 0):
            return
    names = {drawn.index: drawn.name for drawn in evidence.drawn}
    evidence.verdicts = [
        _without(v, names[v.index], draws[v.index]) if v.index in draws else v for v in evidence.verdicts
    ]


def _without(verdict: CaseVerdict, name: str, again: list[Case]) -> CaseVerdict:
    error = f"In the case {name!r} an error was {worst(verdict):.3g} times what is allowed"
    others = (
        f"of {DRAWS} further draws at least {DRAWS - _BEYOND} were within the limit, or as near to it as the "
        "original"
    )
    note = Reason(
        "near-limit", f"{error}; {others if len(again) > 1 else 'the original computes the same there'}."
    )
    return replace(verdict, reasons=[], notes=[*verdict.notes, note])
