"""Compare a kernel with the last save, the last commit, the accepted version, or a text that was copied."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS, optimized


async def page(editor: Editor, argument: dict[str, Any]) -> str:
    editor.shown.clear()
    await editor.execute("compare", argument)
    await editor.until(lambda: bool(editor.shown), "the page")
    uri = editor.shown[0]
    return str((await editor.workspace_text_document_content_async(t.TextDocumentContentParams(uri))).text)


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, check=True, capture_output=True)


async def test_with_the_last_save_the_last_commit_and_a_copied_text(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    git(tmp_path, "init")
    (tmp_path / "k.py").write_text(KERNELS.replace("900", "1800"))
    git(tmp_path, "add", "k.py")
    git(tmp_path, "commit", "-m", "slow")
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "900 us")
    where = {"uri": uri, "kernel": "silu"}
    text = await page(editor, {**where, "against": "commit"})
    assert text.startswith("# silu, compared with the last commit")
    assert "On trn1: 2.0x faster than the last commit." in text
    assert "-    COST = 1800" in text
    editor.replace(uri, "COST = 900", "COST = 450")
    editor.save(uri)
    await editor.title(uri, "450 us")
    editor.answers.append("the last save")
    assert "2.0x faster than the last save." in await page(editor, where)
    copied = "@nki.jit\ndef silu(x):\n    COST = 225\n    return x\n"
    text = await page(editor, {**where, "text": copied})
    assert "2.0x slower than the other text." in text
    assert "def gelu" not in text.partition("## The difference")[2].replace(" def gelu", "")


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"against": "commit"}, "is in no commit"),
        ({"against": "accepted"}, "No version of silu in this file was accepted."),
        ({"against": "save"}, "No earlier version of silu is known"),
        ({"text": "import a\n"}, "The other text has no kernel silu."),
    ],
)
async def test_what_there_is_not_is_said(
    editor: Editor, tmp_path: Path, argument: dict[str, str], says: str
) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "900 us")
    await editor.execute("compare", {"uri": uri, "kernel": "silu", **argument})
    await editor.message(says)
    assert not editor.shown


async def test_slower_than_what_was_accepted_is_a_warning(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", pages=True)
    (version,) = (await editor.execute("versions", {"uri": uri}))["versions"]
    await editor.execute("accept", {"id": version["id"], "apply": True})
    await editor.title(uri, "450 us")
    for old, new, slower in ((450, 440, False), (440, 445, False), (445, 485, False), (485, 520, True)):
        editor.replace(uri, f"COST = {old}", f"COST = {new}")
        editor.save(uri)
        await editor.title(uri, f"{new} us")
        if slower:
            warning = await editor.diagnostic(uri, "regression")
            assert "1.16x slower than the version that you accepted" in warning.message
        else:
            await editor.no_diagnostic(uri, "regression")
    assert "COST = 450" in (await page(editor, {"uri": uri, "kernel": "silu", "against": "accepted"}))
