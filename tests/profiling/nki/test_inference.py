"""Arguments of NKI kernels are inferred by tracing them: what faults and assertions ask for is changed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.problem_files import context_of

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.nki import inference_step
from accelopt_profiling.nki.inference_step import infer_nki
from accelopt_profiling.problems.inference.inferred import InferParams, InferredProblem

HEAD = """\
import enum
from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def fits(elements):
    return elements <= 4096


def kernel_assert(condition, message):
    assert condition, message


@nki.jit
"""
COPY = """
    out = nl.ndarray({shape}, dtype={of}.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray({shape}, dtype={of}.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src={source})
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
CONFIG = """
class Parts(nl.NKIObject):
    weight = None


class Mode(enum.Enum):
    FULL = 1


@dataclass
class Options(nl.NKIObject):
    rows = 64


@dataclass
class Limits:
    bound: float
    on: bool


@dataclass
class Plan:
    mode: Mode
    limits: Limits
    tile = 64

"""

#: A kernel, and what holds for the arguments with which it runs.
KERNELS: dict[str, tuple[str, str]] = {
    "a tile of the machine's size": (
        "def k(x):\n    rows, columns = x.shape" + COPY.format(shape="(rows, columns)", of="x", source="x"),
        "x.shape[0] <= 128",
    ),
    "a size that divides to nothing": (
        "def k(x):\n    rows, columns = x.shape\n    parts = columns // 4096"
        + COPY.format(shape="(128, parts)", of="x", source="x[0:128, 0:parts]"),
        "x.shape[1] >= 4096",
    ),
    "a size of nothing that an earlier line computed": (
        "def k(x):\n    rows, columns = x.shape\n    parts, rest = columns // 8192, 1\n    shape = [128, parts]"
        + COPY.format(shape="shape", of="x", source="x[0:128, 0:shape[1]]"),
        "x.shape[1] >= 8192",
    ),
    "shapes that a function asserts": (
        "def k(q, v):\n    b, d, s = q.shape\n"
        "    kernel_assert(tuple(v.shape) == (b, s, d), 'other way round')\n    kernel_assert(d <= 128, 'd')"
        + COPY.format(shape="(d, s)", of="q", source="q[0]"),
        "v.shape == (q.shape[0], q.shape[2], q.shape[1]) and q.shape[1] <= 128",
    ),
    "a tensor that must not be left out": (
        "def k(x, cos=None):\n    kernel_assert(cos != None, 'give it')\n    rows, columns = cos.shape\n"
        "    assert rows == 64" + COPY.format(shape="(rows, columns)", of="cos", source="cos"),
        "cos.shape[0] == 64",
    ),
    "a rank that another function unpacks": (
        "def k(x, w):\n    parts = Parts(weight=w)\n    _, n = parts.weight.shape\n"
        + COPY.format(shape="(128, n)", of="w", source="w[0:128, 0:n]"),
        "w.ndim == 2 and w.shape[0] >= 128",
    ),
    "names that mean the same, and a default": (
        'def k(q, mask, n_heads=2):\n    """q: [BH, S]\n    mask: [B, H, S]"""\n    assert q.shape[0] <= 8'
        + COPY.format(shape="(2, mask.shape[2])", of="q", source="q[mask.shape[0] * 2 - 2:mask.shape[0] * 2, :]"),
        "mask.shape[1] == 2 and q.shape[0] == 2 * mask.shape[0]",
    ),
    "a condition that a function returns": (
        "def k(x):\n    rows, columns = x.shape\n    assert fits(rows * columns)"
        + COPY.format(shape="(rows, columns)", of="x", source="x"),
        "x.size <= 4096",
    ),
    "a type": (
        "def k(x):\n    assert x.dtype == nl.bfloat16"
        + COPY.format(shape="(128, 64)", of="x", source="x[0:128, 0:64]"),
        "x.dtype.name == 'bfloat16'",
    ),
    "objects of the file's classes": (
        "def k(x, options: Options, mode: Mode):\n    assert x.shape[0] == options.rows and mode is Mode.FULL"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "x.shape[0] == 64 and options.rows == 64 and mode.name == 'FULL'",
    ),
    "a size that an assertion computes from another": (
        "def k(x, y):\n    c, h, w = x.shape\n    _, wide, _ = y.shape\n    padded = h + sum((1, 1))\n"
        "    assert (padded - 3) // 2 + 1 == wide" + COPY.format(shape="(64, 8)", of="x", source="x[0, 0:64, 0:8]"),
        "y.shape[1] == (x.shape[1] - 1) // 2 + 1",
    ),
    "two sizes that take turns": (
        "def k(x, y, TILES_IN_BLOCK):\n    m, k = x.shape\n    half, n = y.shape\n    k_ = 2 * half\n"
        "    assert y.dtype == nl.bfloat16\n    assert k == k_, 'one contraction'\n"
        "    assert k % (128 * TILES_IN_BLOCK) == 0\n    assert TILES_IN_BLOCK % 2 == 0"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "x.shape[1] == 2 * y.shape[0] and x.shape[1] % 256 == 0",
    ),
    "a size that comes out as negative": (
        "def k(x, w):\n    n = x.shape[0]\n    size = n - 4 * w.shape[0]\n"
        "    out = nl.ndarray((64, size), dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    tile = nl.ndarray((64, size), dtype=x.dtype, buffer=nl.sbuf)\n    nisa.memset(tile, 0)\n"
        "    nisa.dma_copy(dst=out, src=tile)\n    return out",
        "x.shape[0] > 4 * w.shape[0]",
    ),
    "a vector that is reshaped": (
        "def k(x, w, g):\n    a = x[0:128, 0:256]\n    column = g.reshape((256, 1))[0:64, 0:1]"
        + COPY.format(shape="(64, 8)", of="w", source="w[192:256, 248:256]"),
        "g.size == 256 and w.shape[1] >= 256 and x.shape[1] >= 256",
    ),
    "an object whose class needs a value": (
        "def k(x, limits: Limits):\n    assert limits.bound > 0 and limits.on is False"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "limits.bound == 1.0",
    ),
    "an object whose class needs objects": (
        "def k(x, plan: Plan):\n    assert plan.mode is Mode.FULL and plan.limits.bound == 1.0"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "x.ndim == 2 and plan.tile == 64",
    ),
    "a number that an object holds": (
        "def k(x, y, block_size):\n    parts = Parts(weight=block_size)\n"
        "    kernel_assert(parts.weight % 256 == 0, 'blocks of 256')"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "block_size == 256 and 256 not in x.shape",
    ),
    "two cores, where one has no work": (
        "def k(x):\n    n = nl.num_programs(0)\n    first = [0][2 - n]"
        + COPY.format(shape="(64, 8)", of="x", source="x[0:64, 0:8]"),
        "x.ndim == 2",
    ),
    "two cores": (
        "def k(x):\n    n, me = nl.num_programs(0), nl.program_id(0)\n    assert n == 2, f'only for LNC-2, not {n}'\n"
        "    out, h = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm), x.shape[0] // 2\n"
        "    nisa.dma_copy(dst=out[me * h:me * h + h], src=x[me * h:me * h + h])\n"
        "    nisa.core_barrier(out, (0, 1))\n    return out",
        "x.ndim == 2",
    ),
    "numbers of loops, two tensors": (
        "def k(x, y):\n    tiles, wide = 9, 256\n"
        "    out = nl.ndarray((tiles, 64, 512), dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    tile = nl.ndarray((64, wide), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    for i in range(tiles):\n        for j in range(512 // wide):\n"
        "            nisa.dma_copy(dst=tile, src=x[i, 0:64, nl.ds(j * wide, wide)])\n"
        "            nisa.dma_copy(dst=tile, src=y[i * 2 + j, 0:64, 0:wide])\n"
        "            nisa.dma_copy(dst=out[i, 0:64, nl.ds(j * wide, wide)], src=tile)\n    return out",
        "x.shape == (9, 64, 512) and y.shape == (18, 64, 256)",
    ),
    "a shape that a check states": (
        "def k(x, gain):\n    rows, columns = x.shape\n    g = gain\n    right = len({g.shape, (1, columns)}) == 1\n"
        "    kernel_assert(right, f'shape of g: expected {[1, columns]}, got {g.shape}')\n"
        + COPY.format(shape="(rows, columns)", of="x", source="x")[1:],
        "gain.shape == (1, x.shape[1])",
    ),
    "a number that was left out, by another name": (
        "def k(x, block_size=None):\n    B = block_size\n    rows = x.shape[0] // B\n"
        + COPY.format(shape="x.shape", of="x", source="x")[1:],
        "block_size > 0",
    ),
    "a number in arithmetic": (
        "def k(x, offset_at):\n    rows = offset_at * 2\n" + COPY.format(shape="x.shape", of="x", source="x")[1:],
        "isinstance(offset_at, (int, float))",
    ),
    "a grid": (
        "def k(x):\n    b = nl.program_id(0)\n    assert nl.program_ndim() == 1 and nl.num_programs(0) == x.shape[0]\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    nisa.dma_copy(dst=out[b], src=x[b])\n"
        "    return out",
        "x.ndim > 1",
    ),
}  # fmt: skip


def inferred(tmp_path: Path, body: str) -> InferredProblem:
    text = HEAD.replace("\n\n@nki.jit", f"{CONFIG}\n@nki.jit") + body
    context = context_of(tmp_path, {"kernel_file.py": text}, "kernel_file.py")
    return infer_nki(context, InferParams(list(find_kernels(text).kernels), "trn2"))


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_runs_with_what_is_inferred(tmp_path: Path, name: str) -> None:
    body, holds = KERNELS[name]
    problem = inferred(tmp_path, body)
    assert problem.complete, problem.remaining
    namespace: dict[str, Any] = {}
    exec(compile(problem.text, "problem", "exec"), namespace)  # noqa: S102
    sys.modules.pop("kernel_file")
    by_name = dict(zip(body[6 : body.index(")")].split(", "), namespace["get_inputs"](), strict=False))
    arguments = {re.split("[=:]", name)[0]: value for name, value in by_name.items()}
    assert eval(holds, arguments), problem.text  # noqa: S307


def test_what_cannot_be_mended_is_said(tmp_path: Path) -> None:
    problem = inferred(tmp_path, "def k(x):\n    raise RuntimeError('not on this machine')\n")
    assert not problem.complete
    assert "not on this machine" in problem.remaining
    assert "of the kernel file fails whatever the inputs are" in problem.text


MAKER = """
def make(rows, feature_dim):
    wide = max(rows, 32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((4, wide), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((4, wide), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[0:4, 0:wide])
        nisa.dma_copy(dst=out, src=tile)
        return out

    return kernel, feature_dim
"""


def test_a_function_that_makes_its_kernel_gets_numbers_and_the_kernel_tensors(tmp_path: Path) -> None:
    text = HEAD.replace("@nki.jit\n", "") + MAKER
    context = context_of(tmp_path, {"kernel_file.py": text}, "kernel_file.py")
    problem = infer_nki(context, InferParams(list(find_kernels(text).kernels), "trn2"))
    assert (problem.complete, problem.entry, problem.launched) == (True, "make", ["kernel"]), (
        problem.remaining
    )
    namespace: dict[str, Any] = {}
    exec(compile(problem.text, "problem", "exec"), namespace)  # noqa: S102
    sys.modules.pop("kernel_file")
    rows, dimension, x = namespace["get_inputs"]()
    assert (type(rows), type(dimension), x.ndim) == (int, int, 2)


TILES = """def k(x_sb, weight):
    inner, columns = x_sb.shape
    inner, rows = weight.shape
    out = nl.ndarray((rows, columns), dtype=x_sb.dtype, buffer=nl.shared_hbm)
    product = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=weight, moving=x_sb)
    result = nl.ndarray((rows, columns), dtype=x_sb.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out
"""


def test_arguments_that_are_tiles_on_the_chip_are_loaded_first(tmp_path: Path) -> None:
    problem = inferred(tmp_path, TILES)
    assert problem.complete, problem.remaining
    assert 'on_chip = ["x_sb", "weight"]' in problem.text  # one by its name, one by what the instruction says


#: No message says that ``bias`` needs a size of its own: the one that it was guessed to share cannot grow.
SHARED = """def k(x, bias):
    rows, columns = x.shape
    assert columns == 128
    out = nl.ndarray((1, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((1, 128), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=bias.ap(pattern=[[128, 1], [1, 128]], offset=1024))
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_a_size_that_two_places_want_different_is_parted(tmp_path: Path) -> None:
    problem = inferred(tmp_path, SHARED)
    assert problem.complete, (problem.remaining, problem.text)


LONG = """def k(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(500):
        for column in range(columns):
            tile = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[0:1, column : column + 1])
            nisa.dma_copy(dst=out[0:1, column : column + 1], src=tile)
    return out
"""


def test_loops_without_an_end_in_sight_get_smaller_sizes_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_step, "_MOST_INSTRUCTIONS", 20_000)
    problem = inferred(tmp_path, LONG)
    assert problem.complete, problem.remaining
    assert "too long for an answer within seconds" in problem.note
    assert problem.note in problem.text
    assert problem.note in problem.outcome


INDEXED = """def k(x, indices):
    rows, columns = x.shape
    assert rows == 64
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    at = nl.ndarray((rows, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=indices.ap(pattern=[[1, rows], [1, 1]]))
    nisa.tensor_scalar(dst=at, data=at, op0=nl.multiply, operand0=16)
    tile = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[columns, rows], [1, columns]], vector_offset=at, indirect_dim=0))
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_whole_numbers_that_index_are_inside_of_what_they_index(tmp_path: Path) -> None:
    """They are multiplied with 16 first: as many as there are rows would leave the tensor."""
    problem = inferred(tmp_path, INDEXED)
    assert problem.complete, problem.remaining
    bound = re.search(r"indices = np.random.randint\(0, (\d+)", problem.text)
    assert bound, problem.text
    assert 16 * (int(bound[1]) - 1) < 64


def test_the_lines_to_be_mended_are_marked(tmp_path: Path) -> None:
    body = "def k(x, table):\n    rows, columns = x.shape\n    raise RuntimeError(table)\n"
    lines = inferred(tmp_path, body).text.splitlines()
    assert [line for line in lines if "to be mended: " in line and "table = " in line]
    assert not [line for line in lines if "to be mended: " in line and " x = " in line]


AROUND = """def k(x):
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows // 16):
        nisa.no_such_instruction(x)
    nisa.dma_copy(dst=out, src=x[0:1])
    return out
"""


def test_what_no_argument_can_mend_is_not_gone_around(tmp_path: Path) -> None:
    problem = inferred(tmp_path, AROUND)
    assert not problem.complete, problem.text
    assert "no_such_instruction" in problem.remaining
