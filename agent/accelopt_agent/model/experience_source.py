"""Reads experience for one version of a kernel from the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from accelopt_agent.experience.experience import ExperienceItem, KernelExperience
from accelopt_agent.experience.selection import ExperiencePolicy, choose_experience, policy_named
from accelopt_agent.experience.short_change import short_change
from accelopt_agent.model.experience_text import experience_text, renamed_text
from accelopt_agent.model.role_context import kernel_alone
from accelopt_agent.model.settings import Share
from accelopt_agent.search.node import Node
from accelopt_agent.transfer.edit_transfer import transfer
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.features import kernel_features
from accelopt_memory.memory import Memory
from accelopt_memory.records import Pair
from accelopt_profiling.waiting import interruptible

#: So many of the nearest pairs are chosen from, and of so many pairs those policies that do not compare.
NEAREST, NEWEST = 48, 512
#: A pair whose slow side is less similar (0..1) is not told.
LEAST_ALIKE = 0.2
#: The most lines of a change that the coder is shown.
CODER_LINES = 14


class ExperienceSource:
    """Chooses experience by ``policy`` for versions of kernels on ``target``.

    ``within`` is the folder whose code a model may be shown: of a pair from elsewhere no line and no lesson is told
    (None: any may be). With ``share`` "kernel" no line outside of a kernel is shown.
    """

    def __init__(
        self,
        memory: Memory | None,
        target: str,
        policy: str | ExperiencePolicy = "ours",
        *,
        within: Path | None = None,
        share: Share = "file",
        seed: int = 0,
    ) -> None:
        self._memory, self._target, self._seed = memory, target, seed
        self._within, self.share = within.resolve() if within else None, share
        self.policy = policy_named(policy) if isinstance(policy, str) else policy

    async def of(self, node: Node) -> KernelExperience:
        """Return the experience for a version, with what this search checked so far; nothing where the memory cannot be
        read."""
        return await interruptible(self._read, node)

    def planner_text(self, experience: KernelExperience) -> str:
        return experience_text(experience, self.policy.tokens)

    def coder_text(self, experience: KernelExperience, node: Node, plan: str) -> str:
        """Return the change nearest to ``plan`` as it would read in the kernel of ``node``, as Markdown; "" where none
        of the items fits it."""
        return coder_text(experience, node, plan, share=self.share)

    def _read(self, node: Node) -> KernelExperience:
        memory, policy = self._memory, self.policy
        if memory is None or policy.pick == "nothing":
            return KernelExperience()
        bound = node.measurement.bound
        try:
            features = kernel_features(node.text, node.kernel.name, bound)
            similar = memory.similar(features, NEAREST, LEAST_ALIKE)
            own = node.root.kernel.content_hash  # what this search checked is listed with its versions
            near = [
                m for m in similar
                if m.pair.fast_hash != node.kernel.content_hash and not (m.pair.checked and m.pair.slow_hash == own)
            ]  # fmt: skip
            newest = [] if policy.pick == "expected" else memory.newest_pairs(features.dialect, NEWEST)
            failures = memory.failures_like(features) if policy.failures else []
            prior = memory.outcomes.prior(features.dialect)
        except (MemoryUnavailableError, ValueError, RecursionError):
            return KernelExperience()
        chosen = choose_experience(policy, near, newest, failures, prior, bound, self._target, self._seed)
        return replace(chosen, items=tuple(self._permitted(item) for item in chosen.items))

    def _permitted(self, item: ExperienceItem) -> ExperienceItem:
        """Return the item without what the model may not be shown."""
        pair = item.pair
        if self._may_show(pair):
            if self.share == "file":
                return item
            slow, fast = (kernel_alone(text, pair.kernel) for text in (pair.slow_text, pair.fast_text))
            change, left_out = short_change(slow, fast)
            return replace(item, change=change, left_out=left_out)
        return replace(item, pair=replace(pair, lesson=""), change=(), left_out=0)

    def _may_show(self, pair: Pair) -> bool:
        if self._within is None:
            return True
        file = Path(pair.file)
        if file.is_absolute():
            return file.resolve().is_relative_to(self._within)
        return self._memory is not None and self._memory.path.resolve().is_relative_to(self._within)


def coder_text(
    experience: KernelExperience, node: Node, plan: str, lines: int = CODER_LINES, share: Share = "file"
) -> str:
    """Return the change nearest to ``plan`` as it would read in the kernel of ``node``, as Markdown; "" where none of
    the items fits it."""
    for item in _nearest_first([i for i in experience.items if i.change], plan):
        pair = item.pair
        result = transfer(pair.slow_text, pair.fast_text, pair.kernel, node.text, node.kernel.name)
        if result is not None:
            before, after = node.text, result.text
            if share == "kernel":
                before, after = (kernel_alone(text, node.kernel.name) for text in (before, after))
            change, left_out = short_change(before, after, lines)
            if change:
                return renamed_text(change, left_out, item)
    return ""


def _nearest_first(items: Sequence[ExperienceItem], plan: str) -> list[ExperienceItem]:
    """Return the items by how many words they share with the plan. Those that share none are left out."""
    words = _words(plan)
    scored = [(len(words & _item_words(item)), -place, item) for place, item in enumerate(items)]
    return [item for shared, _, item in sorted(scored, key=lambda s: (-s[0], -s[1])) if shared]


def _item_words(item: ExperienceItem) -> set[str]:
    return _words(" ".join([item.summary, item.pair.lesson, *item.change]))


def _words(text: str) -> set[str]:
    return {
        w for w in "".join(c if c.isalnum() or c == "_" else " " for c in text.lower()).split() if len(w) > 3
    }
