"""Makes trials of proposals: rebased onto the original, and not known yet.

Left out of a proposer's answer is what a search has tried, or knows to fail.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accelopt_agent.candidate import THEN, Candidate
from accelopt_agent.search.node import Node
from accelopt_agent.syntax.fingerprint import file_fingerprint, rewrite_fingerprint
from accelopt_agent.syntax.lines import split_lines
from accelopt_profiling.kernels import Kernel, find_kernels
from accelopt_profiling.measurement import KernelMeasurement

#: Follows what was planned where the version is a repair.
REPAIRED = " (repaired)"


class VersionTexts:
    """Reads versions of ``base_text``: their fingerprints, and the kernel ``kernel`` in them."""

    def __init__(self, base_text: str, kernel: str) -> None:
        self.base_text, self.name = base_text, kernel

    def fingerprints(self, text: str) -> tuple[str, str]:
        """Return the fingerprints of the whole file and of the rewrite of the original (see ``fingerprint``).

        Raises:
            SyntaxError: the text does not parse.
        """
        return file_fingerprint(text), rewrite_fingerprint(self.base_text, text, self.name)

    def kernel(self, text: str, name: str = "") -> Kernel | None:
        """Return the kernel in ``text``, or the one called ``name``. None when it is gone."""
        return next((k for k in find_kernels(text).kernels if k.name == (name or self.name)), None)


def repeats(step: tuple[str, str]) -> bool:
    """Return whether a step (origin, summary) does the same wherever it is taken. What a model says in one sentence it
    may write in many ways."""
    return not step[0].startswith("model:")


@dataclass(frozen=True)
class Trial:
    """A ``candidate`` to be measured: it rewrites ``parent``; ``fingerprint`` identifies the rewrite of the
    original. It is ``remembered`` where the memory proposed it or a step before it, or is the reason why it is tried
    now."""

    candidate: Candidate
    parent: Node
    fingerprint: str
    remembered: bool = False

    @property
    def step(self) -> tuple[str, str]:
        return self.candidate.origin, self.candidate.summary

    @property
    def item(self) -> str:
        """What the outcomes of this rewrite are added up under."""
        return self.candidate.item or self.candidate.origin

    @property
    def repairs(self) -> bool:
        """It was written to repair a version that had failed. Rules repair nothing."""
        return self.parent.failure is not None and not self.candidate.origin.startswith("rule:")

    @property
    def composed(self) -> Candidate:
        """The candidate with the steps of its parent before its own.

        Its origin is the least trusted of all steps: what a model wrote any part of is never labelled as a rule's.
        """
        before = self.parent.candidate
        own = self.candidate.steps or (self.candidate.origin,)
        if before is None:
            return replace(self.candidate, steps=own)
        origins = (before.origin, self.candidate.origin)
        origin = next(
            (o for kind in ("model:", "memory:") for o in origins if o.startswith(kind)), origins[1]
        )
        summary = f"{before.summary.rstrip('.')}{THEN}{self.candidate.summary}"
        if self.repairs:  # the plan stays what it was
            summary = f"{before.summary.removesuffix(REPAIRED).rstrip('.')}{REPAIRED}"
        return replace(self.candidate, origin=origin, summary=summary, steps=before.steps + own)

    def moves(self, measured: KernelMeasurement) -> str:
        """Describe how the counters moved that the candidate expects to move, as one line; empty when it expects
        nothing."""
        parts = []
        for name, way in self.candidate.expects.items():
            before, after = self.parent.measurement.quantities.get(name), measured.quantities.get(name)
            if before is None or after is None or before.value is None or after.value is None:
                continue
            as_expected = after.value < before.value if way == "down" else after.value > before.value
            unexpected = "" if as_expected else f", expected {way}"
            parts.append(f"{name} {before.value:.6g} to {after.value:.6g}{unexpected}")
        return "; ".join(parts)


def goes_back(text: str, parent: Node) -> bool:
    """Return whether a rewrite of ``parent`` changes a named number against the way that a step before changed it, as a
    tile that was doubled and is halved again: what that leads to has a shorter way from the original."""
    ways = _ways(parent.text, text)
    at: Node | None = parent
    while ways and at is not None and at.parent is not None:
        before = _ways(at.parent.text, at.text)
        if any(before.get(name, way) != way for name, way in ways.items()):
            return True
        at = at.parent
    return False


def _ways(old: str, new: str) -> dict[str, bool]:
    """Return the named numbers (``BLOCK=64``, ``"BLOCK": 64``) that differ between two texts, and whether
    they grew."""
    before, after = (split_lines(text).texts for text in (old, new))
    ways: dict[str, bool] = {}
    for code, start, end, first, last in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if code == "replace" and end - start == last - first:
            for left, right in zip(before[start:end], after[first:last], strict=True):
                was, now = (dict(_NAMED_NUMBER.findall(line)) for line in (left, right))
                was = {n: v for n, v in _DEFAULTS.items() if n in now} | was
                changed = [n for n in was if n in now and was[n] != now[n]]
                ways |= {name: int(now[name]) > int(was[name]) for name in changed}
    return ways


#: What a launch that says nothing has (triton.Config).
_DEFAULTS = {"num_warps": "4", "num_stages": "3"}
_NAMED_NUMBER = re.compile(r"""(\w+)["']?\s*[=:]\s*(\d+)\b""")


