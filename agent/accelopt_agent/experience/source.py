"""Reads experience for one version of a kernel from the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from accelopt_agent.experience.experience import ExperienceItem, KernelExperience
from accelopt_agent.experience.policy import ExperiencePolicy, policy_named
from accelopt_agent.experience.rendering import experience_text, renamed_text
from accelopt_agent.experience.selection import choose_experience
from accelopt_agent.experience.short_change import short_change
from accelopt_agent.search.node import Node
from accelopt_agent.transfer.edit_transfer import transfer
from accelopt_memory.errors import MemoryUnavailableError
from accelopt_memory.features import KernelFeatures, kernel_features
from accelopt_memory.memory import Memory

#: So many of the nearest pairs are chosen from, and of so many pairs those policies that do not compare.
NEAREST, NEWEST = 48, 512
#: A pair whose slow side is less similar (0..1) is not told.
LEAST_ALIKE = 0.2
#: The most lines of a change that the coder is shown.
CODER_LINES = 14


class ExperienceSource:
    """Chooses experience by ``policy`` for versions of kernels on ``target``; for each version once."""

    def __init__(
        self, memory: Memory | None, target: str, policy: str | ExperiencePolicy = "ours", seed: int = 0
    ) -> None:
        self._memory, self._target, self._seed = memory, target, seed
        self.policy = policy_named(policy) if isinstance(policy, str) else policy
        self._known: dict[tuple[str, str | None], KernelExperience] = {}

    async def of(self, node: Node) -> KernelExperience:
        """Return the experience for a version; nothing where the memory cannot be read."""
        key = node.kernel.content_hash, node.measurement.bound
        if key not in self._known:
            self._known[key] = await asyncio.to_thread(self._read, node)
        return self._known[key]

    def planner_text(self, experience: KernelExperience) -> str:
        return experience_text(experience, self.policy.tokens)

    def _read(self, node: Node) -> KernelExperience:
        memory, policy = self._memory, self.policy
        if memory is None or policy.pick == "nothing":
            return KernelExperience()
        bound = node.measurement.bound
        try:
            features: KernelFeatures = kernel_features(node.text, node.kernel.name, bound)
            similar = memory.similar(features, NEAREST, LEAST_ALIKE)
            near = [m for m in similar if m.pair.fast_hash != node.kernel.content_hash]  # done already
            newest = [] if policy.pick == "expected" else memory.newest_pairs(features.dialect, NEWEST)
            failures = memory.failures_like(features) if policy.failures else []
            prior = memory.outcomes.prior(features.dialect)
        except (MemoryUnavailableError, ValueError, RecursionError):
            return KernelExperience()
        return choose_experience(policy, near, newest, failures, prior, bound, self._target, self._seed)


def coder_text(experience: KernelExperience, node: Node, plan: str, lines: int = CODER_LINES) -> str:
    """Return the change nearest to ``plan`` as it would read in the kernel of ``node``, as Markdown; "" where none of
    the items fits it."""
    for item in _nearest_first(experience.items, plan):
        pair = item.pair
        made = transfer(pair.slow_text, pair.fast_text, pair.kernel, node.text, node.kernel.name)
        if made is not None:
            change, left_out = short_change(node.text, made.text, lines)
            if change:
                return renamed_text(change, left_out, item)
    return ""


def _nearest_first(items: Sequence[ExperienceItem], plan: str) -> list[ExperienceItem]:
    """Return the items by how many words they share with the plan; those that share none are left out."""
    wanted = _words(plan)
    scored = [(len(wanted & _item_words(item)), -place, item) for place, item in enumerate(items)]
    return [item for shared, _, item in sorted(scored, key=lambda s: (-s[0], -s[1])) if shared]


def _item_words(item: ExperienceItem) -> set[str]:
    return _words(" ".join([item.summary, item.pair.lesson, *item.change]))


def _words(text: str) -> set[str]:
    return {
        w for w in "".join(c if c.isalnum() or c == "_" else " " for c in text.lower()).split() if len(w) > 3
    }
