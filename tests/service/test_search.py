"""What an editor's one line says while a search runs, and what is said at its end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support.nki_kernels import SILU

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import (
    BaselineMeasured,
    CandidateJudged,
    CandidateTried,
    Finished,
    ModelSkipped,
    ProgressText,
    SuggestionFound,
    Usage,
)
from accelopt_agent.model.editor_request import no_models
from accelopt_agent.search.control import SearchControl
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_lsp.features.search_line import SearchLine, SearchProgress
from accelopt_lsp.service.protocol import FileRequest, SearchRequest
from accelopt_lsp.service.search import optimize_request, search_events
from accelopt_lsp.settings.load import Settings, load_settings
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import KernelMeasurement, Latency
from accelopt_profiling.quantity import Known


def suggestion(value: float) -> Suggestion:
    latency = Latency(1.0, 0.9, 1.1, Known.ESTIMATED)
    return Suggestion(
        id="1", run="r", file="k.py", kernel="silu", dialect="nki", base_hash="", base_text="", text="", diff="",
        origin="rule:widen", summary="Widen.", speedup=Speedup(value, 0.9 * value, 1.1 * value, Known.ESTIMATED),
        slow=latency, fast=latency, gate=Verdict(True), target="trn1", host="local",
    )  # fmt: skip


def test_the_line_says_how_far_it_is_and_what_is_tried() -> None:
    seconds = iter([100.0, 134.2, 225.0])
    formatter = SearchLine("silu", 40, lambda: next(seconds))
    first = formatter.of(ProgressText("silu: checking, comparing outputs: Widen."))
    assert first is not None
    assert str(first) == "0 of 40 tried in 34 s: checking, comparing outputs: Widen."
    assert first.share == 0.0
    formatter.of(SuggestionFound(suggestion(2.0)))
    formatter.of(SuggestionFound(suggestion(1.5)))
    later = formatter.of(ProgressText("silu: " + "very " * 40 + "long"))
    assert later is not None
    assert str(later).startswith("0 of 40 tried in 2 min 5 s, best 2.0x est.: very very")
    assert str(later).endswith("...")
    assert len(str(later)) < 130


def test_a_better_version_without_a_verdict_is_said_to_be_unproved() -> None:
    formatter = SearchLine("silu", 40, lambda: 0.0)

    def tried(number: int, us: float) -> tuple[Candidate, SearchProgress]:
        candidate = Candidate("silu", f"t{number}", "rule:widen", "Widen.")
        latency = Latency(us, us, us, Known.ESTIMATED)
        progress = formatter.of(CandidateTried(number, candidate, outcome="faster", latency=latency))
        assert progress is not None
        return candidate, progress

    measured = KernelMeasurement(
        "silu", "nki", "trn1", "local", latency=Latency(8.0, 8.0, 8.0, Known.ESTIMATED)
    )
    formatter.of(BaselineMeasured("silu", measured))
    _, progress = tried(1, 4.0)
    assert (progress.best, progress.unproved) == ("", "2.0x est.")
    fast, progress = tried(2, 2.0)
    assert "4.0x est. not proved" in str(progress)
    refused = formatter.of(CandidateJudged(fast, Verdict(False)))
    assert refused is not None
    assert refused.unproved == "2.0x est."
    formatter.of(SuggestionFound(suggestion(3.0)))
    asked = formatter.of(ProgressText("silu: asking the planner (about 3,200 tokens)", tokens=12400))
    assert asked is not None
    assert (asked.best, asked.unproved, asked.tokens) == ("3.0x est.", "", 12400)
    assert "best 3.0x est., 12,400 tokens: asking the planner" in str(asked)


def test_how_a_version_came_out_is_not_cut_and_its_last_step_is_told() -> None:
    chain = f"Load rows in full; then: Widen{' the tile' * 12}."
    event = CandidateTried(3, Candidate("silu", "", "rule:widen", chain), "faster", Latency())
    progress = SearchLine("silu", 40).of(event)
    assert progress is not None
    assert ": faster, unchecked: Widen the tile" in str(progress)
    assert str(progress).startswith("3 of 40 tried in ")
    short = Candidate("silu", "", "rule:b", "A; then: B; then: C.")
    assert short.last_step == "C (after 2 other steps)"


def test_the_end_says_what_the_best_is_worth() -> None:
    formatter = SearchLine("silu", 6)
    formatter.of(ModelSkipped("Nobody agreed that a model is asked."))
    none = formatter.end(
        Finished("r", "nothing faster found: all 6 candidates are tried", Usage(candidates=6))
    )
    sentence = "silu: nothing faster found: all 6 candidates are tried. Nobody agreed that a model is asked."
    assert none == sentence
    formatter.of(SuggestionFound(suggestion(2.0)))
    end = formatter.end(Finished("r", "1 suggestion", Usage()))
    assert end.startswith("silu: 1 suggestion; the best is 2.0x est. (1.8-2.2).")


def test_what_was_not_checked_is_said_at_the_end() -> None:
    versions = tuple(
        CandidateTried(
            n,
            Candidate("silu", f"t{n}", "rule:widen", f"Widen {n}."),
            "faster",
            Latency(n, n, n, Known.ESTIMATED),
        )
        for n in (3, 5)
    )
    event = Finished("r", "no suggestion so far: cancelled", Usage(), ending="stopped", unchecked=versions)
    end = SearchLine("silu", 40).end(event)
    assert "not checked yet: est. 3 us by Widen 3 and 1 more." in end
    assert end.endswith("Resume the search to continue it.")


def test_a_search_heeds_what_the_settings_of_its_file_say(tmp_path: Path) -> None:
    flags = {
        "limits.seconds": 7.0,
        "search.candidates": 3,
        "search.sources": "rules,model",
        "target.nki": "trn2",
    }
    settings = load_settings(tmp_path, environ={}, flags=flags)
    file = FileRequest(examine(tmp_path / "k.py", SILU, project_root=tmp_path), settings)
    search_request = optimize_request(file, "silu", SearchRequest(ask_model=False))
    assert (search_request.limits, search_request.limits.seconds) == (settings.job_limits, 7.0)
    assert (search_request.budget.candidates, search_request.target) == (3, "trn2")
    assert search_request.plan.sources == {"rules"}


@pytest.mark.parametrize("stage", ["the host", "the model's key"])
async def test_a_search_that_has_not_begun_is_stopped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    reached, over, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def key(*arguments: Any, **options: Any) -> tuple[None, str]:
        if stage == "the model's key":
            loop.call_soon_threadsafe(reached.set)
            over.wait(60)
        return None, ""

    class Hosts:
        def known_problem(self, file: FileRequest, kernel: str) -> None:
            return None

        async def connected(self, settings: Settings) -> None:
            reached.set()
            await asyncio.Event().wait()

    monkeypatch.setattr("accelopt_lsp.service.search.resolve_team", key)
    file = FileRequest(examine(tmp_path / "k.py", SILU), load_settings(tmp_path, environ={}))
    control = SearchControl()
    events = search_events(
        file,
        "silu",
        SearchRequest(),
        Hosts(),
        None,
        no_models,
        control,
        in_editor=True,  # type: ignore[arg-type]
    )
    reading = asyncio.ensure_future(anext(events))
    await asyncio.wait_for(reached.wait(), 60)
    control.stop("cancelled")
    end = await asyncio.wait_for(reading, 60)
    assert end == Finished("", "nothing was tried: cancelled", Usage(), ending="stopped")
    assert SearchLine("silu", 40).end(end) == "silu: nothing was tried: cancelled."
    over.set()
