"""Problems through the server that users start: what a hover says of the result, save by save."""

from __future__ import annotations

from pathlib import Path

import lsprotocol.types as t
import pytest
from support.editor import Editor
from support.problem_kinds import AT_A_FRONT_END, KINDS, NOTHING

pytestmark = pytest.mark.slow


async def hover_with(editor: Editor, uri: str, line: int, words: str) -> None:
    """Wait until the hover on the 0-based ``line`` says ``words``."""
    place = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(line, 5))

    async def look() -> bool:
        hover = await editor.text_document_hover_async(place)
        contents = getattr(hover, "contents", "")
        return words in str(getattr(contents, "value", contents))

    await editor.until(look, f"a hover with {words!r}")


@pytest.mark.parametrize("kind", AT_A_FRONT_END)
async def test_the_server_compares_with_the_reference(real: Editor, tmp_path: Path, kind: str) -> None:
    case = KINDS[kind]
    path = case.write(tmp_path)
    line = case.files[case.kernel].split(f"def {case.name}(")[0].count("\n")
    await real.begin("vscode", tmp_path)
    uri = real.open(path)
    await real.title(uri, f"us on {case.target}")
    if not case.checks:
        await hover_with(real, uri, line, "not checked")
        return
    await hover_with(real, uri, line, "agrees with the reference")
    real.set_text(uri, case.changed(case.fault))
    real.save(uri)
    diagnostic = await real.diagnostic(uri, "wrong-result")
    assert "times what is allowed" in diagnostic.message
    real.set_text(uri, case.changed(case.rewrite))
    real.save(uri)
    await hover_with(real, uri, line, "agrees with the reference")
    await real.no_diagnostic(uri, "wrong-result")


async def test_a_kernel_without_a_problem(real: Editor, tmp_path: Path) -> None:
    await real.begin("vscode", tmp_path)
    uri = real.open(NOTHING.write(tmp_path))
    assert "problem" in (await real.diagnostic(uri, "inferred-problem")).message
