"""What is known of a document's kernels as text."""

from __future__ import annotations

from pathlib import Path

from support.editor import Editor
from support.scripted_kernels import KERNELS


async def test_kernels_and_findings_of_an_open_document_are_told(editor: Editor, tmp_path: Path) -> None:
    await editor.begin("vscode", tmp_path)
    uri = editor.open(tmp_path / "k.py", KERNELS)
    await editor.title(uri, "est. 300 us")
    editor.replace(uri, "COST = 900", "COST = 1800")
    editor.save(uri)
    await editor.diagnostic(uri, "regression")
    answer = await editor.execute("costs", {"uri": uri})
    slower, other = answer["kernels"]
    assert "1.8 ms" in slower["text"]
    assert "300 us" in other["text"]
    assert [finding["code"] for finding in answer["findings"]] == ["regression"]
    assert answer["findings"][0]["message"].startswith("silu is 2.0x slower")
    nothing = {"kernels": [], "findings": []}
    assert await editor.execute("costs", {"uri": (tmp_path / "closed.py").as_uri()}) == nothing
