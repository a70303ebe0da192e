"""The action that moves a Beta 1 kernel to today's NKI: a file beside it, opened, with what came of it."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS


@pytest.mark.slow
async def test_a_beta_1_kernel_is_moved_to_a_file_of_its_own(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    action = await editor.action(uri, 13, "Move this file to today's NKI")
    assert isinstance(action, t.CodeAction)
    assert action.kind == "refactor.rewrite.accelopt.migrate"
    assert action.command is not None
    await editor.execute("migrate", *(action.command.arguments or []))
    await editor.message("k_nki.py was written. 1 statement is marked as not moved.")
    written = tmp_path / "k_nki.py"
    assert written.read_text() == KERNELS.replace("neuronxcc.nki", "nki")
    assert editor.shown_documents[-1].uri == written.as_uri()
    await editor.execute("migrate", uri)
    await editor.message("exists already")
