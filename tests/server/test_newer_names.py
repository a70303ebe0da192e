"""Names that today's NKI deprecates are written as Python has them by one quick fix, in all of the file."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor

TEXT = """\
import nki
import nki.language as nl


@nki.jit
def silu(x):
    COST = 900
    for i in nl.affine_range(4):
        for j in nl.affine_range(2):
            pass
    return x
"""


@pytest.mark.parametrize("client", ["vscode", "emacs"])
async def test_a_file_is_moved_to_todays_names(editor: Editor, tmp_path: Path, client: str) -> None:
    await editor.begin(client, tmp_path)
    uri = editor.open(tmp_path / "k.py", TEXT)
    await editor.diagnostic(uri, "deprecated")
    action = await editor.action(uri, 6, "Write today's names in this file")
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))

    async def written() -> bool:
        return editor.texts[uri] == TEXT.replace("nl.affine_range", "range")

    await editor.until(written, "today's names")
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))
    await editor.message("No deprecated name of this file")
