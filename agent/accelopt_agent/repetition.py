"""Make a version again from its recorded steps: all of them in a text that has changed, or some of them in the same."""

from __future__ import annotations

from accelopt_agent.candidate import Candidate
from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.request import Repetition
from accelopt_agent.search.node import Node
from accelopt_agent.search.strategies.strategy import (
    AskProposer,
    CandidateMeasured,
    Capacity,
    ProposalsReceived,
    SearchStep,
    StepResult,
    TryCandidate,
    ValidateNode,
)
from accelopt_agent.suggestions.apply import edits_for
from accelopt_agent.suggestions.suggestion import VersionStep
from accelopt_agent.suggestions.text_edit import ApplyRefusal, apply_to_text
from accelopt_agent.transfer.proposer import repeat_rule
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.waiting import interruptible


class RepeatedSteps:
    """Proposes the next of the recorded steps, and the whole version where nothing that it changes has changed."""

    name = "recorded steps"

    def __init__(self, repetition: Repetition, target: str) -> None:
        self._repetition, self._target = repetition, target

    async def propose(self, node: Node) -> list[Candidate]:
        """Return one rewrite. Raises CostUnavailableError: the step does not apply."""
        return [await interruptible(self._rewrite, node)]

    def _rewrite(self, node: Node) -> Candidate:
        repetition, suggestion = self._repetition, self._repetition.suggestion
        if node.parent is None and repetition.whole:
            edits = edits_for(node.text, suggestion)
            if not isinstance(edits, ApplyRefusal):
                text = apply_to_text(node.text, edits)
                origin, summary = suggestion.origin, suggestion.summary
                return Candidate(suggestion.kernel, text, origin, summary, steps=suggestion.steps)
        if node.depth >= len(repetition.kept):
            raise _unrepeatable(
                "The steps of this version were not recorded one by one; optimize the kernel again."
            )
        return self._step(node, repetition.kept[node.depth])

    def _step(self, node: Node, number: int) -> Candidate:
        step: VersionStep = self._repetition.suggestion.way[number]
        text, kernel, measurement, summary = node.text, node.kernel, node.measurement, step.summary
        for origin in step.origins:
            kind, _, rule = origin.partition(":")
            if kind != "rule":
                raise _unrepeatable(
                    f"Step {number + 1} is no rule's ({origin}), and is repeated in an unchanged kernel only."
                )
            choice = repeat_rule(
                rule, text, kernel, measurement if text == node.text else None,
                hint=step.summary, target=self._target, everywhere=True,
            )  # fmt: skip
            if choice is None:
                left_out = "" if self._repetition.whole else " without the others"
                what = step.summary.rstrip(".")
                raise _unrepeatable(f"Step {number + 1} ({what}) does not apply to this text{left_out}.")
            text = choice.text
            kernel = next(k for k in find_kernels(text).kernels if k.name == kernel.name)
            summary = choice.summary if len(step.origins) == 1 else step.summary
        return Candidate(kernel.name, text, step.origins[-1], summary, steps=step.origins)


def _unrepeatable(why: str) -> CostUnavailableError:
    return CostUnavailableError("not-repeatable", why, lasting=True)


class RepeatedVersion:
    """The strategy that takes one step after the other, and has the last version checked where it is faster."""

    def __init__(self, root: Node, repetition: Repetition) -> None:
        self._root, self._at, self._origins = root, root, repetition.origins
        self._next: SearchStep | None = AskProposer(root, RepeatedSteps.name)

    def choose(self, free: Capacity) -> SearchStep | None:
        step = self._next
        kinds = {AskProposer: free.proposals, TryCandidate: free.measurements, ValidateNode: free.validations}
        if step is None or not kinds[type(step)]:
            return None
        self._next = None
        return step

    def observe(self, result: StepResult) -> None:
        if isinstance(result, ProposalsReceived):
            self._next = next((TryCandidate(trial) for trial in result.trials), None)
        elif isinstance(result, CandidateMeasured):
            self._at = node = result.node
            if self.unchecked() is not None:
                self._next = ValidateNode(node)
            elif node.failure is None and node.steps != self._origins:
                self._next = AskProposer(node, RepeatedSteps.name)

    def usable(self, name: str) -> bool:
        return True

    def best(self) -> Node:
        return self._at if self._at.verdict == "accepted" else self._root

    def unchecked(self) -> Node | None:
        node = self._at
        complete = node.steps == self._origins and node.clearly_faster and node.verdict is None
        return node if complete else None
