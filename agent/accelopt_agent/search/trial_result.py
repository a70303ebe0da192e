"""Turns measured trials into nodes, and nodes into suggestions and lessons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from accelopt_agent.candidate import THEN
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.whole_time import REST, REST_AT_SCALE
from accelopt_agent.events import CandidateOutcome
from accelopt_agent.request import LessonLimits, OptimizeRequest
from accelopt_agent.search.node import Failure, Node
from accelopt_agent.search.trial import Trial, VersionTexts, unified_diff
from accelopt_agent.search.versions import MeasuredVersions
from accelopt_agent.speedup import clearly_faster, direction, speedup
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion, VersionStep
from accelopt_agent.syntax.lines import share_kept
from accelopt_memory.outcomes import Outcome
from accelopt_memory.records import content_id
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Correctness, KernelMeasurement, Latency, LaunchTime
from accelopt_profiling.quantity import Known

#: So many steps are told one by one.
STEPS_TOLD = 3
#: A step of which a smaller share of the lines is left was overwritten.
LEFT = 0.25


def node_of_trial(
    trial: Trial,
    outcome: KernelMeasurement | CostUnavailableError,
    root: Node,
    texts: VersionTexts,
    target: str,
) -> Node:
    """Build the node of ``trial`` in the search from ``root``.

    It is a failed one where ``outcome`` is an error or has one.
    """
    candidate, failure = trial.composed, None
    if isinstance(outcome, CostUnavailableError):
        failure = Failure(outcome.code, str(outcome))
        measurement = replace(
            trial.parent.measurement,
            latency=Latency(),
            correctness=Correctness("failed", str(outcome)),
            percent_of_peak=None,
        )
    else:
        measurement = outcome
        rest = outcome.quantities.get(REST_AT_SCALE if root.compared_at_scale else REST)
        if rest is not None and root.rest.us is None:
            root.rest = Latency(rest.value, rest.low, rest.high, rest.known)
        if (fault := outcome.fault) is not None:
            failure = Failure(fault.code, fault.message)
    node = Node(
        candidate.text,
        texts.kernel(candidate.text, measurement.name) or texts.kernel(candidate.text) or root.kernel,
        measurement=measurement,
        candidate=candidate,
        parent=trial.parent,
        step=trial.step,
        fingerprint=trial.fingerprint,
        failure=failure,
        repair=trial.repairs,
        remembered=trial.remembered,
    )
    node.verdict = "refused" if failure is not None else None
    node.clearly_faster = _clearly_faster(node, target)
    return node


def _clearly_faster(node: Node, target: str) -> bool:
    """Return whether ``node`` may be offered in the place of the original: what gains as a part of a larger launch must
    not lose in the profiled case, and the other way round; and no other launch of the run may lose either."""
    ways = {
        direction(node.original_compared(), node.compared, target),
        direction(node.original_compared(plain=True), node.measurement.latency, target),
    }
    return "faster" in ways and "slower" not in ways and not _slower_launches(node, target)


def _launch_pairs(node: Node) -> list[tuple[LaunchTime, LaunchTime]]:
    """Return the times of each launch of the run, before and after, as far as both are known. None are where the runs
    made different numbers of launches, or with other tensors."""
    before, after = node.root.measurement.launches, node.measurement.launches
    pairs = [(o, n) for o, n in zip(before, after, strict=False) if o is not None and n is not None]
    if len(before) != len(after) or any(old.case != new.case for old, new in pairs):
        return []
    return pairs


def _slower_launches(node: Node, target: str) -> bool:
    """Return whether some launch of the run is slower than the original's, as it is or, where the original's is mostly
    start, as a part of a larger one."""
    root = node.root
    for old, new in _launch_pairs(node):
        if direction(old.latency, new.latency, target) == "slower":
            return True
        if root.compared_at_scale and direction(old.at_scale, new.at_scale, target) == "slower":
            return True
    return False


def failure_of(verdict: Verdict) -> Failure:
    """Return why the gate refused a version: its first reason, and the cases with their shapes."""
    code, why = next(((r.code, r.message) for r in verdict.reasons), ("refused", ""))
    passed = [str(c.get("case")) for c in verdict.checks if c.get("outcome") == "passed"]
    failed = [
        f"{c.get('case')} ({_shapes(c.get('shapes'))})"
        for c in verdict.checks
        if c.get("outcome") == "failed"
    ]
    parts = [f"Wrong in the cases: {', '.join(failed)}."] if failed else []
    parts += [f"Right in the cases: {', '.join(passed)}."] if passed else []
    return Failure(code, why, " ".join(parts))


def _shapes(shapes: object) -> str:
    return str(shapes) if shapes else "sizes of the problem"


def outcome_of(trial: Trial, node: Node, root: Node, target: str) -> Outcome:
    """Return what became of ``trial``, which made ``node``, for the memory's table."""
    alike = trial.parent.changes_more == node.changes_more
    before, after = (n.compared.us or math.inf if alike else n.us for n in (trial.parent, node))
    is_comparable = trial.parent.failure is None and 0 < before < math.inf and 0 < after < math.inf
    return Outcome(
        item=trial.item,
        task=root.kernel.content_hash,
        bound=trial.parent.measurement.bound,
        dialect=root.kernel.dialect,
        target=target,
        log_ratio=math.log(after / before) if is_comparable and node.failure is None else None,
        rewrite=node.fingerprint,
        failed=node.failure is not None,
    )


