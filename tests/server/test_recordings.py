"""Record from a test: the tests that reach the file are offered, and the chosen one is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.editor import Editor

TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def scaled(x):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
TEST = """
import torch
from scales import scaled

def test_scaled():
    x = torch.randn(100, device="cuda")
    torch.testing.assert_close(scaled(x), 2 * x)
"""


def project(folder: Path) -> Path:
    (folder / ".git").mkdir()
    (folder / "tests").mkdir()
    (folder / "conftest.py").touch()
    (folder / "tests" / "test_scales.py").write_text(TEST, encoding="utf-8")
    return folder / "scales.py"


@pytest.mark.slow
async def test_a_person_who_chooses_nothing_runs_nothing(editor: Editor, tmp_path: Path) -> None:
    path = project(tmp_path)
    await editor.begin("vscode", tmp_path)
    uri = editor.open(path, TRITON)
    action = await editor.action(uri, 6, "Record from a test...")
    assert action.command is not None
    await editor.execute("record", {"uri": uri})
    (question,) = await editor.await_questions()
    assert [a.title for a in question.actions or []] == ["tests/test_scales.py"]

    async def refused() -> bool:  # while the question is open, its job is the answer
        await editor.execute("record", {"uri": uri, "test": "tests/../other.py"})
        return any("none of the tests that reach this file" in m.message for m in editor.messages)

    await editor.until(refused, "the refusal")
    assert not path.with_name("scales_recording.json").exists()


async def test_an_untrusted_workspace_runs_nothing(editor: Editor, tmp_path: Path) -> None:
    path = project(tmp_path)
    await editor.begin("vscode", tmp_path, trusted=False)
    uri = editor.open(path, TRITON)
    answer = await editor.execute("record", {"uri": uri, "test": "tests/test_scales.py"})
    assert answer["job"] is None
    assert "not trusted" in answer["message"]
    assert not any("Record" in action.title for action in await editor.actions(uri, 6))


@pytest.mark.slow
async def test_the_chosen_test_becomes_the_file_s_problem(editor: Editor, tmp_path: Path) -> None:
    path = project(tmp_path)
    await editor.begin("vscode", tmp_path)
    uri = editor.open(path, TRITON)
    editor.answers.append("tests/test_scales.py")
    await editor.execute("record", uri)
    assert "scale_kernel (1)" in await editor.message("scales_recording.json was written")
    recorded = json.loads(path.with_name("scales_recording.json").read_text(encoding="utf-8"))
    assert recorded["command"] == ["pytest", "-q", "tests/test_scales.py"]
    assert [call["entry"] for call in recorded["calls"]] == ["scaled"]
