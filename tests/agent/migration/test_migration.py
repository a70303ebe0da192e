"""Kernels of Beta 1 are moved to today's NKI: the text that comes out, and that it computes the same."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from accelopt_agent.migration.file_migration import FileMigration, is_beta1, migrate_text
from accelopt_agent.migration.open_index import plus, times
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.nki.equivalence import CaseComparison, CompareParams, compare_dialects
from accelopt_profiling.nki.tile_facts import FactsParams, tile_facts
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.language import par_dim
import numpy as np


@nki.jit(mode="simulation")
def kernel(a, b):
"""
TAIL = """

def get_inputs():
    generator = np.random.default_rng(5)
    a, b = (generator.standard_normal((256, 512), dtype=np.float32) for _ in range(2))
    return [a, np.abs(b) + 1]


def reference(a, b):
    return a
"""

#: A body and the text that stands for it today.
BODIES = {
    "what TensorE writes, into SBUF, and one value per partition": (
        """
        out = nl.ndarray((128, 2, 128), dtype=a.dtype, buffer=nl.shared_hbm)
        rows = nl.ndarray((2, par_dim(128), 128), dtype=a.dtype, buffer=nl.sbuf)
        whole = nl.ndarray((par_dim(128), 2, 128), dtype=a.dtype, buffer=nl.sbuf)
        column = nl.load(b[0:128, 0:2])
        for i in nl.affine_range(2):
            rows[i] = nisa.nc_transpose(nl.load(a[0:128, i * 128:i * 128 + 128]))
            total = nl.zeros((128, 128), nl.float32, buffer=nl.psum)
            total += nisa.nc_matmul(rows[i], rows[i])
            whole[:, i, :] = total
        shifted = nisa.tensor_tensor(whole, column[:, 1], nl.add)
        nl.store(out, shifted)
        return out
        """,
        [
            "nisa.tensor_copy(dst=rows[i], src=product_1)",
            "nisa.tensor_scalar(dst=shifted, data=whole, op0=nl.add, operand0=column[:, 1])",
        ],
    ),
    "indices and a store": (
        """
        out = nl.ndarray((256, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
        rows = nl.arange(128)[:, None]
        columns = nl.arange(512)[None, :]
        for i in nl.affine_range(2):
            tile = nl.load(a[i * 128 + rows, columns])  # kept
            nl.store(out[i * 128 + rows, columns], value=tile)
        return out
        """,
        [
            "for i in range(2):",
            "tile = nl.load(a[i * 128:i * 128 + 128, 0:512])  # kept",
            "nisa.dma_copy(dst=out[i * 128:i * 128 + 128, 0:512], src=tile)",
        ],
    ),
    "mgrid, operators and results": (
        """
        out = nl.ndarray((256, 512), dtype=a.dtype, buffer=nl.hbm)
        p, f = nl.mgrid[0:128, 0:512]
        for i in nl.sequential_range(2):
            x, y = nl.load(a[i * 128 + p, f]), nl.load(b[i * 128 + p, f])
            z = nisa.tensor_tensor(x, y, op=np.multiply)
            r = (z - 2.0) / y
            top = nisa.tensor_reduce(np.max, r, axis=[1], keepdims=True)
            s = nisa.tensor_scalar(r, np.subtract, top, engine=nisa.vector_engine)
            nl.store(out[i * 128 + p, f], nisa.activation(op=nl.exp, data=s, scale=-0.5))
        return out
        """,
        ["op=nl.maximum", "engine=nisa.engine.vector", "nisa.activation(dst=", "buffer=nl.shared_hbm"],
    ),
    "block dimensions and products": (
        """
        out = nl.ndarray((512, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        tiles = nl.ndarray((2, par_dim(128), 512), dtype=a.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(2):
            tiles[i, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.load(a[i * 128:(i + 1) * 128, :])
        for j in nl.affine_range(4):
            total = nl.zeros((par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
            for i in nl.affine_range(2):
                right = nl.load(b[i * 128:(i + 1) * 128, 0:512])
                left = tiles[i, nl.arange(128)[:, None], j * 128 + nl.arange(128)[None, :]]
                total[...] += nisa.nc_matmul(left, right)
            nl.store(out[j * 128 + nl.arange(128)[:, None], nl.arange(512)[None, :]], total)
        return out
        """,
        [
            "tiles = [nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf) for _ in range(2)]",
            "left = tiles[i][0:128, j * 128:j * 128 + 128]",
            "nisa.nc_matmul(dst=total, stationary=left, moving=right)",
            "src=nl.copy(total)",
        ],
    ),
    "masks": (
        """
        out = nl.ndarray((200, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.mgrid[0:128, 0:512]
        for i in nl.affine_range(2):
            inside = i * 128 + rows < 200
            x = nl.load(a[i * 128 + rows, columns], mask=inside)
            y = nl.multiply(x, 3.0, mask=inside)
            nl.store(out[i * 128 + rows, columns], y, mask=i * 128 + rows <= 199)
        return out
        """,
        ["inside = min(128, 200 - i * 128)", "dst=x[0:inside, :]", "src=a[i * 128:i * 128 + inside, 0:512]"],
    ),
    "reductions over loops, and an iota": (
        """
        out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(2):
            x = nl.load(a[i * 128:i * 128 + 128, :])
            total[...] = nl.loop_reduce(x, op=np.add, loop_indices=[i])
        places = nisa.iota(3 * nl.arange(128)[:, None] + nl.arange(512)[None, :], dtype=nl.float32)
        total[...] += places
        nl.store(out, total)
        return out
        """,
        ["if i == 0:", "pattern=[[1, 512]]", "channel_multiplier=3"],
    ),
}  # fmt: skip


