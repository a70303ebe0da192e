"""Versions that an edit made outdated, or that have a step too many, are made again and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS, decided, optimized

STEPPED = KERNELS.replace("\n\n", "\nSTEPS = 1\n\n", 1)


async def titles(editor: Editor) -> list[tuple[str, str]]:
    """The versions that can be accepted, then those that are outdated: which, and what each takes."""
    answer = await editor.execute("versions", {})
    return [(which, v["latency"]) for which in ("versions", "outdated") for v in answer[which]]


async def until_listed(editor: Editor, *expected: tuple[str, str]) -> None:
    async def look() -> bool:
        return await titles(editor) == list(expected)

    await editor.until(look, f"the versions {expected}")


async def until_logged(editor: Editor, decisions: Path, *expected: str) -> None:
    async def look() -> bool:
        return decided(decisions) == list(expected)

    await editor.until(look, f"{expected} in the log")


def argument(action: t.CodeAction | t.Command) -> Any:
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    assert command.arguments is not None
    return command.arguments[0]


@pytest.mark.parametrize("client", ["neovim", "vscode"])
async def test_an_outdated_version_is_made_again_in_the_edited_kernel(
    editor: Editor, tmp_path: Path, decisions: Path, client: str
) -> None:
    uri = await optimized(editor, client, tmp_path / "k.py")
    editor.replace(uri, "COST = 900", "COST = 800")
    await until_listed(editor, ("outdated", "est. 450 us on trn1"))
    action = await editor.action(uri, 13, "Check again with this text: Halve the cost")
    await editor.execute("check", argument(action))
    await until_listed(editor, ("versions", "est. 400 us on trn1"))
    assert decided(decisions) == ["made again"]
    version = (await editor.execute("versions", {}))["versions"][0]
    answer = await editor.execute("accept", {"id": version["id"], "apply": True})
    assert answer["job"]
    await until_logged(editor, decisions, "made again", "accepted")
    assert "COST = 400" in editor.texts[uri]


async def test_a_step_is_left_out_by_number_or_as_the_person_answers(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", STEPPED)
    (version,) = (await editor.execute("versions", {}))["versions"]
    assert version["steps"] == ["810", "450"]
    assert "1. Step to 810 (rule halve): 1.11x est., est. 810 us" in version["review"]
    await editor.execute("check", {"id": version["id"], "uri": uri, "without": 2})
    both = (("versions", "est. 450 us on trn1"), ("versions", "est. 810 us on trn1"))
    await until_listed(editor, *both)
    action = await editor.action(uri, 14, "Leave out one of the 2 steps of 2.0x est.")
    editor.answers.append("2. Step to 450: 1.80x est., est. 450 us")
    await editor.execute("check", argument(action))
    await until_logged(editor, decisions, "made again", "made again")
    await until_listed(editor, *both)
    assert "Leave which step out" in editor.questions[-1].message
    await editor.execute("check", {"id": version["id"], "uri": uri, "without": 3})
    await editor.message("has no step 3")
    await editor.execute("check", {"id": version["id"], "uri": uri, "ask": True})  # and no answer
    assert decided(decisions) == ["made again", "made again"]


async def test_an_edit_elsewhere_is_checked_by_itself_once_it_is_saved(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    editor.replace(uri, "\n\ndef reference", "\n\nLIMIT = 3\n\n\ndef reference")
    editor.replace(uri, "LIMIT = 3", "LIMIT = 4")
    await until_listed(editor, ("versions", "est. 450 us on trn1"))
    assert decided(decisions) == []  # typing runs nothing
    editor.save(uri)
    await editor.logged("still holds with the saved text")
    assert decided(decisions) == ["made again"]
    assert await titles(editor) == [("versions", "est. 450 us on trn1")]
    assert not editor.questions
    (version,) = (await editor.execute("versions", {}))["versions"]
    await editor.execute("accept", {"id": version["id"], "apply": True})
    await until_logged(editor, decisions, "made again", "accepted")
    assert "LIMIT = 4" in editor.texts[uri]
    assert "COST = 450" in editor.texts[uri]


async def test_what_no_longer_holds_is_outdated_until_the_text_is_back(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    editor.replace(uri, "\n\ndef reference", "\nREFUTED = 1\n\ndef reference")
    editor.save(uri)
    await editor.logged("was not confirmed (nothing faster found (1 refused by the gate))")
    await until_listed(editor, ("outdated", "est. 450 us on trn1"))
    editor.replace(uri, "\nREFUTED = 1", "")
    await until_listed(editor, ("versions", "est. 450 us on trn1"))
    assert decided(decisions) == ["made again"]


async def test_a_check_ends_with_the_text_that_it_is_about(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    editor.replace(uri, "\n\ndef reference", "\nHOLD = 1\n\ndef reference")
    editor.save(uri)
    await until_logged(editor, decisions, "made again")
    editor.replace(uri, "\nHOLD = 1", "\nHOLD = 2")
    await until_logged(editor, decisions, "made again", "given up")
    editor.save(uri)
    await editor.logged("still holds with the saved text")


async def test_a_host_that_is_down_is_a_line_in_the_log(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    told = [m.message for m in editor.messages]
    editor.replace(uri, "\n\ndef reference", "\nDOWN = 1\n\ndef reference")
    editor.save(uri)
    await editor.logged("could not be checked (The host lab cannot be reached")
    assert await titles(editor) == [("versions", "est. 450 us on trn1")]
    assert [m.message for m in editor.messages] == told


async def test_what_was_not_confirmed_can_be_checked_again_by_hand(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    editor.replace(uri, "\n\ndef reference", "\nREFUTED = 1\n\ndef reference")
    editor.save(uri)
    await until_listed(editor, ("outdated", "est. 450 us on trn1"))
    (version,) = (await editor.execute("versions", {}))["outdated"]
    await editor.execute("check", {"id": version["id"], "uri": uri})
    await editor.message("refused by the gate")
    assert await titles(editor) == [("outdated", "est. 450 us on trn1")]
    assert decided(decisions) == ["made again", "made again"]
