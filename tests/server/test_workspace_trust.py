"""A workspace is trusted where the editor or the person says so, and its sensitive settings once they are approved."""

from __future__ import annotations

import json
from pathlib import Path

import lsprotocol.types as t
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
    assert ["/evil/python" in question.message for question in await editor.await_questions()] == [True]
    assert [action.title for action in editor.questions[0].actions or []] == ["Use them", "Not now"]


def _folders_change(editor: Editor, added: tuple[Path, ...] = (), removed: tuple[Path, ...] = ()) -> None:
    def named(folders: tuple[Path, ...]) -> list[t.WorkspaceFolder]:
        return [t.WorkspaceFolder(uri=folder.as_uri(), name=folder.name) for folder in folders]

    event = t.WorkspaceFoldersChangeEvent(named(added), named(removed))
    editor.workspace_did_change_workspace_folders(t.DidChangeWorkspaceFoldersParams(event))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.slow
@pytest.mark.parametrize("added", [False, True], ids=["loose", "added"])
async def test_a_file_of_another_folder_is_asked_about(
    editor: Editor, folders: tuple[Path, Path], added: bool
) -> None:
    first, second = folders
    editor.answers = ["Trust this folder"]
    allow = editor.hold_answers()
    await editor.begin("vscode", first)
    await editor.title(editor.open(first / "k.py", KERNELS), "est. 900 us")
    if added:
        _folders_change(editor, added=(second,))
    uri = editor.open(second / "k.py", KERNELS)
    await editor.title(uri, f"{second} is not trusted")
    for command in ("profile", "optimize", "record", "migrate", "remember"):
        assert (await editor.execute(command, {"uri": uri}))["job"] is None
    assert [str(second) in question.message for question in await editor.await_questions()] == [True]
    allow.set()
    await editor.title(uri, "est. 900 us")


@pytest.mark.slow
async def test_of_two_roots_only_the_one_that_was_asked_about_is_trusted(
    editor: Editor, folders: tuple[Path, Path], environment: dict[str, str]
) -> None:
    first, second = folders
    editor.answers = ["Trust this folder", "Not now"]
    await editor.begin("neovim", first, trusted=None, folders=folders)
    await editor.title(editor.open(second / "k.py", KERNELS), "est. 900 us")
    assert [f"files in {second}?" in question.message for question in await editor.await_questions()] == [
        True
    ]
    assert json.loads(Path(environment["ACCELOPT_APPROVALS"]).read_text())["trusted"] == [str(second)]
    uri = editor.open(first / "k.py", KERNELS)
    await editor.title(uri, f"{first} is not trusted")
    await editor.await_questions(2)


@pytest.mark.slow
async def test_a_folder_that_was_removed_is_asked_about_again(
    editor: Editor, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    await editor.begin("vscode", first, folders=folders)
    uri = editor.open(second / "k.py", KERNELS)
    await editor.title(uri, "Optimize")
    _folders_change(editor, removed=(second,))

    async def gone() -> bool:
        return not any("Optimize" in title for title in await editor.titles(uri))

    await editor.until(gone, "no search in a folder that is trusted no more")
    assert (await editor.execute("optimize", {"uri": uri}))["job"] is None
    await editor.title(editor.open(first / "k.py", KERNELS), "est. 900 us")


@pytest.mark.slow
async def test_the_status_names_the_targets_of_all_folders(
    editor: Editor, folders: tuple[Path, Path]
) -> None:
    (folders[1] / "accelopt.toml").write_text('[target]\ntriton = "a100"\nnki = "trn1"\n')
    await editor.begin("vscode", folders[0], folders=folders, status=True)

    async def both() -> bool:
        return any(
            status.target == "h100 or a100 (Triton), as the file needs or trn1 (NKI)"
            for status in editor.statuses
        )

    await editor.until(both, "both targets")


@pytest.mark.slow
async def test_the_status_names_a_folder_that_is_not_trusted(
    editor: Editor, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    await editor.begin("vscode", first, status=True)
    uri = editor.open(second / "k.py", KERNELS)
    await editor.title(uri, "is not trusted")
    assert editor.statuses[-1].target == "h100 (Triton), as the file needs (NKI)"
    assert (editor.statuses[-1].state, str(second) in editor.statuses[-1].message) == ("untrusted", True)
    editor.close(uri)

    async def ready() -> bool:
        return bool(editor.statuses[-1].state == "idle")

    await editor.until(ready, "a status of the other folder")


@pytest.mark.slow
async def test_a_question_that_went_away_comes_again_when_the_person_asks_for_a_run(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "accelopt.toml").write_text(SETTINGS)
    await editor.begin("vscode", tmp_path, trusted=None)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "not trusted")
    await editor.await_questions(1)
    assert (await editor.execute("optimize", {"uri": uri}))["job"] is None
    await editor.await_questions(2)
    editor.answers = ["Trust this folder"]
    assert (await editor.execute("trust", {"uri": uri})) == {"asked": True}
    await editor.title(uri, "est. 900 us")
    await editor.await_questions(4)  # the last is about the project's settings
    editor.answers = ["Use them"]

    async def nothing_left() -> bool:
        return (await editor.execute("trust", {"uri": uri})) == {"asked": False}

    await editor.until(nothing_left, "the settings to be approved")
