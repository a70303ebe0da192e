"""Changes made outside the editor are seen: through the client's file watching, or without it by watchdog."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS

CHANGED = KERNELS.replace("COST = 900", "COST = 600")


def tell(editor: Editor, path: Path) -> None:
    """What a client that watches files sends."""
    event = t.FileEvent(path.as_uri(), t.FileChangeType.Changed)
    editor.workspace_did_change_watched_files(t.DidChangeWatchedFilesParams([event]))


@pytest.mark.parametrize("reloads", ["before", "after"])
async def test_told_by_the_client(editor: Editor, tmp_path: Path, reloads: str) -> None:
    """The editor reloads the file without saving it; its change may come before or after the watcher's."""
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    uri = editor.open(path, KERNELS)
    await editor.title(uri, "est. 900 us")

    async def watched() -> bool:
        return any(r.method == t.WORKSPACE_DID_CHANGE_WATCHED_FILES for r in editor.registrations)

    await editor.until(watched, "the registration")
    path.write_text(CHANGED)
    if reloads == "before":
        editor.set_text(uri, CHANGED)
        tell(editor, path)
    else:
        tell(editor, path)
        editor.set_text(uri, CHANGED)
    await editor.title(uri, "est. 600 us")


@pytest.mark.slow
@pytest.mark.parametrize("client", ["none", "neovim"])
async def test_seen_by_watchdog(editor: Editor, tmp_path: Path, client: str) -> None:
    await editor.begin(client, tmp_path)
    path = tmp_path / "k.py"
    uri = editor.open(path, KERNELS)
    await editor.title(uri, "est. 900 us")
    editor.set_text(uri, CHANGED)
    path.write_text(CHANGED)
    await editor.title(uri, "est. 600 us")


async def test_text_that_only_the_disk_has_is_not_profiled(editor: Editor, tmp_path: Path) -> None:
    """With unsaved edits the editor keeps its own text: results belong to that."""
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    uri = editor.open(path, KERNELS)
    await editor.title(uri, "est. 900 us")
    editor.replace(uri, "COST = 300", "COST = 310")
    path.write_text(CHANGED)
    tell(editor, path)
    editor.save(uri)
    await editor.title(uri, "est. 310 us")
    assert all("540-660" not in title for title in await editor.titles(uri))


async def test_settings_that_change(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "on trn1")
    settings = tmp_path / "accelopt.toml"
    settings.write_text('target = {nki = "trn2"}\n')
    tell(editor, settings)
    await editor.title(uri, "on trn2")
