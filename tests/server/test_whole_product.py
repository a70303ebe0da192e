"""The whole product below the editor: the real profiler, search, gate and memory behind the server."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
async def test_save_see_accept_remember(real: Editor, environment: dict[str, str], tmp_path: Path) -> None:
    settings = {"search": {"candidates": 12, "minutes": 2}}
    await real.begin("vscode", tmp_path, settings=settings)
    text = (EXAMPLES / "nki_silu.py").read_text().replace("m=4096, n=7168", "m=512, n=2048")
    path = tmp_path / "nki_silu.py"
    uri = real.open(path, text)
    first = await real.title(uri, "us on trn1")
    assert first.startswith("est. ")
    await real.title(uri, " bound")

    await real.execute("optimize", uri)
    await real.message("the best is")
    line = next(i for i, x in enumerate(text.splitlines(), 1) if x.startswith("def silu"))
    action = (await real.actions(uri, line, ["refactor.rewrite.accelopt.suggestion"]))[0]
    assert isinstance(action, t.CodeAction)
    assert action.is_preferred
    resolved = await real.code_action_resolve_async(action)
    assert resolved.edit is not None
    assert real.apply(resolved.edit)
    assert resolved.command is not None
    await real.execute("accept", *(resolved.command.arguments or []))

    async def pairs() -> list[tuple[str, str]]:
        with sqlite3.connect(f"file:{environment['ACCELOPT_DB']}?mode=ro", uri=True) as database:
            return database.execute("SELECT kernel, origin FROM pairs").fetchall()

    rows = await real.until(pairs, "a row in the memory")
    assert rows[0][0] == "silu"
    real.save(uri)
    assert " faster than last save" in await real.title(uri, "faster than last save")

    real.close(uri)
    again = real.open(path)
    await real.title(again, "us on trn1")


@pytest.mark.slow
async def test_a_host_that_cannot_be_reached_leaves_the_profile_without_hardware(
    real: Editor, tmp_path: Path
) -> None:
    (tmp_path / "accelopt.toml").write_text('host = "lab"\n[hosts.lab]\nssh = "nobody@host.invalid"\n')
    real.answers = ["Use them"]
    await real.begin("vscode", tmp_path, status=True)
    text = (EXAMPLES / "nki_silu.py").read_text().replace("m=4096, n=7168", "m=256, n=1024")
    uri = real.open(tmp_path / "nki_silu.py", text)
    await real.title(uri, "us on trn1")

    async def down() -> bool:
        return any(status.state == "host-unreachable" for status in real.statuses)

    await real.until(down, "the status")
    assert real.messages == []


async def begun(environment: dict[str, str], folder: Path) -> Editor:
    client = Editor()
    client.patience = 150.0
    await client.start_io(str(Path(sys.executable).with_name("accelopt-lsp")), env=environment)
    await client.begin("vscode", folder, pages=True, settings={"search": {"candidates": 4, "minutes": 5}})
    return client


@pytest.mark.slow
@pytest.mark.long
async def test_a_search_goes_on_after_the_server_was_killed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Pause, kill, restart, resume: what was paid for is remembered, and the page of the searches tells all of it."""
    text = (EXAMPLES / "nki_silu.py").read_text().replace("m=4096, n=7168", "m=256, n=1024")
    first = await begun(environment, tmp_path)
    uri = first.open(tmp_path / "nki_silu.py", text)
    await first.title(uri, "us on trn1")
    await first.execute("optimize", uri)

    async def something_tried() -> bool:
        return bool(tried(environment))

    await first.until(something_tried, "a candidate that was tried")  # its check takes longer than this pause
    await first.execute("pause", {"uri": uri})
    await first.title(uri, "Resume the search")
    assert first._server is not None
    first._server.kill()
    await first.stop()

    second = await begun(environment, tmp_path)
    again = second.open(tmp_path / "nki_silu.py")
    await second.title(again, "Resume (")

    async def ended() -> bool:
        return not running(environment)

    await second.until(ended, "the end of the killed server's engine")  # until then it may write one more
    before = tried(environment)
    assert before
    await second.execute("resume", {"uri": again, "kernel": "silu"})
    await second.message("silu: ")
    after = tried(environment)
    assert set(before) < set(after)
    assert len(set(after)) == 4 + len(set(before))  # the budget is for what is new
    await second.execute("showRuns", {"uri": again})

    async def page() -> str:
        if not second.shown:
            return ""
        params = t.TextDocumentContentParams(second.shown[0])
        return (await second.workspace_text_document_content_async(params)).text

    looked = await second.until(page, "the page of the searches")
    assert "| cancelled |" in looked  # its engine saw the end of the pipe, and wrote that down
    assert "It took over what earlier runs had paid for." in looked
    await second.end()


def tried(environment: dict[str, str]) -> list[str]:
    """The rewrites whose cost any run wrote down."""
    return column(environment, "SELECT key FROM run_events WHERE kind = 'candidate tried'")


def running(environment: dict[str, str]) -> list[str]:
    """The searches that nothing says the end of."""
    return column(environment, "SELECT id FROM runs WHERE status = 'running'")


def column(environment: dict[str, str], query: str) -> list[str]:
    with sqlite3.connect(f"file:{environment['ACCELOPT_DB']}?mode=ro", uri=True) as database:
        return [row[0] for row in database.execute(query).fetchall()]


@pytest.mark.slow
@pytest.mark.parametrize("added", [False, True], ids=["loose", "added"])
async def test_no_python_of_another_folder_is_run_before_it_is_trusted(
    real: Editor, tmp_path: Path, added: bool
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        python = folder / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\ntouch "{folder}/ran"\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    real.answers = ["Trust this folder"]
    allow = real.hold_answers()
    text = (EXAMPLES / "nki_silu.py").read_text().replace("m=4096, n=7168", "m=256, n=1024")
    await real.begin("vscode", first)
    await real.title(real.open(first / "k.py", text), "est.")
    assert (first / "ran").exists()
    if added:
        event = t.WorkspaceFoldersChangeEvent([t.WorkspaceFolder(second.as_uri(), "second")], [])
        real.workspace_did_change_workspace_folders(t.DidChangeWorkspaceFoldersParams(event))
    uri = real.open(second / "k.py", text)
    await real.title(uri, "is not trusted")
    assert [str(second) in question.message for question in await real.await_questions()] == [True]
    assert not (second / "ran").exists()
    allow.set()
    await real.title(uri, "est.")
    assert (second / "ran").exists()
