"""Proposes rewrites from memory: applies checked pairs of similar kernels to this one."""

from __future__ import annotations

import difflib
import re

from accelopt_agent.candidate import THEN, Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.search.proposer import ProposerError
from accelopt_agent.syntax.kernel_change import kernel_changed
from accelopt_agent.transfer.edit_transfer import transfer
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Match, Pair
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import KernelMeasurement
from accelopt_profiling.waiting import interruptible

#: So many of the nearest pairs are tried for whether they fit, until so many have.
PAIRS_TRIED, MOST_FITTING = 64, 8
#: The lines of a pair's kernel times those of this one, summed over the pairs that are tried: a few seconds' work.
MOST_WORK = 400_000
#: What a summary says of the pair that its change came from.
_FROM = re.compile(r"( \((carried over|carried over in part|as) (from|in) [^()]*\))+(?=\.?$)")
#: A pair whose slow side is less similar (0..1) is not tried.
LEAST_ALIKE = 0.15


class MemoryProposer:
    """Applies the checked pairs that fit the kernel, whether a person accepted them or not yet; those whose slow side
    is most similar to it are tried first.

    A pair that rules made is repeated with those rules, all in one candidate; besides, the edit itself is carried over
    (``edit_transfer``), which also works for pairs that a model or a person wrote. Of pairs whose edits say the same
    the most similar one is tried.
    """

    name = "memory"

    def __init__(self, memory: Memory, *, pairs: int = PAIRS_TRIED, most: int = MOST_FITTING) -> None:
        self._memory, self._pairs, self._most = memory, pairs, most

    async def propose(self, node: Node) -> list[Candidate]:
        return await interruptible(self._propose, node)

    def _propose(self, node: Node) -> list[Candidate]:
        try:
            features = kernel_features(node.text, node.kernel.name, node.measurement.bound)
            matches = self._memory.similar(features, self._pairs, LEAST_ALIKE)
        except MemoryUnavailableError as error:
            raise ProposerError(str(error), final=True) from error
        except (ValueError, RecursionError) as error:
            raise ProposerError(
                f"The memory cannot tell what {node.kernel.name} looks like: {error}"
            ) from error
        candidates: dict[str, Candidate] = {}
        fitting: set[str] = set()
        work = 0
        for match in matches:
            work += _lines(match.pair.slow_text, match.pair.kernel) * _lines(node.text, node.kernel.name)
            if work > MOST_WORK:
                break
            if match.pair.example or (match.pair.edit and match.pair.edit in fitting):
                continue
            offers = [c for c in (repeat_rules(match, node), transfer_edit(match, node)) if c is not None]
            for candidate in offers:
                if candidate.text != node.text:
                    candidates.setdefault(candidate.text, candidate)
            if offers:
                fitting.add(match.pair.edit or match.pair.id)
            if len(fitting) == self._most:
                break
        return list(candidates.values())


def _lines(text: str, kernel: str) -> int:
    return next((k.end_line - k.line + 1 for k in find_kernels(text).kernels if k.name == kernel), 0)


def repeat_rules(match: Match, node: Node) -> Candidate | None:
    """Apply the rules that made the pair, in their order, to this kernel, leaving out those that do not apply.

    None when the pair was not made by rules, or none of them applies.
    """
    pair = match.pair
    if not pair.steps or not all(step.startswith("rule:") for step in pair.steps):
        return None
    summaries = pair.summary.split(THEN)
    hints = summaries if len(summaries) == len(pair.steps) else [pair.summary] * len(pair.steps)
    text, measurement, kernel = node.text, node.measurement, node.kernel
    expects: dict[str, str] = {}
    done: list[tuple[str, str]] = []
    current: KernelMeasurement | None = measurement
    for step, hint in zip(pair.steps, hints, strict=True):
        choice = repeat_rule(step.removeprefix("rule:"), text, kernel=kernel, measurement=current, hint=hint)
        if choice is not None:
            text, current = choice.text, None
            kernel = next(k for k in find_kernels(text).kernels if k.name == kernel.name)
            expects |= choice.expects
            done.append((step, choice.summary))
    if not done:
        return None
    steps_done = THEN.join(s.rstrip(".") for _, s in done)
    summary = f"{steps_done} (as in {_kind(pair)} change of {pair.kernel})"
    steps = tuple(step for step, _ in done)
    item = f"sequence:{','.join(steps)}" if len(steps) > 1 else steps[0]
    return Candidate(
        kernel.name,
        text,
        origin=f"memory:{pair.id}",
        summary=summary,
        expects=expects,
        steps=steps,
        item=item,
    )


def repeat_rule(
    rule: str,
    text: str,
    kernel: Kernel,
    measurement: KernelMeasurement | None,
    hint: str,
    target: str = "",
    everywhere: bool = False,
) -> Candidate | None:
    """Apply the rule to the kernel, at one place or also ``everywhere`` at once.

    Of several rewrites, return the one whose summary is most similar to ``hint``.
    """
    from accelopt_agent.rules import catalogue

    try:
        choices = catalogue.apply(rule, text, kernel, measurement, target, everywhere)
    except (KeyError, LookupError, catalogue.RuleError):
        return None  # a rule of another version of the catalogue, or one that does not fit here
    if not choices:
        return None
    alike = [difflib.SequenceMatcher(None, c.summary, hint).ratio() for c in choices]
    return choices[alike.index(max(alike))]


def transfer_edit(match: Match, node: Node) -> Candidate | None:
    """Carry the pair's edit over. None where it does not fit, or changes other kernels of the file alone."""
    pair = match.pair
    result = transfer(
        pair.slow_text, pair.fast_text, pair_kernel=pair.kernel, text=node.text, kernel=node.kernel.name
    )
    if result is None or not kernel_changed(node.text, result.text, node.kernel.name):
        return None
    origin = f"memory:{pair.id}"
    summary = _carried(pair, result.whole)
    return Candidate(
        node.kernel.name,
        result.text,
        origin=origin,
        summary=summary,
        expects={},
        steps=(origin,),
        item=f"edit:{pair.edit or pair.id}",
    )


def _carried(pair: Pair, whole: bool) -> str:
    how = "carried over" if whole else "carried over in part"
    return f"{_FROM.sub('', pair.summary).rstrip('.')} ({how} from {_kind(pair)} change of {pair.kernel})"


def _kind(pair: Pair) -> str:
    return "a checked" if pair.checked else "an imported" if pair.imported else "an accepted"
