"""What an editor's one line says while a search runs, and what is said at its end."""

from __future__ import annotations

from accelopt_agent.candidate import Candidate
from accelopt_agent.events import CandidateTried, Finished, ProgressText, SuggestionFound, Usage
from accelopt_agent.suggestions.suggestion import Speedup, Suggestion
from accelopt_lsp.backend.protocol import SearchEnd, SearchProgress
from accelopt_lsp.backend.search import SearchProgressFormatter
from accelopt_profiling.gate.verdict import Verdict
from accelopt_profiling.measurement import Latency
from accelopt_profiling.quantity import Known


def suggestion(value: float) -> Suggestion:
    latency = Latency(1.0, 0.9, 1.1, Known.ESTIMATED)
    return Suggestion(
        id="1", run="r", file="k.py", kernel="silu", dialect="nki", base_hash="", base_text="", text="", diff="",
        origin="rule:widen", summary="Widen.", speedup=Speedup(value, 0.9 * value, 1.1 * value, Known.ESTIMATED),
        slow=latency, fast=latency, gate=Verdict(True), target="trn1", host="local",
    )  # fmt: skip


def test_the_line_says_how_far_it_is_and_what_is_tried() -> None:
    told = SearchProgressFormatter("silu", 40)
    first = told.of(ProgressText("silu: proving that it is right: Widen."))
    assert first == [SearchProgress("0 of 40 tried: proving that it is right: Widen.", 0, 0.0)]
    told.of(SuggestionFound(suggestion(2.0)))
    told.of(SuggestionFound(suggestion(1.5)))
    (later,) = told.of(ProgressText("silu: " + "very " * 40 + "long"))
    assert isinstance(later, SearchProgress)
    assert later.message.startswith("0 of 40 tried, best 2.0x est.: very very")
    assert later.message.endswith("...")
    assert len(later.message) < 120


def test_how_a_version_came_out_is_not_cut_and_its_last_step_is_told() -> None:
    chain = f"Load rows in full; then: Widen{' the tile' * 12}."
    event = CandidateTried(3, Candidate("silu", "", "rule:widen", chain), "faster", Latency())
    (told,) = SearchProgressFormatter("silu", 40).of(event)
    assert isinstance(told, SearchProgress)
    assert told.message.startswith("3 of 40 tried: faster, unproved: Widen the tile")
    short = Candidate("silu", "", "rule:b", "A; then: B; then: C.")
    assert short.last_step == "C (after 2 other steps)"


def test_the_end_says_what_the_best_is_worth() -> None:
    told = SearchProgressFormatter("silu", 6, remark="Nobody agreed that a model is asked.")
    none = told.of(Finished("r", "nothing faster found: all 6 candidates are tried", Usage(candidates=6)))
    said = "silu: nothing faster found: all 6 candidates are tried. Nobody agreed that a model is asked."
    assert none == [SearchEnd(0, said)]
    told.of(SuggestionFound(suggestion(2.0)))
    (end,) = SearchProgressFormatter.of(told, Finished("r", "1 suggestion", Usage()))
    assert isinstance(end, SearchEnd)
    assert end.message.startswith("silu: 1 suggestion; the best is 2.0x est. (1.8-2.2).")
