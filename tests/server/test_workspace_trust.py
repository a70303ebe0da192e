"""A workspace is trusted where the editor or the person says so, and its sensitive settings once they are approved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

pytestmark = pytest.mark.asyncio

SETTINGS = 'python = "/evil/python"\n[target]\nnki = "trn2"\n'


@pytest.mark.slow
async def test_an_editor_that_says_nothing_is_asked_once_and_then_kernels_are_profiled(
    editor: Editor, tmp_path: Path, environment: dict[str, str]
) -> None:
    editor.answers = ["Trust this folder"]
    allow = editor.hold_answers()
    await editor.begin("neovim", tmp_path, trusted=None)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    assert await editor.title(uri, "not trusted")
    assert (await editor.execute("profile", uri))["job"] is None
    allow.set()
    await editor.title(uri, "est. 900 us")
    editor.open(tmp_path / "other.py", KERNELS)
    assert len(editor.questions) == 1
    assert str(tmp_path) in editor.questions[0].message
    assert json.loads(Path(environment["ACCELOPT_APPROVALS"]).read_text())["trusted"] == [str(tmp_path)]


@pytest.mark.slow
async def test_a_folder_that_was_trusted_before_is_not_asked_about(
    editor: Editor, tmp_path: Path, environment: dict[str, str]
) -> None:
    Path(environment["ACCELOPT_APPROVALS"]).write_text(
        json.dumps({"trusted": [str(tmp_path)], "settings": {}})
    )
    await editor.begin("neovim", tmp_path, trusted=None)
    await editor.title(editor.open(tmp_path / "k.py", KERNELS), "est. 900 us")
    assert editor.questions == []


async def test_an_editor_that_cannot_ask_is_told_the_command(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("none", tmp_path, trusted=None)
    await editor.title(editor.open(tmp_path / "k.py", KERNELS), "not trusted")
    await editor.message("accelopt trust")


@pytest.mark.slow
async def test_sensitive_settings_of_a_trusted_workspace_are_asked_about(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "accelopt.toml").write_text(SETTINGS)
    editor.answers = ["Not now"]
    await editor.begin("vscode", tmp_path)
    await editor.title(editor.open(tmp_path / "k.py", KERNELS), "on trn2")
    assert ["/evil/python" in question.message for question in editor.questions] == [True]
    assert [action.title for action in editor.questions[0].actions or []] == ["Use them", "Not now"]