def unified_diff(old: str, new: str, path: str) -> str:
    """Return the unified diff between two texts, with LF line ends and no mark for a missing final
    newline."""
    before, after = split_lines(old).texts, split_lines(new).texts
    name = path.replace("\\", "/").rpartition("/")[2] or "kernel.py"
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm="")
    return "".join(line + "\n" for line in lines)


@dataclass(frozen=True)
class Proposal:
    """A proposed ``trial``, and the fingerprint of its whole file."""

    trial: Trial
    file: str


class KnownRewrites:
    """All that was proposed in the search from ``root``, the steps that failed in it, and ``never_again``, the
    fingerprints of rewrites that were refused before it. What nothing remembered led to is compared with its like
    alone: a memory takes no rewrite and no step from the others."""

    def __init__(self, root: Node, texts: VersionTexts) -> None:
        self._texts = texts
        self.never_again: set[str] = set()
        self._seen = {(texts.fingerprints(root.text)[0], False)}
        self._failed_steps: set[tuple[tuple[str, str], bool]] = set()

    def read(self, candidates: Sequence[Candidate], node: Node) -> list[Proposal]:
        """Return the candidates as rewrites of the original, without those that do not parse or lead back. Depends on
        nothing that is known, so that answers may be read side by side."""
        return [trial for c in candidates if (trial := self._read(c, node)) is not None]

    def _read(self, candidate: Candidate, node: Node) -> Proposal | None:
        try:
            file, rewrite = self._texts.fingerprints(candidate.text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        if candidate.origin.startswith("rule:") and goes_back(candidate.text, node):
            return None
        remembered = node.remembered or candidate.origin.startswith("memory:")
        return Proposal(Trial(candidate, node, rewrite, remembered), file)

    def new_trials(self, answer: Sequence[Proposal]) -> list[Trial]:
        """Return those of an answer that are not known already. They are from now on."""
        return [p.trial for p in answer if self._is_new(p.trial, p.file)]

    def _is_new(self, trial: Trial, file: str) -> bool:
        if trial.fingerprint in self.never_again or self.fails(trial.step, trial.parent):
            return False
        if {(file, False), (file, trial.remembered)} & self._seen:
            return False
        self._seen.add((file, trial.remembered))
        return True

    def add_failed_step(self, step: tuple[str, str], version: Node) -> None:
        """Note that the step failed on ``version``: where that is a remembered one, this says nothing of others."""
        self._failed_steps.add((step, version.remembered))

    def fails(self, step: tuple[str, str], version: Node | None) -> bool:
        """Return whether the step is known to fail on ``version``."""
        remembered = version is not None and version.remembered
        return bool({(step, False), (step, remembered)} & self._failed_steps)
