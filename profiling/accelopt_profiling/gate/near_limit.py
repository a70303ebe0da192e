"""Draw again where a result is a little beyond what is allowed, before it is held against a candidate.

Where a problem is ill conditioned, an honest rewrite is within the limit for some draws and beyond it for others. Such
a case is drawn three times more, beside the original kernel where there is one, whose own error then counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from accelopt_profiling.gate.evidence import Evidence
from accelopt_profiling.gate.probes.registry import VALUES
from accelopt_profiling.gate.request import Case
from accelopt_profiling.gate.step_schemas import CaseVerdict
from accelopt_profiling.gate.verdict import Reason

#: Errors up to so many times what is allowed are near the limit.
_NEAR = 4.0
#: Further draws of a case, and how many of them may be beyond the limit.
DRAWS, _BEYOND = 3, 1


def near_cases(evidence: Evidence, refusals: list[Reason]) -> list[int]:
    """Return the cases, by index, whose errors a little beyond the limit are all that speaks against a candidate."""
    if not evidence.complete or any(r.code != "wrong-result" for r in refusals):
        return []
    derived = {drawn.index for drawn in evidence.drawn if drawn.derived}
    near = [v.index for v in evidence.verdicts if v.reasons and _is_near(v) and v.index not in derived]
    wrong = [v.index for v in evidence.verdicts if v.reasons and v.index not in derived]
    exact = {d.index for d in evidence.drawn if VALUES[d.distribution].exact}
    return near if near == wrong and not exact & set(near) else []


def worst(verdict: CaseVerdict) -> float:
    """Return the worst error of a case, in units of what is allowed."""
    return max((output.comparison.worst for output in verdict.outputs), default=0.0)


def _is_near(verdict: CaseVerdict) -> bool:
    beyond = [o for o in verdict.outputs if o.comparison.fault]
    return len(beyond) == len(verdict.reasons) and worst(verdict) <= _NEAR


def further_draws(cases: list[Case], near: list[int]) -> list[Case]:
    """Return the cases to draw: other seeds, which follow from those of ``cases``, so that a replay draws the same."""
    return [
        replace(cases[n], name=f"{cases[n].name}, draw {k + 2}", seed=_seed(cases[n].seed, k), again=True)
        for n in near
        for k in range(DRAWS)
    ]


def _seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:7], "big")


def settle(evidence: Evidence, near: list[int], cases: list[Case], further: Evidence) -> None:
    """Take back what speaks against the ``near`` cases if nearly all their further draws are right; where one was not
    made, ``evidence`` tells why."""
    verdicts = {v.index: v for v in further.verdicts}
    left_out = {drawn.index: drawn.left_out for drawn in further.drawn}
    for at in range(len(near)):
        numbers = range(at * DRAWS, (at + 1) * DRAWS)
        missing = [n for n in numbers if n not in verdicts]
        if missing:
            evidence.unsettled = left_out.get(missing[0]) or "the problem does not draw it again"
            return
        if sum(bool(verdicts[n].reasons) for n in numbers) > _BEYOND:
            return
    evidence.verdicts = [_without(v, cases) if v.index in near else v for v in evidence.verdicts]


def _without(verdict: CaseVerdict, cases: list[Case]) -> CaseVerdict:
    message = (
        f"In the case {cases[verdict.index].name!r} an error was {worst(verdict):.3g} times what is allowed; of "
        f"{DRAWS} further draws at least {DRAWS - _BEYOND} were within the limit, or as near to it as the original."
    )
    return replace(verdict, reasons=[], notes=[*verdict.notes, Reason("near-limit", message)])