def context_of(tmp_path: Path, text: str) -> StepContext:
    (tmp_path / "src").mkdir(exist_ok=True)
    (tmp_path / "src/kernel_file.py").write_text(text)
    return StepContext(tmp_path, JobFiles("kernel_file.py", {"kernel_file.py": text}), lambda _: None)


def moved(tmp_path: Path, text: str) -> tuple[FileMigration, list[CaseComparison]]:
    """Move ``text`` and compare both, as the steps of the worker do it, in this process."""
    ref = ProblemRef("module", None, "kernel")
    facts = tile_facts(context_of(tmp_path / "facts", text), FactsParams(ref, "trn2"))
    assert facts.stopped == ""
    result = migrate_text(text, facts.facts)
    params = CompareParams(ref, result.text, "trn2")
    return result, compare_dialects(context_of(tmp_path / "compare", text), params).cases


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in ("facts", "compare"):
        (tmp_path / name).mkdir()


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_moves_and_computes_the_same(tmp_path: Path, name: str) -> None:
    body, expected = BODIES[name]
    text = HEAD + textwrap.indent(textwrap.dedent(body), "    ") + TAIL
    result, cases = moved(tmp_path, text)
    assert result.unmoved == []
    for part in expected:
        assert part in result.text
    assert not is_beta1(result.text)
    assert "arange(" not in result.text
    assert [(c.equal, c.detail) for c in cases] == [(True, "")]
    assert cases[0].before_us
    assert cases[0].after_us


def test_what_cannot_be_moved_is_marked_with_its_reason_and_compared_as_it_is(tmp_path: Path) -> None:
    body = """
    out = nl.ndarray((4, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nisa.iota(2 * nl.arange(4)[:, None], dtype=np.int32)
    gathered = nl.load(a[rows, nl.arange(512)[None, :]])
    nl.store(out, gathered)
    return out
    """
    text = HEAD + textwrap.indent(textwrap.dedent(body), "    ") + TAIL
    result, cases = moved(tmp_path, text)
    assert [u.line for u in result.unmoved] == [13]
    assert "    # not moved: a tile as an index" in result.text
    assert not cases[0].equal
    assert cases[0].detail.startswith("line ") or "Error" in cases[0].detail


def test_a_difference_says_where(tmp_path: Path) -> None:
    body = textwrap.indent(textwrap.dedent(BODIES["indices and a store"][0]), "    ")
    text = HEAD + body + TAIL
    ref = ProblemRef("module", None, "kernel")
    facts = tile_facts(context_of(tmp_path / "facts", text), FactsParams(ref, "trn2"))
    wrong = migrate_text(text, facts.facts).text.replace("src=tile)", "src=nl.multiply(tile, 1.5))")
    cases = compare_dialects(context_of(tmp_path / "compare", text), CompareParams(ref, wrong, "trn2")).cases
    assert not cases[0].equal
    assert cases[0].detail.startswith("launch 1: element [")


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [("0", "i", "i"), ("i", "-3", "i - 3"), ("2", "3", "5"), ("n", "-(i * 4)", "n - i * 4")],
)
def test_arithmetic_on_texts_keeps_its_value(a: str, b: str, total: str) -> None:
    assert plus(a, b) == total
    names: dict[str, Any] = {"i": 7, "n": 100}
    assert eval(plus(a, b), names) == eval(a, dict(names)) + eval(b, dict(names))  # noqa: S307
    assert eval(times(a, b), names) == eval(a, dict(names)) * eval(b, dict(names))  # noqa: S307
