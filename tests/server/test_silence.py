"""Silence a finding by a quick fix: on its line, in its file, in the project."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

LATE = f"TIMEOUT = 1\n{KERNELS}"
LINE = LATE.splitlines().index("def silu(x):") + 1


async def fix(editor: Editor, uri: str, title: str) -> None:
    """Choose a quick fix on the line of the finding."""
    action = await editor.action(uri, LINE, title)
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))


@pytest.mark.slow
@pytest.mark.parametrize("client", ["vscode", "emacs"])
@pytest.mark.parametrize(
    ("where", "comment"),
    [
        ("on this line", "def silu(x):  # accelopt: ignore=timeout\n"),
        ("in this file", "# accelopt: ignore-file=timeout\nTIMEOUT"),
    ],
)
async def test_a_comment_silences_it_at_once(
    editor: Editor, tmp_path: Path, client: str, where: str, comment: str
) -> None:
    await editor.begin(client, tmp_path)
    uri = editor.open(tmp_path / "k.py", LATE)
    await editor.diagnostic(uri, "timeout")
    await fix(editor, uri, f"Ignore timeout {where}")
    await editor.no_diagnostic(uri, "timeout")
    assert comment in editor.texts[uri]
    editor.replace(uri, comment, comment.replace("timeout", "spills"))
    await editor.diagnostic(uri, "timeout")


@pytest.mark.slow
async def test_the_project_silences_it_in_its_settings(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", LATE)
    await editor.diagnostic(uri, "timeout")
    await fix(editor, uri, "Ignore timeout in this project")
    await editor.message('was written: `ignore = "timeout"`')
    assert (tmp_path / "accelopt.toml").read_text() == 'ignore = "timeout"\n'
    await fix(editor, uri, "Ignore timeout in this project")
    await editor.message('Write `ignore = "timeout"` below the first line')


@pytest.mark.slow
async def test_a_wrong_request_is_refused(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("neovim", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    assert (
        "no code of a finding" in (await editor.execute("ignore", {"uri": uri, "id": "nothing"}))["message"]
    )
    assert (
        "`scope`" in (await editor.execute("ignore", {"uri": uri, "id": "spills", "scope": "all"}))["message"]
    )
    assert "`scope`" in (await editor.execute("ignore", {"uri": uri, "id": "spills"}))["message"]
