"""``explain`` and ``runs``: what a search did, and why what it found is faster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command
from support.toy_search import RAISES, TEXT, WIDE, ToyCost, ToyGate, ToyProposer, request

from accelopt_agent.events import SuggestionFound
from accelopt_agent.optimize import drive
from accelopt_lsp.cli.terminal import print_markdown
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine


@pytest.fixture
async def searched(home: Path) -> str:
    """A finished search of a toy kernel in the memory; the id of its suggestion."""
    (home / "k.py").write_text(TEXT)
    search_request = replace(request(), file=examine(home / "k.py", TEXT))
    with Memory.open(Path(str(home / "memory.db"))) as memory:
        rules = [ToyProposer({**WIDE, **RAISES})]
        events = [
            e async for e in drive(search_request, ToyCost(), ToyGate(), memory, "toy", lambda meter: rules)
        ]
    return next(e.suggestion.id for e in events if isinstance(e, SuggestionFound))


def test_explain(accelopt: Command, home: Path, searched: str) -> None:
    explanation = accelopt("explain", searched, "--json").object
    assert list(explanation) == ["id", "explanation", "model", "usage", "steps"]
    (step,) = explanation["steps"]
    assert (step["origins"], step["version"]) == (["rule:wide"], searched)
    assert (step["before"]["us"], step["after"]["us"], step["after"]["known"]) == (100, 70, "estimated")
    assert (explanation["model"], explanation["usage"]) == (None, {"ledger": []})
    assert "No model is configured" in explanation["explanation"]
    assert "| time | 75-130 us | 52-93 us | -30 % | estimated |" in explanation["explanation"]
    page = accelopt("explain", searched, "--no-model").out
    assert "No model was asked" in page
    assert "|---" not in page  # it is rendered
    assert accelopt("explain", "nothing").code == 1


def test_an_explanation_is_wrapped_and_its_diff_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, line = "word " * 60, "+" + "x" * 300
    print_markdown(f"# Title\n\n- {words}\n\n````diff\n{line}\n```\n````\n\nlast\n")
    output = capsys.readouterr().out
    assert output.split().count("word") == 60
    assert f"\n{line}\n```\n" in output
    assert all(len(text) <= 100 for text in output.splitlines() if "x" not in text)
    assert output.rstrip().endswith("last")


def test_runs(accelopt: Command, home: Path, searched: str) -> None:
    listed = accelopt("runs", "--json").object["runs"]
    assert [run["kernel"] for run in listed] == ["kernel"]
    run = listed[0]
    assert (run["status"], run["reason"], run["suggestions"]) == ("finished", "1 suggestion", [searched])
    failed = [step for step in run["steps"] if step["outcome"].startswith("failed")]
    assert failed[0]["outcome"] == "failed: The kernel raised ValueError."
    assert failed[0]["latency"]["us"] is None
    assert accelopt("runs", "k.py", "--json").object["runs"] == listed
    assert "finished, " in accelopt("runs").out
    page = accelopt("runs", run["id"]).out
    assert "checked" in page
    assert searched in page
    assert accelopt("runs", "other.py").code == 1
    assert "neither a file nor the id" in accelopt("runs", "nothing").err
