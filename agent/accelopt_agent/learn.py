"""Makes a suggestion of a person's own pair of versions, by the same gate and profiler as a search."""

from __future__ import annotations

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostEvaluator, GateEvaluator
from accelopt_agent.request import OptimizeRequest
from accelopt_agent.search.node import Node
from accelopt_agent.search.trial_result import suggestion_for
from accelopt_agent.speedup import direction, speedup
from accelopt_agent.suggestions.accept import accept, items_of
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_agent.syntax.fingerprint import rewrite_fingerprint
from accelopt_agent.syntax.lines import share_kept
from accelopt_memory.memory import Memory
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.plain import from_plain

#: The origin of a pair that a person wrote.
PERSON = "person"


class NotLearnedError(Exception):
    """A pair that teaches nothing: the message says why, as one sentence.

    ``code`` is the gate's reason or "slower", "unknown-time", "no-change".
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def changed_kernel(slow: str, fast: str, kernel: str | None = None) -> str:
    """Return the kernel that differs between two texts, or else the only one that is launched.

    Raises:
        NotLearnedError: none differs, several do, or ``kernel`` is in neither.
    """
    before = {k.name: k for k in find_kernels(slow).kernels}
    after = {k.name: k.content_hash for k in find_kernels(fast).kernels}
    both = [name for name in before if name in after and kernel in (None, name)]
    if not both:
        raise NotLearnedError("no-change", f"The two versions have no kernel {kernel or ''} in common.")
    launched = [name for name in both if not before[name].device_function]
    changed = [name for name in launched if before[name].content_hash != after[name]]
    candidates = changed or launched
    if len(candidates) != 1:
        raise NotLearnedError("no-change", f"Name one kernel with --kernel: {', '.join(candidates or both)}.")
    return candidates[0]


async def learned_suggestion(
    request: OptimizeRequest,
    fast: str,
    cost: CostEvaluator,
    gate: GateEvaluator,
    memory: Memory,
    host: str,
    summary: str,
) -> Suggestion:
    """Check and time ``fast`` beside the request's own text and return it as a suggestion of a person, its evidence
    stored. ``request.kernel`` is the kernel that it changes.

    Raises:
        NotLearnedError: the gate refused it, or its time is not known or higher.
        CostUnavailableError, EvaluatorLostError: nothing could be found out.
    """
    name = request.kernel or ""
    if rewrite_fingerprint(request.text, fast, name) == rewrite_fingerprint(request.text, request.text, name):
        raise NotLearnedError("no-change", f"The two versions of {name} do the same by the same steps.")
    verdict, receipt = await gate.check(fast, name)
    if not verdict.accepted:
        reason = verdict.reasons[0] if verdict.reasons else None
        why = f"The gate refused it: {reason.message}" if reason else "The gate refused it."
        raise NotLearnedError(reason.code if reason else "refused", why)
    kernels = {k.name: k for k in find_kernels(request.text).kernels}
    original = await cost.baseline()
    if (refusal := original.refusal(name)) is not None:
        raise NotLearnedError(refusal.code, f"The slower version has no time: {refusal.message}")
    baseline = next(m for m in original.kernels if m.name == name)
    root = Node(request.text, kernels[name], baseline)
    measured = await cost.cost(fast, name)
    way = direction(baseline.latency, measured.latency, request.target)
    if way is None or speedup(baseline.latency, measured.latency, request.target) is None:
        raise NotLearnedError("unknown-time", "The time of one of the versions is not known.")
    if way == "slower":
        raise NotLearnedError("slower", f"The second version of {name} is slower on {request.target}.")
    after = {k.name: k for k in find_kernels(fast).kernels}
    candidate = Candidate(name, fast, PERSON, summary, steps=(PERSON,))
    fingerprint = rewrite_fingerprint(request.text, fast, name)
    node = Node(
        fast,
        after[name],
        measurement=measured,
        candidate=candidate,
        parent=root,
        step=(PERSON, summary),
        fingerprint=fingerprint,
        clearly_faster=way == "faster",
    )
    memory.add_receipt(receipt)
    return suggestion_for(request, node, verdict=verdict, run="", host=host)


#: A person's version that has this much (0..1) of the lines that a suggestion changed is that suggestion, edited.
LEAST_OF_SUGGESTION = 0.5


def accept_learned(memory: Memory, learned: Suggestion) -> str:
    """Store a person's pair and return its id.

    A suggestion that the person had edited into it is noted as edited, and no longer offered, all in one transaction.
    Raises MemoryUnavailableError.
    """
    with memory.transaction():
        pair = accept(memory, learned)
        for stored in memory.suggestions(file=learned.file, kernel_hash=learned.base_hash):
            if stored.id == learned.id or stored.state == "rejected":
                continue
            offered = from_plain(Suggestion, stored.body)
            if (
                offered.kernel == learned.kernel
                and (share_kept(offered.base_text, offered.text, learned.text) or 0.0) >= LEAST_OF_SUGGESTION
            ):
                items = items_of(memory, offered, None)
                memory.outcomes.mark(
                    sorted(items), offered.base_hash, offered.target, accepted=True, edited=True
                )
                memory.set_suggestion_state(offered.id, "accepted")
    return pair
