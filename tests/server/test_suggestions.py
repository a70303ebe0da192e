"""Optimize, look, accept, reject, cancel: by lens, by code action and by command, in each kind of editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import CLIENTS, Editor
from support.forked import Parent
from support.nki_kernels import SILU
from support.scripted_kernels import KERNELS, decided, optimized, recorded

from accelopt_lsp.server.change_learning import ProfiledTexts
from accelopt_profiling.kernels import find_kernels

SUGGESTION = "refactor.rewrite.accelopt.suggestion"


@pytest.mark.parametrize("client", CLIENTS)
async def test_accept_by_code_action(editor: Editor, tmp_path: Path, decisions: Path, client: str) -> None:
    """As the editor does it: choose the action, resolve it where it can, apply its edit, run its command."""
    uri = await optimized(editor, client, tmp_path / "k.py")
    action = await editor.action(uri, 13, "Halve the cost")
    assert action.title == "2.0x est. (1.8-2.2) · Halve the cost · rule halve"
    command: t.Command | None
    if isinstance(action, t.Command):  # a client that knows no code actions gets commands
        assert client == "none"
        command = action
    else:
        assert action.kind == SUGGESTION
        if action.data is not None:
            assert set(action.data) == {"id", "uri", "kernel", "hash"}
            assert (action.edit, action.command) == (None, None)
            action = await editor.code_action_resolve_async(action)
        command = action.command
        if action.edit is not None:
            assert editor.apply(action.edit)
    assert command is not None
    assert command.command == "accelopt.server.accept"
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))
    if client == "none":  # it said that it cannot apply edits, so nothing is changed or recorded
        await editor.message("applies no edits")
        assert decided(decisions) == []
        return
    assert await recorded(editor, decisions) == ["accepted"]
    assert "COST = 450" in editor.texts[uri]


@pytest.mark.slow
@pytest.mark.parametrize("client", ["vscode", "neovim"])
async def test_accept_with_apply(editor: Editor, tmp_path: Path, decisions: Path, client: str) -> None:
    """The Accept button of the diff view: the server makes the edit, and records it once it is made."""
    uri = await optimized(editor, client, tmp_path / "k.py")
    editor.replace(uri, "import neuronxcc.nki as nki\n", "import neuronxcc.nki as nki\n\n# moved down\n")
    action = await editor.action(uri, 16, "Halve the cost")
    argument = _argument(action)
    answer = await editor.execute("accept", {"id": argument["id"], "apply": True})
    assert answer["job"]
    assert await recorded(editor, decisions) == ["accepted"]
    assert "# moved down" in editor.texts[uri]
    assert "COST = 450" in editor.texts[uri]


async def test_a_kernel_that_changed_refuses_politely(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Halve the cost")
    assert isinstance(action, t.CodeAction)
    editor.replace(uri, "    COST = 900\n", "    COST = 900\n    y = x\n")
    resolved = await editor.code_action_resolve_async(action)
    assert resolved.edit is None
    await editor.message("silu has changed since")
    now = await editor.action(uri, 13, "Halve the cost")
    assert isinstance(now, t.CodeAction)
    assert now.disabled is not None
    await editor.execute("accept", {"id": action.data["id"], "apply": True})
    assert decided(decisions) == []


@pytest.mark.slow
async def test_an_accept_without_its_edit_is_not_recorded(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Halve the cost")
    await editor.execute("accept", {"id": _argument(action)["id"]})
    await editor.message("does not hold suggestion")
    assert decided(decisions) == []
    assert "COST = 900" in editor.texts[uri]


async def test_an_edit_that_the_editor_refuses_is_not_recorded(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Halve the cost")
    editor.versions[uri] += 7  # the editor is ahead of the server
    await editor.execute("accept", {"id": _argument(action)["id"], "apply": True})
    await editor.message("did not apply")
    assert decided(decisions) == []


async def test_an_edit_that_is_made_is_recorded_though_the_editor_ends(
    environment: dict[str, str], imported: Parent, tmp_path: Path, decisions: Path
) -> None:
    """As a person who accepts and closes the editor at once."""
    editor = Editor()
    await editor.start_io(*imported.command("support.scripted_server"), env=environment)
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Halve the cost")
    await editor.execute("accept", {"id": _argument(action)["id"], "apply": True})

    async def edited() -> bool:
        return "COST = 450" in editor.texts[uri]

    await editor.until(edited, "the edit")
    await editor.end()
    assert decided(decisions) == ["accepted"]


async def test_an_accepted_version_shows_its_time_at_once_and_undo_withdraws_it(
    editor: Editor, tmp_path: Path, decisions: Path
) -> None:
    """Before anything is saved or profiled; what is undone is no regression, by the message or by the editor."""
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    before, argument = editor.texts[uri], _argument(await editor.action(uri, 13, "Halve the cost"))
    editor.may_answer.clear()
    await editor.execute("accept", {"id": argument["id"], "apply": True})
    title = await editor.title(uri, "est. 450 us")
    assert "before this edit" not in title
    assert "2.0x faster than last save" in title
    assert not any("Remember" in action.title for action in await editor.actions(uri, 13)), (
        "its pair is known"
    )
    editor.answers += ["Show diff", "Undo"]
    editor.may_answer.set()
    title = await editor.title(uri, "est. 900 us")
    messages = [
        (question.message, [a.title for a in question.actions or []]) for question in editor.questions
    ]
    done = "Accepted for silu: Halve the cost, 2.0x est. (1.8-2.2). Remembered as pair accepted"
    assert [text.startswith(done) for text, _ in messages] == [True, True]
    assert [choices for _, choices in messages] == [["Undo", "Show diff"], ["Undo"]]
    assert "+    COST = 450" in Path(editor.shown_documents[0].uri.removeprefix("file://")).read_text()
    assert "before this edit" not in title
    assert editor.texts[uri] == before
    await editor.action(uri, 13, "Halve the cost")
    assert decided(decisions) == ["accepted", "offered again"]
    editor.save(uri)
    await editor.title(uri, "est. 900 us")
    assert not [d for d in editor.diagnostics[uri] if d.code == "regression"]


async def test_versions_are_listed_and_marked_outdated_as_the_text_changes(
    editor: Editor, tmp_path: Path
) -> None:
    """Of all open files; by an edit of the kernel, or of a line elsewhere that the suggestion changes too."""
    text = KERNELS.replace("\n\n", "\nBESIDE = 1\n\n", 1)
    uri = await optimized(editor, "vscode", tmp_path / "k.py", text, versions=True)

    async def versions() -> tuple[int, int]:
        answer = await editor.execute("versions", {})
        return len(answer["versions"]), len(answer["outdated"])

    (version,) = (await editor.execute("versions", {}))["versions"]
    assert "900 us" in version["review"]
    assert "450 us" in version["review"]
    for place in ("    COST = 900\n", "BESIDE = 1\n"):
        for old, new, count in ((place, f"{place[:-1]}0\n", (0, 1)), (f"{place[:-1]}0\n", place, (1, 0))):
            told = len(editor.listed)
            editor.replace(uri, old, new)
            await editor.until(lambda told=told: len(editor.listed) > told, "word of other versions")
            assert await versions() == count, (old, new)


async def test_reject(editor: Editor, tmp_path: Path, decisions: Path) -> None:
    uri = await optimized(editor, "emacs", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Reject: Halve the cost.")
    assert isinstance(action, t.CodeAction)
    assert action.command is not None
    await editor.execute("reject", *(action.command.arguments or []))
    assert await recorded(editor, decisions) == ["rejected"]

    async def gone() -> bool:
        return all("Halve" not in a.title for a in await editor.actions(uri, 13))

    await editor.until(gone, "no suggestion")


@pytest.mark.parametrize(
    ("answer", "then"), [("Undo", "offered again"), ("unreadable", "rejected unreadable")]
)
async def test_a_rejection_asks_why_and_can_be_undone(
    editor: Editor, tmp_path: Path, decisions: Path, answer: str, then: str
) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    action = await editor.action(uri, 13, "Reject: Halve the cost.")
    editor.answers.append(answer)
    await editor.execute("reject", _argument(action))

    async def both() -> bool:
        return decided(decisions) == ["rejected", then]

    await editor.until(both, "the answer is recorded")
    if answer == "Undo":
        await editor.action(uri, 13, "Halve the cost")


async def test_a_change_that_made_a_kernel_faster_can_be_remembered(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    assert not any("Remember" in action.title for action in await editor.actions(uri, 13))
    editor.replace(uri, "COST = 900\n", "COST = 450\n\n")
    editor.save(uri)
    action = await editor.action(uri, 13, "Remember this change to silu (2.0x faster than last save)")
    await editor.execute("remember", _argument(action))
    count = len(KERNELS.splitlines())
    message = await editor.message("Remembered the change to silu")
    assert f"{count} lines before, {count + 1} now" in message


def test_the_slow_side_of_a_changed_constant_is_the_text_before_it() -> None:
    slow, fast = (SILU, SILU.replace("COLUMNS = 128", "COLUMNS = 256"))
    texts = ProfiledTexts()
    for text in (slow, fast):
        texts.note("u", find_kernels(text))
    (kernel,) = find_kernels(fast).kernels
    assert texts.holding("u", kernel.content_hash, fast) == slow
    assert texts.holding("u", kernel.content_hash, "edited since") == fast


async def test_what_is_remembered_is_shown_and_forgotten_after_a_question(
    editor: Editor, tmp_path: Path
) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    action = await editor.action(uri, 13, "Show remembered changes of kernels like this one")
    for argument, title in ((_argument(action), "silu"), ({"uri": uri, "query": "split k"}, "split k")):
        editor.shown.clear()
        await editor.execute("showMemory", argument)

        async def shown() -> bool:
            return bool(editor.shown)

        await editor.until(shown, "the page")
        page = await editor.workspace_text_document_content_async(
            t.TextDocumentContentParams(editor.shown[0])
        )
        assert page.text.startswith(f"# Remembered changes: {title}")
    editor.answers = ["Keep", "Forget"]
    await editor.execute("forget", {"uri": uri, "id": "abcd"})
    await editor.execute("forget", {"uri": uri, "id": "ef01"})
    await editor.message("Forgot the pair ef01.")
    assert not any("abcd." in shown.message for shown in editor.messages)
    assert (await editor.execute("pairs", {}))["pairs"] == [{"id": "abcd", "folders": [str(tmp_path)]}]
    assert await editor.execute("pairs", {"id": "abcd"}) == {"slow": "abcd before", "fast": "abcd after"}


@pytest.mark.slow
async def test_ask_before_applying(editor: Editor, tmp_path: Path, decisions: Path) -> None:
    """The lens of a suggestion where the client has no diff view of its own: a question, the diff on request."""
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    lenses = await editor.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    command = next(x.command for x in lenses or [] if x.command and "checked" in x.command.title)
    editor.answers = ["Show diff", "Not now"]
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))
    await editor.await_questions(2)
    address = editor.shown_documents[0].uri
    assert address.endswith(".patch")
    assert "+    COST = 450" in Path(address.removeprefix("file://")).read_text()
    assert decided(decisions) == []
    editor.answers = ["Apply"]
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))
    assert await recorded(editor, decisions) == ["accepted"]


@pytest.mark.slow
async def test_a_client_with_a_diff_view_is_asked_to_show_it(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", clientCommands=["accelopt.showSuggestion"])
    action = await editor.action(uri, 13, "Halve the cost")
    assert isinstance(action, t.CodeAction)
    assert action.data is None
    assert action.command is not None
    assert action.command.command == "accelopt.showSuggestion"
    argument = (action.command.arguments or [{}])[0]
    assert (argument["uri"], bool(argument["id"]), bool(argument["title"])) == (uri, True, True)


@pytest.mark.slow
async def test_the_text_of_a_candidate(editor: Editor, tmp_path: Path) -> None:
    """The right side of the diff: by dynamic registration, or by the custom request; always the current text."""
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    schemes = [
        r.register_options["schemes"]
        for r in editor.registrations
        if r.method == t.WORKSPACE_TEXT_DOCUMENT_CONTENT and isinstance(r.register_options, dict)
    ]
    registered = [r.method for r in editor.registrations]
    assert t.WORKSPACE_TEXT_DOCUMENT_CONTENT in registered, (registered, schemes)
    editor.replace(uri, "COST = 300", "COST = 301")
    argument = _argument(await editor.action(uri, 13, "Halve the cost"))
    for query in (f"id={argument['id']}", f"id%3D{argument['id']}"):
        address = f"accelopt-candidate:{tmp_path}/k.py?{query}"
        content = await editor.workspace_text_document_content_async(t.TextDocumentContentParams(address))
        assert content.text == editor.texts[uri].replace("COST = 900", "COST = 450")
    same = await editor.protocol.send_request_async("accelopt/candidate", {"uri": address})
    assert same.text == content.text


async def test_model_code_is_labelled_where_the_client_knows_the_tag(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", KERNELS + "\nMODEL = 1\n")
    action = await editor.action(uri, 13, "written by the model scripted")
    assert isinstance(action, t.CodeAction)
    assert list(action.tags or []) == [t.CodeActionTag.LlmGenerated]


@pytest.mark.slow
async def test_cancel_a_search_from_its_progress(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py", KERNELS.replace("import", "HOLD = 0\nimport"))
    editor.replace(uri, "HOLD = 0", "HOLD = 1")
    editor.replace(uri, "COST = 900", "COST = 800")
    await editor.execute("optimize", uri, 14)
    await editor.title(uri, "Cancel")
    token = await editor.until(lambda: _running_progress(editor), "progress")
    editor.window_work_done_progress_cancel(t.WorkDoneProgressCancelParams(token))

    async def ended() -> bool:
        return isinstance(editor.progress_reports[token][-1], t.WorkDoneProgressEnd)

    await editor.until(ended, "the end of the progress")
    assert all("Cancel" not in title for title in await editor.titles(uri))


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
async def test_cancel_by_code_action(editor: Editor, tmp_path: Path, client: str) -> None:
    await editor.begin(client, tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS + "\nHOLD = 1\n")
    await editor.title(uri, "profiling...")
    action = await editor.action(uri, 13, "Cancel: Profiling k.py")
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    await editor.workspace_execute_command_async(t.ExecuteCommandParams(command.command, command.arguments))

    async def idle() -> bool:
        return all("profiling" not in title for title in await editor.titles(uri))

    await editor.until(idle, "no profile")


async def _running_progress(editor: Editor) -> Any:
    for token, reports in editor.progress_reports.items():
        if reports and isinstance(reports[-1], t.WorkDoneProgressReport) and "Optimizing" in reports[0].title:
            return token
    return None


def _argument(action: t.CodeAction | t.Command) -> dict[str, Any]:
    if isinstance(action, t.CodeAction) and action.data is not None:
        return dict(action.data)
    command = action if isinstance(action, t.Command) else action.command
    assert command is not None
    return dict((command.arguments or [{}])[0])


@pytest.mark.slow
async def test_what_the_person_wishes_reaches_the_search(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu", "instructions": "keep the tiles"})
    await editor.message("2 candidates tried. keep the tiles")
