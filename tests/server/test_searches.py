"""Pause a search, let it go on, resume one that was interrupted, and look back: by lens, action and command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

SLOW = KERNELS.replace("import", "HOLD = 0\nimport", 1)


async def searching(editor: Editor, client: str, path: Path, **options: Any) -> str:
    """Open a file with one search that does not end by itself."""
    await editor.begin(client, path.parent, **options)
    uri = editor.open(path, SLOW)
    await editor.title(uri, "est. 300 us")
    editor.replace(uri, "HOLD = 0", "HOLD = 1")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    await editor.title(uri, "Pause the search")
    return uri


async def gone(editor: Editor, uri: str, has: str) -> None:
    async def look() -> bool:
        return all(has not in title for title in await editor.titles(uri))

    await editor.until(look, f"no lens with {has!r}")


async def choose(editor: Editor, uri: str, has: str) -> Any:
    """Click the lens."""
    lenses = await editor.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    command = next(lens.command for lens in lenses or [] if lens.command and has in lens.command.title)
    return await editor.workspace_execute_command_async(
        t.ExecuteCommandParams(command.command, command.arguments)
    )


@pytest.mark.slow
async def test_pause_and_resume_by_lens(editor: Editor, tmp_path: Path) -> None:
    uri = await searching(editor, "vscode", tmp_path / "k.py", status=True)
    assert (await choose(editor, uri, "Pause"))["paused"]
    titles = await editor.titles(uri)
    assert titles[:2] == ["Resume the search", "Cancel"]
    assert (await choose(editor, uri, "Resume the search"))["resumed"]
    await editor.message("2 candidates tried")
    await editor.title(uri, "Optimize")
    assert "paused" in [status.state for status in editor.statuses]


@pytest.mark.slow
@pytest.mark.parametrize("client", ["none", "emacs"])
async def test_pause_and_resume_by_code_action(editor: Editor, tmp_path: Path, client: str) -> None:
    uri = await searching(editor, client, tmp_path / "k.py")
    for verb, lens in (("Pause", "Resume the search"), ("Resume", "Optimize")):
        action = await editor.action(uri, 14, f"{verb}: Optimizing silu")
        command = action if isinstance(action, t.Command) else action.command
        assert command is not None
        await editor.workspace_execute_command_async(
            t.ExecuteCommandParams(command.command, command.arguments)
        )
        await editor.title(uri, lens)


@pytest.mark.slow
async def test_a_paused_search_can_be_cancelled(editor: Editor, tmp_path: Path) -> None:
    uri = await searching(editor, "neovim", tmp_path / "k.py")
    await editor.execute("pause", {"uri": uri})
    await choose(editor, uri, "Cancel")
    await gone(editor, uri, "Resume the search")


@pytest.mark.slow
async def test_a_cancelled_search_says_what_it_has(editor: Editor, tmp_path: Path) -> None:
    uri = await searching(editor, "neovim", tmp_path / "k.py")
    await editor.title(uri, "1 checked: ")  # one that has begun ends with what it has
    await choose(editor, uri, "Cancel")
    await editor.message("silu: 1 suggestion: cancelled; the best is 2.0x est.")
    await gone(editor, uri, "Cancel")


@pytest.mark.slow
async def test_an_interrupted_search_is_offered_for_its_text_only(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS.replace("import", "INTERRUPTED = 1\nimport", 1))
    await editor.title(uri, "Resume (7 tried)")
    action = await editor.action(uri, 14, "Resume the search for silu (7 tried)")
    assert isinstance(action, t.CodeAction)
    editor.replace(uri, "COST = 900", "COST = 901")

    async def only_the_others() -> bool:
        return (await editor.titles(uri)).count("Resume (7 tried)") == 1

    await editor.until(only_the_others, "no search to resume for the edited kernel")
    editor.replace(uri, "COST = 901", "COST = 900")
    await editor.action(uri, 14, "Resume the search for silu (7 tried)")
    answer = await editor.execute("resume", {"uri": uri, "kernel": "silu"})
    assert answer["job"]
    await editor.message("2 candidates tried. Resumed.")


@pytest.mark.slow
async def test_nothing_to_resume_is_said(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    assert (await editor.execute("resume", {}))["job"] is None
    await editor.message("No search is paused.")
    assert (await editor.execute("pause", {}))["paused"] == []


@pytest.mark.slow
async def test_looking_back(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    action = await editor.action(uri, 14, "Show the searches in this file")
    assert isinstance(action, t.CodeAction)
    assert action.command is not None
    await editor.workspace_execute_command_async(
        t.ExecuteCommandParams(action.command.command, action.command.arguments)
    )

    async def shown() -> bool:
        return bool(editor.shown)

    await editor.until(shown, "the page")
    page = await editor.workspace_text_document_content_async(t.TextDocumentContentParams(editor.shown[0]))
    assert page.text.startswith("# Searches in k.py")
    await editor.execute("showRuns", "untitled:Untitled-1")
    await editor.message("is no file")
