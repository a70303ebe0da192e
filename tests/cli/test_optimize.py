"""``optimize``, then ``accept`` and ``reject``, from a real search to the changed file and the pair in the memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.command import Command
from support.nki_kernels import SILU

from accelopt_lsp.models import configured_model
from accelopt_lsp.search_plan import budget_of
from accelopt_lsp.settings.load import load_settings
from accelopt_memory.memory import Memory
from accelopt_profiling.hosts.host import HostFacts, HostUnreachableError, JobMessage
from accelopt_profiling.jobs import Job


@pytest.fixture
def searched(accelopt: Command, home: Path) -> dict[str, object]:
    """The object that a short search prints."""
    (home / "silu.py").write_text(SILU)
    ended = accelopt("optimize", "silu.py", "--no-model", "--budget", "3", "--json")
    assert ended.code == 0, ended.err
    report: dict[str, object] = ended.object
    return report


@pytest.mark.slow
def test_from_the_search_to_the_memory(accelopt: Command, home: Path, searched: dict[str, object]) -> None:
    assert list(searched) == ["file", "run", "baseline", "suggestions", "tried", "usage"]
    assert searched["file"] == "silu.py"
    assert searched["tried"] in (1, 2, 3)
    suggestions = searched["suggestions"]
    assert isinstance(suggestions, list)
    first = suggestions[0]
    assert list(first) == ["id", "kernel", "speedup", "latency", "origin", "summary", "diff", "gate"]
    assert list(first["speedup"]) == ["value", "low", "high", "known"]
    assert first["speedup"]["value"] > 1
    assert first["speedup"]["known"] == "estimated"
    assert first["gate"]["accepted"] is True
    assert first["origin"].startswith("rule:")
    values = [suggestion["speedup"]["value"] for suggestion in suggestions]
    assert values == sorted(values, reverse=True), "best first"

    edited = "# a line added meanwhile\n" + SILU
    (home / "silu.py").write_text(edited)
    acceptance = accelopt("accept", first["id"], "--json")
    assert acceptance.code == 0, acceptance.err
    assert acceptance.object["applied"] is True
    changed = (home / "silu.py").read_text()
    assert changed != edited
    assert changed.startswith("# a line added meanwhile\n")
    again = accelopt("accept", first["id"], "--json")
    assert (again.code, again.object["applied"], again.object["pair"]) == (
        0,
        False,
        acceptance.object["pair"],
    )
    stats = accelopt("memory", "stats", "--json").object
    assert (stats["pairs"], stats["runs"]) == (1, 1)
    assert stats["receipts"] >= 1
    assert accelopt("profile", "silu.py", "--json").object["kernels"][0]["correctness"]["status"] == "passed"


@pytest.mark.slow
def test_a_suggestion_that_no_longer_fits_changes_nothing(
    accelopt: Command, home: Path, searched: dict[str, object]
) -> None:
    suggestions = searched["suggestions"]
    assert isinstance(suggestions, list)
    changed = SILU.replace("nl.sigmoid(tile)", "nl.tanh(tile)")
    (home / "silu.py").write_text(changed)
    refused = accelopt("accept", suggestions[0]["id"], "--json")
    assert refused.code == 1
    assert "was not changed" in refused.object["error"]["message"]
    assert (home / "silu.py").read_text() == changed
    assert accelopt("memory", "stats", "--json").object["pairs"] == 0

    rejected = accelopt("reject", suggestions[0]["id"], "--reason", "unreadable", "--json")
    assert rejected.code == 0
    with Memory.open(home / "memory.db", read_only=True) as memory:
        assert [r.reason for r in memory.rejected()] == ["unreadable"]


def test_an_unknown_suggestion_is_a_no(accelopt: Command) -> None:
    for command in ("accept", "reject"):
        ended = accelopt(command, "nothing", "--json")
        assert (ended.code, ended.object["error"]["exit"]) == (1, 1)


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        ("def (", 2, "does not parse"),
        ("x = 1\n", 1, "no kernel"),
    ],
    ids=["syntax", "no kernel"],
)
def test_what_cannot_be_searched_is_said_at_once(
    accelopt: Command, home: Path, content: str, code: int, says: str
) -> None:
    (home / "silu.py").write_text(content)
    ended = accelopt("optimize", "silu.py", "--json")
    assert ended.code == code
    assert says in ended.object["error"]["message"]


@pytest.mark.slow
def test_a_file_without_a_problem_is_searched_with_inferred_arguments(accelopt: Command, home: Path) -> None:
    text = SILU.split("def get_inputs")[0]
    (home / "silu.py").write_text(text)
    ended = accelopt("optimize", "silu.py", "--budget", "6")
    assert "inferred" in ended.err
    assert ended.code == 0, ended.err
    assert not list(home.glob("*_problem.py"))
    (home / "silu.py").write_text(f"{text}\n\nraise RuntimeError('not here')\n")
    ended = accelopt("optimize", "silu.py", "--budget", "6")
    assert ended.code == 2
    assert "not here" in ended.err


@pytest.mark.slow
def test_each_kernel_of_a_file_without_a_problem_is_searched_with_its_own(
    accelopt: Command, home: Path
) -> None:
    text = SILU.split("def get_inputs")[0]
    (home / "silu.py").write_text(text + text[text.index("@nki.jit") :].replace("silu", "swish"))
    ended = accelopt("optimize", "silu.py", "--no-model", "--budget", "60", "--json")
    assert {suggestion["kernel"] for suggestion in ended.object["suggestions"]} == {"silu", "swish"}, (
        ended.err
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, (40, 600.0, 200_000)),
        ("7", (7, 600.0, 200_000)),
        ("5m", (40, 300.0, 200_000)),
        ("30s, 9", (9, 30.0, 200_000)),
        ("candidates=60,minutes=1.5,tokens=1000", (60, 90.0, 1000)),
    ],
)
def test_budgets(text: str | None, expected: tuple[int, float, int]) -> None:
    budget = budget_of(load_settings(environ={"ACCELOPT_CONFIG": "/nonexistent"}), text)
    assert (budget.candidates, budget.seconds, budget.tokens) == expected


def test_a_model_is_asked_only_when_configured(home: Path) -> None:
    assert configured_model(load_settings()) is None
    settings = configured_model(
        load_settings(flags={"model.base_url": "http://localhost/v1", "model.model": "m"})
    )
    assert settings is not None
    assert (settings.base_url, settings.model, settings.key_variable) == (
        "http://localhost/v1",
        "m",
        "ACCELOPT_MODEL_KEY",
    )


@pytest.mark.slow
def test_resume_takes_over_what_holds_for_the_same_problem_only(
    accelopt: Command, home: Path, searched: dict[str, object]
) -> None:
    again = accelopt("optimize", "silu.py", "--no-model", "--budget", "1", "--resume", "--json").object
    assert again["usage"]["remembered"] >= searched["tried"]  # type: ignore[operator]
    larger = SILU.replace("(256, 1024)", "(1024, 1024)")
    (home / "silu.py").write_text(larger)
    other = accelopt("optimize", "silu.py", "--no-model", "--budget", "1", "--resume", "--json").object
    assert other["usage"]["remembered"] == 0
    assert other["baseline"]["us"] > 2 * again["baseline"]["us"]
    for suggestion in other["suggestions"]:
        assert suggestion["latency"]["us"] * suggestion["speedup"]["value"] > 0.5 * other["baseline"]["us"]


def test_a_host_that_is_lost_is_exit_code_3_and_the_search_can_be_continued(
    accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lost:
        name, remote = "box", False

        async def facts(self) -> HostFacts:
            return HostFacts("box")

        async def run(self, job: Job) -> AsyncGenerator[JobMessage, None]:
            raise HostUnreachableError("The connection to box was lost.")
            yield

        async def close(self) -> None:
            pass

    monkeypatch.setattr("accelopt_lsp.service.host_profiles.host_named", lambda *asked: Lost())
    (home / "silu.py").write_text(SILU)
    ended = accelopt("optimize", "silu.py", "--no-model", "--json")
    assert ended.code == 3
    assert "lost" in ended.object["stopped"]["reason"]
    assert "To continue: accelopt" in ended.err
