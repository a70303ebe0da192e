"""Whole redesigns come out of a search: answers written by hand, through the real client against a local server."""

from __future__ import annotations

from pathlib import Path

import pytest

from accelopt_agent.events import CandidateTried, Event, SuggestionFound
from accelopt_agent.model.settings import ModelSettings
from accelopt_agent.optimize import optimize
from accelopt_agent.request import Budget, OptimizeRequest
from accelopt_agent.simulated.serving import serving
from accelopt_agent.simulated.team import Question
from accelopt_agent.suggestions.apply import apply_to_text, edits_for, holds
from accelopt_profiling.hosts.local import LocalHost
from accelopt_profiling.kernels import find_kernels

FOLDER = Path(__file__).with_name("redesigns")

#: The target, the least that the redesign gains, and the kernels that are left.
REDESIGNS = {
    "attention": ("h100", 1.3, ["flash_kernel"]),
    "linear_gelu": ("h100", 1.5, ["linear_kernel"]),
    "layer_norm": ("h100", 1.1, ["layer_norm_kernel"]),
    "nki_rmsnorm": ("trn1", 1.1, ["rmsnorm"]),
    "nki_today_scale": ("trn2", 1.1, ["scale_shift"]),
}


async def searched(name: str, target: str, tmp_path: Path) -> list[Event]:
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    path = tmp_path / f"{name}.py"
    path.write_text(text, "utf-8")
    said = {
        role: (FOLDER / f"{name}.{kind}.txt").read_text("utf-8")
        for role, kind in (("planner", "plan"), ("coder", "answer"))
    }

    def answer(question: Question, count: int) -> str:
        return said.get(question.role or "", "I see nothing to change.")

    budget, sources = Budget(candidates=1, seconds=None), frozenset({"model"})
    request = OptimizeRequest(path, text, target, root=tmp_path, budget=budget, sources=sources, proved=True)
    host = LocalHost()
    try:
        with serving(answer, "recorded") as url:
            return [e async for e in optimize(request, host, None, model=ModelSettings(url, "recorded"))]
    finally:
        await host.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", REDESIGNS)
async def test_a_redesign_is_proved_and_can_be_applied(name: str, tmp_path: Path) -> None:
    target, least, kernels = REDESIGNS[name]
    events = await searched(name, target, tmp_path)
    suggestions = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
    assert suggestions, [
        (e.outcome, e.latency, e.detail) for e in events if isinstance(e, CandidateTried)
    ] or events
    best = suggestions[0]
    assert best.speedup.value >= least
    assert best.gate.accepted
    assert [k.name for k in find_kernels(best.text).kernels] == kernels
    edits = edits_for(best.base_text, best)
    assert isinstance(edits, list), edits
    applied = apply_to_text(best.base_text, edits)
    assert holds(applied, best.base_text, best.text)
    assert [e.outcome for e in events if isinstance(e, CandidateTried)] == ["faster"]