def candidate_outcome(node: Node, target: str) -> CandidateOutcome:
    """Compare a version with the original."""
    if node.failure is not None:
        return "failed"
    if node.clearly_faster:
        return "faster"
    return "slower" if clearly_faster(node.compared, node.original_compared(), target) else "unclear"


def suggestion_for(request: OptimizeRequest, node: Node, verdict: Verdict, run: str, host: str) -> Suggestion:
    """Build the suggestion of ``node``, a version clearly faster than the original that the gate has accepted. Where
    both were timed in one session, that session decides the speedup."""
    base, target, candidate = node.root, request.target, node.candidate
    slow, fast = node.original_compared(plain=True), node.measurement.latency
    ratio = speedup(slow, fast, target)
    if node.compared_at_scale and not clearly_faster(slow, fast, target):
        larger = speedup(node.original_compared(), node.compared, target)
        ratio = replace(larger, at="larger batches") if larger is not None else ratio
    if (side := node.comparison) is not None:
        ratio = Speedup(side.ratio, side.low, side.high, Known.MEASURED)
    assert ratio is not None  # clearly faster
    assert candidate is not None  # not the original
    return Suggestion(
        id=_id(request, node),
        run=run,
        file=str(request.path),
        kernel=base.kernel.name,
        dialect=base.kernel.dialect,
        base_hash=base.kernel.content_hash,
        base_text=base.text,
        text=node.text,
        diff=unified_diff(base.text, node.text, str(request.path)),
        origin=candidate.origin,
        summary=candidate.summary
        if node.made_by_rules
        else net_summary(base.text, node.text, lasting_steps(node)),
        speedup=ratio,
        slow=slow,
        fast=fast,
        gate=verdict,
        target=target,
        host=host,
        steps=candidate.steps,
        bound=base.measurement.bound,
        fast_bound=node.measurement.bound,
        moved=MeasuredVersions(base.measurement, node.measurement).moves(),
        launches=len(_launch_pairs(node)),
        case=node.measurement.case if node.measurement.case == base.measurement.case else "",
        way=_way(request, node),
    )


def _way(request: OptimizeRequest, node: Node) -> tuple[VersionStep, ...]:
    """Return the steps that led to ``node``; of a version that was carried over as a whole those that are recorded,
    where its times are what they were."""
    recorded = request.repetition.suggestion.way if request.repetition is not None else ()
    if len(recorded) > node.depth == 1:
        before, after = node.beside(node.root)[::-1]
        if (recorded[0].before, recorded[-1].after) == (before, after):
            return recorded
    return tuple(_version_steps(request, node))


