"""The server as a writer of kernels meets it: completion, parameters, hover, and calls that a version lacks."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor

from accelopt_lsp.server.configuration import SettingsCache
from accelopt_lsp.server.language_versions import LanguageVersionsCache

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scale(a):
    x = nl.load(a)  # é
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(y, nl.exp, x)
    return y
"""


def place(uri: str, text: str, mark: str) -> tuple[t.TextDocumentIdentifier, t.Position]:
    """The place behind ``mark``, where it stands first."""
    before = text[: text.index(mark) + len(mark)]
    line = before[before.rfind("\n") + 1 :]
    return t.TextDocumentIdentifier(uri), t.Position(before.count("\n"), len(line))


async def completed(editor: Editor, uri: str, mark: str) -> dict[str, t.CompletionItem]:
    where = place(uri, editor.texts[uri], mark)
    items = await editor.text_document_completion_async(t.CompletionParams(*where))
    assert isinstance(items, list)
    return {item.label: item for item in items}


@pytest.mark.slow
@pytest.mark.parametrize("client", ["none", "neovim", "vscode"])
async def test_names_and_parameters_while_a_line_is_typed(
    editor: Editor, client: str, tmp_path: Path
) -> None:
    result = await editor.begin(client, tmp_path)
    assert result.capabilities.completion_provider is not None
    assert result.capabilities.signature_help_provider is not None
    uri = editor.open(tmp_path / "k.py", KERNEL)
    editor.replace(uri, "    return y\n", "    z = nl.\n    return y\n")
    items = await completed(editor, uri, "z = nl.")
    assert items["exp"].detail == "(x, dtype=None)"
    assert items["exp"].kind == t.CompletionItemKind.Function
    struck = t.CompletionItemTag.Deprecated in (items["affine_range"].tags or ())
    assert struck == (client == "neovim"), "of the three this one says that it takes tags"
    editor.replace(uri, "z = nl.\n", "z = nl.matmul(x, \n")
    help_there = await editor.text_document_signature_help_async(
        t.SignatureHelpParams(*place(uri, editor.texts[uri], "nl.matmul(x, "))
    )
    assert help_there is not None
    (signature,) = help_there.signatures
    assert signature.label == "nl.matmul(x, y, transpose_x=False)"
    assert help_there.active_parameter == 1
    assert isinstance(signature.documentation, t.MarkupContent)
    assert (signature.documentation.kind == t.MarkupKind.Markdown) == (client == "neovim")
    hover = await editor.text_document_hover_async(t.HoverParams(*place(uri, editor.texts[uri], "nisa.acti")))
    assert hover is not None
    assert "nisa.activation(dst, op, data" in hover.contents.value  # type: ignore[union-attr]


@pytest.mark.slow
async def test_a_call_that_the_version_lacks_is_told_while_typing(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNEL)

    async def told(what: str) -> bool:
        return any(
            d.code == "unknown-function" and what in d.message for d in editor.diagnostics.get(uri, ())
        )

    editor.replace(uri, "nl.load(a)", "nl.loop_reduce(a, nl.add, [])")
    await editor.until(lambda: told("gone since NKI 0.1"), "the finding")
    editor.replace(uri, "nl.loop_reduce(a, nl.add, [])", "nl.laod(a)")
    await editor.until(lambda: told("it has load"), "the finding")
    editor.replace(uri, "nl.laod(a)", "nl.load(a)")

    async def gone() -> bool:
        return not await told("")

    await editor.until(gone, "no finding")


