"""Explain a suggestion: the page reaches each kind of editor in the way it can show one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import lsprotocol.types as t
import pytest
from pygls.exceptions import JsonRpcException
from support.editor import Editor
from support.scripted_kernels import optimized


async def explain(editor: Editor, uri: str) -> None:
    """Choose the action, as a person would."""
    action = await editor.action(uri, 13, "Explain: Halve the cost.")
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    assert command.command == "accelopt.server.explain"
    answer: Any = await editor.workspace_execute_command_async(
        t.ExecuteCommandParams(command.command, command.arguments)
    )
    assert answer["job"]


@pytest.mark.slow
async def test_a_client_with_pages_sees_it_grow(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", pages=True)
    await explain(editor, uri)

    async def answered() -> bool:
        return bool(editor.shown) and "has answered" in await editor.text_document_content(editor.shown[0])

    await editor.until(answered, "the page with the model's words")
    page = editor.shown[0]
    assert re.fullmatch(r"accelopt-page:/[0-9a-f]{8}/explanation%20of%20silu\.md", page)
    assert editor.shown == [page]  # shown once: the second text does not bring it to the front again
    assert editor.newer == [page]
    text = await editor.text_document_content(page)
    assert text.startswith("# silu: 2.0x est. (1.8-2.2) faster on trn1")
    assert "| time | 900 us | 450 us | -50 % | estimated |" in text
    assert "+    COST = 450" in text
    with pytest.raises(JsonRpcException, match="not kept any more"):
        await editor.text_document_content("accelopt-page:/other.md")


async def test_a_client_that_opens_files_gets_one(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "neovim", tmp_path / "k.py")
    await explain(editor, uri)

    async def shown() -> bool:
        return bool(editor.shown_documents)

    await editor.until(shown, "a document")
    assert len(editor.shown_documents) == 1
    path = Path(unquote(editor.shown_documents[0].uri.removeprefix("file://")))
    assert path.is_relative_to(tmp_path / "cache")
    assert path.name == "explanation of silu.md"
    assert "has answered" in path.read_text()


async def test_a_client_that_shows_nothing_gets_a_message(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "none", tmp_path / "k.py")
    await explain(editor, uri)
    message = await editor.message("faster on trn1")
    assert "-50 %" in message
    assert "COST = 450" not in message  # the diff is too long for a message


async def test_explaining_needs_a_suggestion(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    await editor.execute("explain", {})
    await editor.message("named by its id")
    await editor.execute("explain", {"id": "none"})
    await editor.message("There is no suggestion none")