def _id(request: OptimizeRequest, node: Node) -> str:
    """Return the id of the suggestion that ``node`` would be."""
    base = node.root.kernel.content_hash
    return content_id("suggestion", str(request.path), base, request.target, node.fingerprint)[:12]


def _version_steps(request: OptimizeRequest, node: Node) -> Iterator[VersionStep]:
    for before, (_, summary), version in _rewrites(node):
        after, earlier = version.beside(before)
        origins = version.steps[len(before.steps) :]
        yield VersionStep(origins, summary, before=earlier, after=after, id=_id(request, version))


def _rewrites(node: Node) -> list[tuple[Node, tuple[str, str], Node]]:
    """Return each rewrite from the original to ``node``, oldest first: the version before it, its origin and summary,
    and the version that it made. Repairs are part of what they repair."""
    rewrites: list[tuple[Node, tuple[str, str], Node]] = []
    at = node
    while at.parent is not None:
        version = at
        while at.repair and at.parent is not None:
            at = at.parent
        before = at.parent or node.root
        if at.step is not None:
            rewrites.insert(0, (before, at.step, version))
        at = before
    return rewrites


def lasting_steps(node: Node) -> list[str]:
    """Return what the steps from the original to ``node`` did, one sentence each, without the steps of which a later
    one left less than ``LEFT`` of the lines that they added."""
    steps: list[str] = []
    for before, (_, summary), version in _rewrites(node):
        share = share_kept(before.text, version.text, node.text)
        if share is None or share >= LEFT:
            steps.append(summary)
    return steps


def net_summary(base_text: str, text: str, steps: Sequence[str]) -> str:
    """Return the ``steps`` from ``base_text`` to ``text`` as one sentence: repeated steps once, many counted, and
    before them which kernels stand in the place of which."""
    steps = list(dict.fromkeys(_bare(part) for step in steps for part in step.split(THEN)))
    sentence = THEN.join(steps[:STEPS_TOLD])
    if len(steps) > STEPS_TOLD:
        sentence += f"; and {len(steps) - STEPS_TOLD} more"
    before, after = ({k.name for k in find_kernels(t).launched} for t in (base_text, text))
    gone, added = sorted(before - after), sorted(after - before)
    if not gone:
        return sentence
    return (
        f"{_listed(added)} in place of {_listed(gone)}: {sentence}"
        if added
        else f"without {_listed(gone)}: {sentence}"
    )


def _bare(step: str) -> str:
    step = step.strip()
    return step if step.endswith("...") else step.rstrip(".")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@runtime_checkable
class LessonWriter(Protocol):
    """A proposer that can say in a few sentences why one version is faster than another."""

    async def lesson(self, slow: Node, fast: Node) -> str:
        """Return the lesson. Raises ProposerError."""


def lessons_due(root: Node, limits: LessonLimits) -> Iterator[tuple[Node, Node, Node]]:
    """Yield (slow, fast, version) for each version that teaches something, at most ``limits.most``: the largest gains
    first, then the largest losses. Every pair reads from slow to fast, so a loss is turned about."""
    versions = [
        n for n in root.walk() if n.parent is not None and n.failure is None and 0 < n.us < float("inf")
    ]
    gains = [n for n in versions if n.verdict == "accepted" and root.us >= limits.gain * n.us]
    losses = [n for n in versions if n.parent is not None and n.us >= limits.loss * n.parent.us > 0]
    due = [(root, n, n) for n in sorted(gains, key=lambda n: n.us)]
    due += [(n, n.parent, n) for n in sorted(losses, key=_loss, reverse=True) if n.parent is not None]
    yield from due[: limits.most]


def _loss(node: Node) -> float:
    return node.us / node.parent.us if node.parent is not None else 0.0
