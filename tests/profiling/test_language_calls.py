"""Calls of functions that a version of NKI or Triton lacks: told where that is certain, and nowhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from accelopt_profiling.language_calls import call_findings, version_calls

NKI = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
TRITON = "import triton\nimport triton.language as tl\n"
BETA1 = "import neuronxcc.nki.language as nl\n"
ROOT = Path(__file__).parents[2]


def told(text: str, nki: str = "0.7", triton: tuple[int, int] | None = (3, 7)) -> list[str]:
    return [f.message for f in call_findings(version_calls(ast.parse(text)), nki, triton)]


@pytest.mark.parametrize(
    ("text", "nki", "triton", "message"),
    [
        (NKI + "nl.loop_reduce(x)", "0.7", None, "nl.loop_reduce is gone since NKI 0.1"),
        (NKI + "nl.tiles(x)", "0.6", None, "nl.tiles came with NKI 0.7, and this is NKI 0.6"),
        (NKI + "nki.language.tiles(x)", "0.6", None, "nl.tiles came with NKI 0.7"),
        (NKI + "nisa.tensor_copi(x)", "0.7", None, "nki.isa has no tensor_copi; it has tensor_copy"),
        (BETA1 + "nl.affine_rang(4)", "0.7", None, "neuronxcc.nki.language has no affine_rang"),
        (TRITON + "tl.squeeze(x, 0)", "0.7", (3, 6), "tl.squeeze is there since Triton 3.7"),
        (TRITON + "tl.make_block_ptr(x)", "0.7", (3, 9), "tl.make_block_ptr is gone since Triton 3.9"),
        (TRITON + "tl.cidv(x, 2)", "0.7", (3, 7), "Triton has no tl.cidv; it has tl.cdiv"),
    ],
)
def test_what_a_version_lacks_is_told(
    text: str, nki: str, triton: tuple[int, int] | None, message: str
) -> None:
    (sentence,) = told(text, nki, triton)
    assert sentence.startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        TRITON + "tl.load(p)",
        TRITON + "tl.static_range(4)",
        TRITON + "tl.my_own_thing(4)",
        TRITON + "tl.math.exp(4)",
        TRITON + "if hasattr(tl, 'squeeze'):\n    tl.atomic_load(p)",
        TRITON + "if TRITON_VERSION < (3, 9):\n    tl.atomic_load(p)\n",
        TRITON + "try:\n    tl.atomic_load(p)\nexcept AttributeError:\n    pass",
        TRITON + "tl = other\ntl.atomic_load(p)",
        TRITON + "def f(tl):\n    tl.atomic_load(p)",
        NKI + "nl.sequential_range(4)",
        NKI + "nl.NkiTensor(4)\nnl.float32(2)\nnisa.engine(1)",
        BETA1 + "nl.loop_reduce(x)\nnl.par_dim(4)",
        "import numpy as nl\nnl.loop_reduce(x)",
        "nl.loop_reduce(x)",
    ],
)
def test_what_is_not_certain_is_not_told(text: str) -> None:
    assert told(text) == []


def test_of_a_triton_that_is_not_known_nothing_is_told() -> None:
    assert told(TRITON + "tl.cidv(x)\ntl.atomic_load(p)", triton=None) == []


def test_no_kernel_of_the_project_calls_what_its_version_lacks() -> None:
    paths = [*(ROOT / "examples").glob("*.py"), *(ROOT / "nkibench/nkibench/tasks").rglob("*.py")]
    assert len(paths) > 30
    assert [(path, told(path.read_text())) for path in paths if told(path.read_text())] == []
