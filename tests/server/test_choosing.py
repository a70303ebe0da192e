"""Several checked versions of one kernel: listed, chosen, kept fresh; and how a search tells its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.scripted_kernels import KERNELS, optimized, recorded

SEVERAL = KERNELS.replace("import", "SEVERAL = 1\nimport", 1)
BEST, OTHER = "2.0x est. (1.8-2.2)", "1.11x est. (1.00-1.22), no modelled cost rises"


async def searched(editor: Editor, client: str, path: Path, **options: Any) -> str:
    await editor.begin(client, path.parent, **options)
    uri = editor.open(path, SEVERAL)
    await editor.title(uri, "est. 300 us")
    await editor.execute("optimize", {"uri": uri, "kernel": "silu"})
    await editor.title(uri, "2 checked: 2.0x est.")
    return uri


async def lens(editor: Editor, uri: str, has: str) -> t.Command:
    lenses = await editor.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    return next(lens.command for lens in lenses or [] if lens.command and has in lens.command.title)


@pytest.mark.slow
async def test_a_client_that_lists_them_itself(editor: Editor, tmp_path: Path) -> None:
    ended: list[Any] = []

    @editor.feature("accelopt/searchEnded")
    def end(params: Any) -> None:
        ended.append(params)

    commands = ["accelopt.showSuggestion", "accelopt.showVersions"]
    uri = await searched(editor, "vscode", tmp_path / "k.py", searchEnded=True, clientCommands=commands)
    every = await lens(editor, uri, "2 checked")
    assert (every.command, list(every.arguments or [])) == (
        "accelopt.showVersions",
        [{"uri": uri, "kernel": "silu"}],
    )
    listed = (await editor.execute("versions", {"uri": uri, "line": 14}))["versions"]
    assert [(one["speedup"], one["summary"]) for one in listed] == [
        (BEST, "Halve the cost."),
        (OTHER, "Take a tenth off."),
    ]
    assert listed[0]["title"] == f"silu: {BEST}, rule halve"
    assert listed[0]["latency"] == "est. 450 us on trn1"
    assert (await editor.execute("versions", {"uri": uri, "kernel": "gelu"}))["versions"] == []
    assert (await editor.execute("versions", {}))["versions"] == listed

    async def told() -> bool:
        return bool(ended)

    await editor.until(told, "the end of the search")
    (end_of_search,) = ended
    assert "2 candidates tried" in end_of_search.message
    assert [one.id for one in end_of_search.versions] == [one["id"] for one in listed]
    assert all("candidates tried" not in message.message for message in editor.messages)


@pytest.mark.slow
async def test_any_other_client_is_asked(editor: Editor, tmp_path: Path, decisions: Path) -> None:
    uri = await searched(editor, "neovim", tmp_path / "k.py")
    every = await lens(editor, uri, "2 checked")
    assert every.command == "accelopt.server.choose"
    second = f"2. {OTHER} · Take a tenth off · rule halve"
    editor.answers = [second, "Apply"]
    await editor.execute("choose", *(every.arguments or []))
    assert await recorded(editor, decisions) == ["accepted"]
    assert "COST = 810" in editor.texts[uri]
    which, whether, _ = await editor.await_questions(3)
    assert [item.title for item in which.actions or []][1] == second
    assert "Apply it to silu?" in whether.message
    await editor.execute("choose", {"uri": uri, "kernel": "gelu"})
    await editor.message("Nothing faster is known for gelu; optimize it first.")


@pytest.mark.slow
async def test_giving_up_while_it_asks_harms_nothing(editor: Editor, tmp_path: Path) -> None:
    """An answer to a question whose job was cancelled: pygls fails on one to a request that was taken back."""
    uri = await searched(editor, "neovim", tmp_path / "k.py")
    answer = editor.hold_answers()
    job = (await editor.execute("choose", {"uri": uri, "kernel": "silu"}))["job"]

    await editor.await_questions()
    assert (await editor.execute("cancel", {"job": job}))["cancelled"] == [job]
    answer.set()
    assert "COST = 900" in editor.texts[uri]
    assert (await editor.execute("versions", {"uri": uri}))["versions"]


@pytest.mark.slow
async def test_what_the_editor_shows_of_a_version_follows_the_file(editor: Editor, tmp_path: Path) -> None:
    uri = await optimized(editor, "vscode", tmp_path / "k.py")
    (version,) = (await editor.execute("versions", {"uri": uri, "kernel": "silu"}))["versions"]
    address = f"accelopt-candidate:{tmp_path}/k.py?id%3D{version['id']}"
    text = await editor.text_document_content(address)
    assert "COST = 450" in text
    assert "# moved down" not in text
    editor.replace(uri, "import neuronxcc.nki as nki\n", "import neuronxcc.nki as nki\n\n# moved down\n")

    async def told() -> bool:
        return editor.newer == [address]

    await editor.until(told, "a refresh of the version")
    assert "# moved down" in await editor.text_document_content(address)


@pytest.mark.slow
async def test_a_light_bulb_is_for_what_is_faster(editor: Editor, tmp_path: Path) -> None:
    """What the editor asks for by itself at every move of the cursor."""
    uri = await optimized(editor, "vscode", tmp_path / "k.py")

    async def by_itself(line: int) -> set[str]:
        at = t.Range(t.Position(line - 1, 0), t.Position(line - 1, 0))
        context = t.CodeActionContext([], trigger_kind=t.CodeActionTriggerKind.Automatic)
        params = t.CodeActionParams(t.TextDocumentIdentifier(uri), at, context)
        code_actions = await editor.text_document_code_action_async(params)
        return {str(action.kind) for action in code_actions or [] if isinstance(action, t.CodeAction)}

    assert await by_itself(13) == {"refactor.rewrite.accelopt.suggestion"}
    assert await by_itself(18) == set()
    assert await by_itself(1) == {"quickfix.accelopt"}, "type stubs for an import that nothing resolves"
    assert any("Profile this file" in action.title for action in await editor.actions(uri, 1))


@pytest.mark.slow
async def test_a_client_that_refuses_to_watch_is_served(editor: Editor, tmp_path: Path) -> None:
    editor.registers_nothing = True
    await editor.begin("vscode", tmp_path)
    path = tmp_path / "k.py"
    uri = editor.open(path, KERNELS)
    await editor.title(uri, "est. 900 us")
    changed = KERNELS.replace("COST = 900", "COST = 450")
    path.write_text(changed)  # the server itself sees it
    editor.set_text(uri, changed)
    await editor.title(uri, "est. 450 us")
