"""Measures what prompts are worth: a simulated team whose skill depends on what it is told, asked by any version.

``python attentive.py serve SEED`` serves the team and prints its address. ``python attentive.py search ADDRESS TARGET
FILE`` searches FILE with the model alone and prints one JSON object; it uses nothing that an older version lacks, so
that the rooms of another commit on PYTHONPATH can ask the same team with their own prompts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelopt_agent.simulated.team import SimulatedTeam

#: The chances of a coder's fault, added up: a slip of its own, a function of the dialect that it is not told, a result
#: whose definition it is not told. Those of a repair: by itself, and each of what helps.
SLIP, UNKNOWN_FUNCTION, UNKNOWN_RESULT = 0.15, 0.3, 0.2
REPAIR, TOLD_FUNCTION, TOLD_RESULT = 0.3, 0.25, 0.25
#: The chance that a plan is a rewrite of the catalogue, and how many lots one has that reads like a change which the
#: memory says helped a like kernel: one that has so large a share of its words.
KNOWS = 0.5
LOTS, ALIKE = 6, 0.6

#: How many versions one search may try, by the strategy that goes on asking while nothing gains.
CANDIDATES = 10
_CALLED = re.compile(r"\b(?:nl|nisa|tl)\.[\w.]+")
_HELPED = re.compile(r"^- (.*?): \d+\.\d+x \(", re.MULTILINE)
_REFERENCE = re.compile(r"^\s*def (?:reference|forward)\b", re.MULTILINE)


def attentive_team(seed: int) -> SimulatedTeam:
    """Return a team at temperature 0, the same prompt getting the same answer. It plans no rewrite that the prompt
    lists as tried, and sooner one like those that the prompt says helped kernels like this one; its coder breaks less
    where the prompt names the functions that the change calls anew and shows what is computed, and its debugger repairs
    more."""
    from accelopt_agent.simulated.edit import Edit
    from accelopt_agent.simulated.team import Question, SimulatedTeam, Skill

    class AttentiveTeam(SimulatedTeam):
        def draws(self, question: Question, count: int) -> Random:
            told = hashlib.sha256(f"{question.system}\0{question.user}".encode()).hexdigest()
            return Random(f"{self.seed} {told}")

        def ideas(self, question: Question, edits: list[Edit]) -> list[Edit]:
            tried = " ".join(_HELPED.sub("", question.user).split())
            helped = [set(said.lower().split()) for said in _HELPED.findall(question.user)]
            left = [edit for edit in edits if _summary(edit) not in tried]
            return [edit for edit in left for _ in range(LOTS if _like_any(edit, helped) else 1)]

        def skill_for(self, question: Question, edit: Edit | None = None) -> Skill:
            told = f"{question.system}\n{question.user}"
            result = bool(_REFERENCE.search(told))
            new = set() if edit is None else _called(edit.changes) - set(_CALLED.findall(edit.before))
            functions = all(name in told for name in new)
            breaks = SLIP + UNKNOWN_FUNCTION * (not functions) + UNKNOWN_RESULT * (not result)
            listed = len(set(_CALLED.findall(told))) > len(set(_CALLED.findall("\n".join(question.blocks))))
            repairs = REPAIR + TOLD_FUNCTION * listed + TOLD_RESULT * result
            return Skill(KNOWS, breaks, 0.5, repairs)

    return AttentiveTeam(seed=seed)


def _called(changes: tuple[tuple[str, ...], ...]) -> set[str]:
    return {name for lines in changes for line in lines for name in _CALLED.findall(line)}


def _like_any(edit: Any, helped: list[set[str]]) -> bool:
    """Return whether what was planned has most words of one of the sentences in ``helped``."""
    words = set(_words(edit).lower().split())
    return any(len(words & other) >= ALIKE * len(other) for other in helped)


def _summary(edit: Any) -> str:
    """Return the beginning of the plan, as it stands in lists of what was tried."""
    return _words(edit)[:40]


def _words(edit: Any) -> str:
    said: str = edit.plan.partition("\n")[2]
    return " ".join(said.split()).replace("`", "")


def serve(seed: int) -> None:
    """Serve the team until standard input ends."""
    from accelopt_agent.simulated.serving import serving

    with serving(attentive_team(seed).answer, "attentive") as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        sys.stdin.read()


async def search(url: str, target: str, path: Path) -> dict[str, Any]:
    """Return what a search with the model alone came to: its speedup, calls, tokens and seconds."""
    from accelopt_agent.events import CandidateTried, Finished, SuggestionFound
    from accelopt_agent.model.settings import ModelSettings
    from accelopt_agent.optimize import optimize
    from accelopt_agent.request import Budget, OptimizeRequest
    from accelopt_profiling.hosts.local import LocalHost

    request = OptimizeRequest(
        path, path.read_text("utf-8"), target, root=path.parent, checked=True, sources=frozenset({"model"}),
        budget=Budget(candidates=CANDIDATES, seconds=None), strategy="tree", calls=1, parallel=1,
    )  # fmt: skip
    found: dict[str, Any] = {"speedup": 1.0, "tried": 0, "failed": 0}
    host, started = LocalHost(), time.monotonic()
    try:
        async for event in optimize(request, host, None, model=ModelSettings(url, "attentive")):
            if isinstance(event, SuggestionFound):
                found["speedup"] = max(found["speedup"], event.suggestion.speedup.value)
            elif isinstance(event, CandidateTried):
                found["tried"] = event.number
                found["failed"] += event.outcome == "failed"
            elif isinstance(event, Finished):
                usage = event.usage
                found |= {"calls": usage.model_calls, "in": usage.tokens_in, "out": usage.tokens_out}
    finally:
        await host.close()
    return {**found, "seconds": time.monotonic() - started}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        sys.stdout.write(f"{json.dumps(asyncio.run(search(sys.argv[2], sys.argv[3], Path(sys.argv[4]))))}\n")
