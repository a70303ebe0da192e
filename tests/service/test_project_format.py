"""Versions that are offered have the layout of their project, where the file has it already."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_search import WIDE, ToyCost, ToyGate, ToyProposer, request

from accelopt_agent.events import SuggestionFound
from accelopt_agent.optimize import drive
from accelopt_agent.suggestions.suggestion import Suggestion
from accelopt_lsp.service import project_format as module
from accelopt_lsp.service.project_format import ProjectFormat, configured, project_format, same_program
from accelopt_lsp.settings.load import KernelPython, Settings, load_settings
from accelopt_profiling.examination import examine

RUFF = str(Path(sys.executable).parent / "ruff")
TEXT = """\
import neuronxcc.nki as nki


@nki.jit
def kernel(x):
    time_us = 100
    wide = False
    return x
"""
#: A rule's rewrite whose layout is not ruff's.
LONG = {
    "long": ("    wide = False\n", f"    wide = (True ,'a')  #why\n    y = f({', '.join(['x'] * 60)})\n", 30)
}


def settings(python: Path | str = RUFF, **values: object) -> Settings:
    interpreter = KernelPython(str(Path(python).with_name("python")), "a test")
    return replace(load_settings(environ={}), interpreter=interpreter, **{"untrusted": None, **values})


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 60\n")
    return tmp_path


async def offered(
    path: Path, text: str, lay_out: ProjectFormat, rules: dict[str, tuple[str, str, int]]
) -> Suggestion:
    search = replace(request(), file=examine(path, text))
    events = drive(
        search, ToyCost(text), ToyGate(), None, "toy", lambda meter: [ToyProposer(rules)], lay_out=lay_out
    )
    return [e.suggestion async for e in events if isinstance(e, SuggestionFound)][-1]


async def test_a_version_is_formatted_as_the_file_is(project: Path) -> None:
    lay_out = await project_format(project / "k.py", TEXT, settings())
    written = await offered(project / "k.py", TEXT, ProjectFormat(project / "k.py"), LONG)
    version = await offered(project / "k.py", TEXT, lay_out, LONG)
    assert lay_out.remark == ""
    assert '    wide = (True, "a")  # why\n' in version.text
    assert max(map(len, version.text.splitlines())) <= 60
    assert same_program(written.text, version.text)
    assert (version.id, version.fast_hashes) == (written.id, written.fast_hashes)
    assert '+    wide = (True, "a")  # why\n' in version.diff
    assert await lay_out._formatter(project / "k.py", version.text) == version.text  # type: ignore[misc]


async def test_a_file_that_is_not_formatted_is_left_alone(project: Path) -> None:
    text = TEXT.replace("wide = False", "wide  = False")
    lay_out = await project_format(project / "k.py", text, settings())
    rules = {"long": (LONG["long"][0].replace("wide =", "wide  ="), *LONG["long"][1:])}
    version = await offered(project / "k.py", text, lay_out, rules)
    assert "#why" in version.text
    assert lay_out.remark == "k.py is not formatted with the project's ruff. Versions stay as written."


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 3", "failed: 3"),
        ("echo 'no such rule' >&2; exit 2", "failed: no such rule"),
        ("sleep 60", "did not answer within"),
    ],
)
async def test_a_formatter_that_gives_nothing_changes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr(module, "SECONDS", 1)
    python = program(project / "bin/ruff", body)
    lay_out = await project_format(project / "k.py", TEXT, settings(python))
    assert why in lay_out.remark
    version = await offered(project / "k.py", TEXT, lay_out, WIDE)
    assert "wide = True" in version.text


@pytest.mark.parametrize(
    "change",
    ["s/wide = True/wide = 1/", "s/  # kept//", "s/return x/return x +/"],
    ids=["other", "comment", "broken"],
)
async def test_what_is_not_the_same_program_with_its_comments_is_left_as_written(
    project: Path, change: str
) -> None:
    text = TEXT.replace("return x\n", "return x  # kept\n")
    python = program(
        project / "bin/ruff",
        f'in=$(cat); case "$in" in *True*) echo "$in" | sed \'{change}\';; *) echo "$in";; esac',
    )
    lay_out = await project_format(project / "k.py", text, settings(python))
    assert lay_out.remark == ""
    version = await offered(project / "k.py", text, lay_out, WIDE)
    assert "wide = True" in version.text
    assert "return x  # kept\n" in version.text


async def test_black_is_asked_with_its_own_words_and_sees_no_key(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n")
    monkeypatch.setenv("SECRET_API_KEY", "key")
    python = program(project / "bin/black", f'echo "$@" > "{project}/words"; env > "{project}/seen"; cat')
    lay_out = await project_format(project / "k.py", TEXT, settings(python))
    assert lay_out.remark == ""
    assert (project / "words").read_text().split() == [
        "--quiet",
        "--stdin-filename",
        str(project / "k.py"),
        "-",
    ]
    assert "SECRET_API_KEY" not in (project / "seen").read_text()


async def test_nothing_is_run_in_a_folder_that_is_not_trusted(project: Path) -> None:
    python = program(project / "bin/ruff", f'touch "{project}/ran"; cat')
    untrusted = settings(python, untrusted=project)
    lay_out = await project_format(project / "k.py", TEXT, untrusted)
    assert lay_out.remark == ""
    assert not (project / "ran").exists()
    await project_format(project / "k.py", TEXT, settings(python))
    assert (project / "ran").exists()


async def test_a_formatter_that_is_not_there_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    lay_out = await project_format(project / "k.py", TEXT, settings("/nowhere/python"))
    assert lay_out.remark == "The project formats with ruff, which was not found. Versions stay as written."


@pytest.mark.parametrize(
    ("files", "kinds"),
    [
        ({}, []),
        ({"pyproject.toml": "[tool.ruff]\n"}, ["ruff"]),
        ({"pyproject.toml": "[tool.black]\n[tool.ruff]\n"}, ["ruff", "black"]),
        ({"pyproject.toml": "[tool.ruff]\n", "a/ruff.toml": ""}, ["ruff"]),
        ({"pyproject.toml": "[tool.ruff]\n", "a/pyproject.toml": "[tool.black]\n"}, ["black"]),
        ({"pyproject.toml": "[tool.ruff]\n", "a/pyproject.toml": "[tool.other]\n"}, ["ruff"]),
        ({"pyproject.toml": "[tool.ruff]\n", "a/.git": ""}, []),
        ({"pyproject.toml": "[tool\n"}, []),
        ({"a/.ruff.toml": "", "pyproject.toml": "[tool.black]\n"}, ["ruff"]),
    ],
)
def test_the_nearest_file_of_settings_counts(tmp_path: Path, files: dict[str, str], kinds: list[str]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert configured(tmp_path / "a" / "k.py") == kinds


def test_line_ends_stay(project: Path) -> None:
    crlf = TEXT.replace("\n", "\r\n")
    lay_out = asyncio.run(project_format(project / "k.py", crlf, settings()))
    assert lay_out.remark == ""