@pytest.mark.slow
async def test_an_import_that_nothing_resolves_offers_stubs_until_they_are_there(
    editor: Editor, tmp_path: Path
) -> None:
    await editor.begin("vscode", tmp_path)
    (tmp_path / "accelopt.toml").write_text("")
    uri = editor.open(tmp_path / "k.py", KERNEL)
    title = "Write type stubs of NKI into typings/"

    async def offered(line: int) -> list[t.CodeAction]:
        at = t.Range(t.Position(line, 0), t.Position(line, 0))
        automatic = t.CodeActionContext([], trigger_kind=t.CodeActionTriggerKind.Automatic)
        params = t.CodeActionParams(t.TextDocumentIdentifier(uri), at, automatic)
        actions = await editor.text_document_code_action_async(params)
        return [a for a in actions or [] if isinstance(a, t.CodeAction) and a.title == title]

    async def one() -> list[t.CodeAction]:
        return await offered(1)

    (action,) = await editor.until(one, "the offer")
    assert action.kind == "quickfix.accelopt"
    assert action.command is not None
    assert await offered(7) == []
    await editor.execute("writeStubs", *(action.command.arguments or []))
    await editor.message("Wrote 14 type stubs of NKI")
    assert (tmp_path / "typings/nki/language.pyi").is_file()

    async def none() -> bool:
        return not await offered(1)

    await editor.until(none, "no offer any more")
    items = await completed(editor, uri, "y = nl.")
    assert "exp" not in items, "the type checker has them now"


async def test_what_is_installed_is_not_known_before_the_file_was_read(tmp_path: Path) -> None:
    """Else stubs would be offered where the package is."""
    path = tmp_path / "k.py"
    configuration = SettingsCache(pytest.fail)
    versions = LanguageVersionsCache(configuration)
    assert versions.known(str(path)) is None
    settings = await configuration.of(str(path))
    assert versions.known(str(path)) is None
    await versions.read(settings)
    assert versions.known(str(path)) == versions.cached(str(path))


@pytest.mark.slow
async def test_what_a_kernel_costs_on_each_target_is_a_page(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path, pages=True)
    uri = editor.open(tmp_path / "k.py", KERNEL.replace("return y", "COST = 900\n    return y"))
    await editor.title(uri, "est. 900 us")
    assert "On other targets: not computed for this text" in await kernel_hover(editor, uri)
    await editor.execute("compareTargets", {"uri": uri, "line": 8})

    async def shown() -> str | None:
        return next((page for page in editor.shown if "targets" in page), None)

    page = await editor.until(shown, "the page")
    content = await editor.workspace_text_document_content_async(t.TextDocumentContentParams(page))
    assert "# scale on each target" in content.text
    rows = [line for line in content.text.splitlines() if line.startswith("| trn")]
    assert [row.split()[1] for row in rows] == ["trn1", "trn2", "trn3"]
    assert all("900 us" in row for row in rows)
    shown_there = await kernel_hover(editor, uri)
    assert all(f"| {target} |" in shown_there for target in ("trn1", "trn2", "trn3"))
    editor.replace(uri, "COST = 900", "COST = 800")
    await editor.title(uri, "before this edit")
    assert "trn3" not in await kernel_hover(editor, uri)


async def kernel_hover(editor: Editor, uri: str) -> str:
    """What the hover over the head of the kernel ``scale`` says."""
    line = next(n for n, text in enumerate(editor.texts[uri].splitlines()) if text.startswith("def "))
    params = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(line, 6))
    answer = await editor.text_document_hover_async(params)
    assert answer is not None
    assert isinstance(answer.contents, t.MarkupContent)
    return answer.contents.value


@pytest.mark.slow
async def test_the_numbers_lead_to_the_cost_on_each_target_where_the_client_lists_them(
    editor: Editor, tmp_path: Path
) -> None:
    await editor.begin("vscode", tmp_path, clientCommands=["accelopt.showCosts"])
    uri = editor.open(tmp_path / "k.py", KERNEL.replace("return y", "COST = 900\n    return y"))
    await editor.title(uri, "est. 900 us")
    lenses = await editor.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))
    command = (lenses or [])[-1].command
    assert command is not None
    assert command.command == "accelopt.showCosts"
    answer = await editor.execute("targetCosts", *(command.arguments or []))
    assert (answer["kernel"], answer["dialect"], answer["target"]) == ("scale", "nki", "trn2")
    assert [cost["target"] for cost in answer["costs"]] == ["trn1", "trn2", "trn3"]
    assert all("900 us" in cost["time"] for cost in answer["costs"])
    assert "| trn3 |" in await kernel_hover(editor, uri)
