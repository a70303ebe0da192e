"""Open, edit, save, close: what each kind of editor is shown."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import CLIENTS, Editor
from support.scripted_kernels import KERNELS


@pytest.mark.parametrize("client", CLIENTS)
async def test_open_edit_and_save(editor: Editor, tmp_path: Path, client: str) -> None:
    await editor.begin(client, tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    title = await editor.title(uri, "est. 900 us")
    assert title == "est. 900 us on trn1 · VectorE bound · 41 %"
    await editor.title(uri, "est. 300 us")

    editor.replace(uri, "COST = 900", "COST = 450")
    assert (await editor.title(uri, "before this edit")).startswith("before this edit: est. 900 us")
    assert [x for x in await editor.titles(uri) if x.startswith("est. 300")], "the other kernel is not old"

    editor.save(uri)
    title = await editor.title(uri, "faster")
    assert title == "est. 450 us on trn1 · VectorE bound · 41 % · 2.0x faster than last save"
    assert editor.diagnostics.get(uri, []) == []


@pytest.mark.slow
async def test_a_slower_save_is_a_warning(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 900 us")
    editor.replace(uri, "COST = 900", "COST = 1800")
    editor.save(uri)
    diagnostic = await editor.diagnostic(uri, "regression")
    assert diagnostic.message == "silu is 2.0x slower than last save: est. 1.8 ms, before est. 900 us."
    assert (diagnostic.severity, diagnostic.source, diagnostic.range.start.line) == (
        t.DiagnosticSeverity.Warning,
        "accelopt",
        12,
    )
    assert diagnostic.code_description is not None
    assert diagnostic.code_description.href.endswith("/regression.md")


async def test_results_stay_beside_their_code(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 300 us")
    document = t.TextDocumentIdentifier(uri)
    everything = t.Range(t.Position(0, 0), t.Position(99, 0))

    async def lines() -> tuple[list[int], list[int]]:
        lenses = await editor.text_document_code_lens_async(t.CodeLensParams(document))
        hints = await editor.text_document_inlay_hint_async(t.InlayHintParams(document, everything))
        return sorted({x.range.start.line for x in lenses or []}), [x.position.line for x in hints or []]

    assert await lines() == ([11, 17], [13, 19])
    editor.replace(uri, "def get_inputs", "# three\n# more\n# lines\ndef get_inputs")
    assert await lines() == ([14, 20], [16, 22])
    assert all("before this edit" not in title for title in await editor.titles(uri)), (
        "comments change nothing"
    )
    editor.replace(uri, "# three\n# more\n", "")
    assert await lines() == ([12, 18], [14, 20])


async def test_hover_has_the_whole_table(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 300 us")
    at = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(12, 5))
    hover = await editor.text_document_hover_async(at)
    assert hover is not None
    assert isinstance(hover.contents, t.MarkupContent)
    assert hover.contents.kind is t.MarkupKind.Markdown
    for part in (
        "| time | 900 us | estimated |",
        "| instructions | 2,688 | executed |",
        "agrees with the reference",
    ):
        assert part in hover.contents.value
    elsewhere = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(3, 1))
    assert await editor.text_document_hover_async(elsewhere) is None


@pytest.mark.slow
async def test_a_save_during_a_profile_starts_it_again(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, status=True)
    uri = editor.open(tmp_path / "k.py", KERNELS + "\nHOLD = 1\n")
    await editor.title(uri, "profiling...")
    editor.replace(uri, "HOLD = 1", "HOLD = 0")
    editor.replace(uri, "COST = 900", "COST = 600")
    editor.save(uri)
    await editor.title(uri, "est. 600 us")
    await editor.title(uri, "est. 300 us")

    async def idle() -> bool:
        return bool(editor.statuses) and editor.statuses[-1].state == "idle"

    await editor.until(idle, "an idle server")
    assert [m.message for m in editor.messages] == []


async def test_closing_takes_back_the_diagnostics(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS.replace("COST = 300", "WRONG = 1"))
    diagnostic = await editor.diagnostic(uri, "wrong-result")
    assert diagnostic.severity is t.DiagnosticSeverity.Error
    assert (await editor.title(uri, "wrong result")).startswith("wrong result · not measured")
    editor.close(uri)
    await editor.no_diagnostic(uri, "wrong-result")


async def test_a_problem_file_that_is_saved_profiles_its_kernels(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 300 us")
    before = editor.refreshed["lens"]
    problem = editor.open(tmp_path / "k_problem.py", "x = 1\n")
    editor.save(problem)

    async def refreshed() -> bool:
        return editor.refreshed["lens"] > before

    await editor.until(refreshed, "a new profile of k.py")
