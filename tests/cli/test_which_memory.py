"""A command that is given an id or a file asks the memory that has it, whatever folder it is called from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command
from support.toy_search import TEXT, WIDE, ToyProposer, play, request

from accelopt_agent.events import SuggestionFound
from accelopt_lsp.resources import settings_for
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine

Ids = dict[str, str]


@pytest.fixture
def ids(accelopt: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> Ids:
    """What a search stored in the memory of a project that is not the working folder's."""
    project = home / "work" / "project"
    (project / ".git").mkdir(parents=True)
    (project / "k.py").write_text(TEXT)
    (project / "accelopt.toml").write_text('[memory]\nmode = "project"\n')
    (home / "elsewhere" / ".git").mkdir(parents=True)
    monkeypatch.chdir(home / "elsewhere")
    assert accelopt("trust", project, "--yes").code == 0
    settings = settings_for(project / "k.py")
    assert settings.memory_project == project.resolve()
    search_request = replace(request(), file=examine(project / "k.py", TEXT, project_root=project))
    with Memory.open(settings.memory_path, project=project) as memory:
        events = asyncio.run(play([ToyProposer(WIDE)], memory, search_request))
        (suggestion,) = [e.suggestion for e in events if isinstance(e, SuggestionFound)]
        (run,) = memory.run_log.runs()
        receipt = next(full for kind, full in memory.entries(suggestion.gate.receipt) if kind == "receipt")
    assert not (home / "memory.db").exists() or Memory.open(home / "memory.db").stats().runs == 0
    file = str(project / "k.py")
    return {"suggestion": suggestion.id, "run": run.id, "receipt": receipt, "file": file}


COMMANDS: dict[str, Callable[[Ids], list[str]]] = {
    "accept": lambda ids: ["accept", ids["suggestion"]],
    "reject": lambda ids: ["reject", ids["suggestion"]],
    "reject --undo": lambda ids: ["reject", ids["suggestion"], "--undo"],
    "explain": lambda ids: ["explain", ids["suggestion"], "--no-model"],
    "runs ID": lambda ids: ["runs", ids["run"]],
    "runs FILE": lambda ids: ["runs", ids["file"]],
    "memory show": lambda ids: ["memory", "show", ids["suggestion"][:8]],
    "memory forget": lambda ids: ["memory", "forget", ids["suggestion"], ids["run"]],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_id_is_found_in_the_memory_of_its_project(accelopt: Command, ids: Ids, name: str) -> None:
    ended = accelopt(*COMMANDS[name](ids), "--json")
    assert ended.code == 0, ended.err


def test_what_is_accepted_from_elsewhere_is_written_to_the_project(
    accelopt: Command, home: Path, ids: Ids
) -> None:
    pair = accelopt("accept", ids["suggestion"], "--json").object["pair"]
    project = Path(ids["file"]).parent
    assert [file.stem for file in (project / "accelopt-memory").iterdir()] == [pair]
    assert "wide = True" in Path(ids["file"]).read_text()
    with Memory.open(settings_for(project).memory_path, read_only=True) as memory:
        assert [p.id for p in memory.pairs()] == [pair]
    assert accelopt("memory", "stats", "--json").object["pairs"] == 0  # the working folder's is the person's


def test_a_receipt_is_found_in_the_memory_of_its_project(accelopt: Command, ids: Ids) -> None:
    ended = accelopt("replay", ids["receipt"], "--json")
    assert "is not complete" in ended.object["error"]["message"]  # a toy's; it was found


@pytest.mark.parametrize(
    "command", ["accept", "reject", "explain", "replay", "runs", "memory show", "memory forget"]
)
def test_an_id_that_no_memory_has_is_a_no(accelopt: Command, ids: Ids, command: str) -> None:
    assert accelopt(*command.split(), "0123456789ab", "--json").code == 1
