"""Carries the edits of rules over to other kernels, and compares with what the rules make there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accelopt_agent.candidate import Candidate
from accelopt_agent.rules.catalogue import proposals
from accelopt_agent.syntax.fingerprint import file_fingerprint
from accelopt_agent.transfer.edit_transfer import transfer
from accelopt_benchmarks.result import GoalResult
from accelopt_benchmarks.search.world import StudyKernel

#: Of 258 such edits the transfer before this one made 10 as the rule does.
BEFORE = "10 of 258"


@dataclass(frozen=True)
class RuleEdits:
    """``asked`` counts the edits of a rule on one kernel that the same rule can make on another one, ``same`` those
    that carry over and make what the rule makes there, ``other`` those that carry over and make something else."""

    asked: int
    same: int
    other: int


def carry_rule_edits(kernels: Sequence[StudyKernel]) -> RuleEdits:
    """Carry the first edit of each rule on each kernel over to every other kernel on which the rule applies."""
    made = {k.name: _by_rule(k) for k in kernels}
    asked = same = other = 0
    for one in kernels:
        for rule, edits in made[one.name].items():
            for two in kernels:
                if one is two or rule not in made[two.name]:
                    continue
                asked += 1
                carried = transfer(one.text, edits[0].text, one.kernel.name, two.text, two.kernel.name)
                if carried is not None:
                    known = {file_fingerprint(c.text) for c in made[two.name][rule]}
                    good = file_fingerprint(carried.text) in known
                    same, other = same + good, other + (not good)
    return RuleEdits(asked, same, other)


def _by_rule(kernel: StudyKernel) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for candidate in proposals(kernel.text, kernel.kernel, None, kernel.target):
        found.setdefault(candidate.origin, []).append(candidate)
    return found


def row(edits: RuleEdits) -> GoalResult:
    """Return the share of edits that make what the rule makes."""
    share = 100 * edits.same / max(1, edits.asked)
    how = f"{edits.other} in another way, which the gate judges"
    detail = f"{edits.same} of {edits.asked} as the rule makes them, {how}"
    return GoalResult(
        "rule edits on other kernels", f"more than {BEFORE}", share, "%", share > 100 * 10 / 258, detail
    )
