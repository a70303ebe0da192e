"""The current dialect computes what NumPy computes, and says what a version does not have."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import Finding
from accelopt_profiling.nki.calls import count, main
from accelopt_profiling.nki.chip import Mode
from accelopt_profiling.nki.current.versions import VARIABLE, UnknownVersion, chosen, table
from accelopt_profiling.nki.fault import KernelFault
from accelopt_profiling.nki.install import emulated
from accelopt_profiling.nki.instruction import Trace
from accelopt_profiling.nki.rules import Limits

HEAD = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

def sbuf(*shape, dtype=nl.float32):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)

def psum(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)

@nki.jit
def kernel({arguments}):
"""
FIRST_LINE = HEAD.count("\n") + 1
TRN2 = Limits(sbuf_bytes=224 << 10)
TRN3 = Limits(sbuf_bytes=256 << 10)


@dataclass
class Outcome:
    result: Any
    trace: Trace
    findings: list[Finding]
    fault: KernelFault | None = None


def run(body: str, *inputs: Any, mode: Mode = "full", limits: Limits = TRN2) -> Outcome:
    arguments = ", ".join("abcdefgh"[: len(inputs)])
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    with emulated(mode, limits=limits) as emulation:
        space: dict[str, Any] = {}
        exec(compile(HEAD.format(arguments=arguments) + body + "\n", "current.py", "exec"), space)  # noqa: S102
        fault, result = None, None
        try:
            result = space["kernel"](*inputs)
        except KernelFault as raised:
            fault = raised
        machine = emulation.machines[-1]
    return Outcome(result, machine.trace, machine.findings, fault)


RNG = np.random.default_rng(3)
A = RNG.standard_normal((128, 64), dtype=np.float32)
B = RNG.standard_normal((128, 64), dtype=np.float32)
COLUMN = RNG.uniform(0.5, 2.0, (128, 1)).astype(np.float32)
LEAST = np.float32(np.finfo(np.float32).min)

STATS = np.stack([A.mean(1), A.var(1)], axis=1)


def scan() -> np.ndarray:
    out, state = np.empty_like(A), np.zeros(128, np.float32)
    for i in range(64):
        state = A[:, i] * state + B[:, i]
        out[:, i] = state
    return out


def shuffled() -> np.ndarray:
    return np.concatenate([A[q : q + 32][::-1] for q in range(0, 128, 32)])


ROWS, COLUMNS = np.arange(128)[:, None], np.arange(64)[None, :]

#: Statements that fill ``out`` (or make it) from the tiles a, b (128 x 64) and c (128 x 1), and what ``out`` holds.
STATEMENTS: dict[str, np.ndarray] = {
    "nisa.tensor_copy(out, a)": A,
    "nisa.tensor_copy(out, a, engine=nisa.engine.gpsimd)": A,
    "nisa.tensor_tensor(out, a, b, nl.add)": A + B,
    "nisa.tensor_tensor(dst=out, data1=a, data2=b, op=nl.multiply)": A * B,
    "nisa.tensor_scalar(out, a, nl.multiply, 2.0, op1=nl.add, operand1=c)": A * 2 + COLUMN,
    "nisa.tensor_scalar(out, a, nl.subtract, 1.0, True)": 1 - A,
    "nisa.scalar_tensor_tensor(dst=out, data=a, op0=nl.multiply, operand0=c, op1=nl.subtract, operand1=b)":
        A * COLUMN - B,
    "nisa.activation(out, nl.exp, a)": np.exp(A),
    "nisa.activation(dst=out, op=nl.exp, data=a, scale=-1.0, bias=c)": np.exp(COLUMN - A),
    "nisa.activation(out, nl.square, a, bias=1.0)": (A + 1) ** 2,
    "out = sbuf(128, 1); nisa.activation(sbuf(128, 64), nl.exp, a, reduce_op=nl.add, reduce_res=out, "
    "reduce_cmd=nisa.reduce_cmd.reset_reduce)": np.exp(A).sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.activation_reduce(sbuf(128, 64), nl.square, a, nl.add, out)":
        (A * A).sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.tensor_reduce(out, nl.add, a, axis=1)": A.sum(1, keepdims=True),
    "out = sbuf(128, 1); nisa.tensor_reduce(out, nl.maximum, a, axis=[1], negate=True)": -A.max(1, keepdims=True),
    "out = sbuf(128, 8); nisa.tensor_reduce(out, nl.add, a.reshape((128, 8, 8)), axis=2)": A.reshape(128, 8, 8).sum(2),
    "out = sbuf(1, 64); nisa.tensor_partition_reduce(out, nl.add, a)": A.sum(0, keepdims=True),
    "out = sbuf(128, 1); nisa.reciprocal(out, c)": 1 / COLUMN,
    "nisa.memset(out, 3.0)": np.full_like(A, 3),
    "nisa.select_reduce(out, c, a, 0.5)": A,
    "nisa.iota(out, [[1, 64]], 5, channel_multiplier=64)": ROWS * 64 + COLUMNS + 5.0,
    "nisa.affine_select(out, pattern=[[-1, 64]], offset=0, channel_multiplier=1, on_true_tile=a, "
    "on_false_value=-7.0, cmp_op=nl.greater_equal)": np.where(ROWS - COLUMNS >= 0, A, -7),
    "nisa.tensor_tensor_scan(out, a, b, 0.0, nl.multiply, nl.add)": scan(),
    "nisa.nc_stream_shuffle(out, a, [31 - i for i in range(32)])": shuffled(),
    "p = sbuf(128, 64); nisa.tensor_scalar(p, a, nl.greater, 0.0); nisa.tensor_copy(out, b); "
    "nisa.tensor_copy_predicated(out, a, p)": np.where(A > 0, A, B),
    "p = sbuf(128, 64); nisa.tensor_scalar(p, a, nl.greater, 0.0); nisa.select_reduce(out, p, a, c)":
        np.where(A > 0, A, COLUMN),
    "lo, hi = sbuf(128, 1), sbuf(128, 1); nisa.memset(lo, 3.0); nisa.memset(hi, 9.0); "
    "nisa.range_select(out, a, nl.greater_equal, nl.less, lo, hi)": np.where((COLUMNS >= 3) & (COLUMNS < 9), A, LEAST),
    "out = sbuf(128, 8); nisa.max8(out, a)": -np.sort(-A, axis=1)[:, :8],
    "m = sbuf(128, 8); nisa.max8(m, a); out = sbuf(128, 8, dtype=nl.uint32); nisa.nc_find_index8(out, a, m)":
        np.argsort(-A, axis=1)[:, :8],
    "m = sbuf(128, 8); nisa.max8(m, a); nisa.nc_match_replace8(out, a, m, -9.0)":
        np.where(-np.sort(-A, axis=1)[:, 7:8] <= A, -9, A),
    "i = sbuf(128, 64, dtype=nl.uint32); nisa.iota(i, [[-1, 64]], 63); nisa.nc_n_gather(out, a, i)": A[:, ::-1],
    "s = sbuf(128, 6); nisa.bn_stats(s, a); out = sbuf(128, 2); nisa.bn_aggr(out, s)": STATS,
    "p = psum(64, 128); nisa.nc_transpose(p, a); out = sbuf(64, 128); nisa.tensor_copy(out, p)": A.T,
    "out = sbuf(32, 32); nisa.nc_transpose(out, a[0:32, 0:32])": A[:32, :32].T,
    "out = sbuf(64, 128); nisa.dma_transpose(out, a)": A.T,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); out = sbuf(64, 64); nisa.tensor_copy(out, p)": A.T @ B,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); nisa.nc_matmul(p, a, b); out = sbuf(64, 64); "
    "nisa.tensor_copy(out, p)": 2 * A.T @ B,
    "p = psum(64, 64); nisa.nc_matmul(p, a, b); nisa.nc_matmul(p, a, b, accumulate=False); out = sbuf(64, 64); "
    "nisa.tensor_copy(out, p)": A.T @ B,
    "nisa.dma_compute(out, [a, b], reduce_op=nl.add)": A + B,
    "out = nl.add(a, b)": A + B,
    "out = nl.softmax(a, axis=1)": np.exp(A) / np.exp(A).sum(1, keepdims=True),
    "out = nl.copy(nl.matmul(a, b, transpose_x=True))": A.T @ B,
    # views
    "out = sbuf(128, 32); nisa.tensor_copy(out, a[:, 0:64:2])": A[:, ::2],
    "out = sbuf(128, 32); nisa.tensor_copy(out, a.ap([[64, 128], [2, 32]], offset=1))": A[:, 1::2],
    "nisa.tensor_copy(out.reshape((128, 4, 16)), a.reshape((128, 16, 4)).permute((0, 2, 1)))":
        A.reshape(128, 16, 4).transpose(0, 2, 1).reshape(128, 64),
    "nisa.tensor_copy(out, c.broadcast(1, 64))": np.broadcast_to(COLUMN, (128, 64)),
    "nisa.tensor_copy(out, a.rearrange(('p', ('h', 'w')), ('p', 'w', 'h'), {'h': 4}))":
        A.reshape(128, 4, 16).transpose(0, 2, 1).reshape(128, 64),
    "out = sbuf(128, 8); nisa.tensor_copy(out, a.reshape_dim(1, (8, 8)).select(1, 3))": A[:, 24:32],
    "out = sbuf(64, 16); nisa.tensor_copy(out, a.slice(0, 64, 128).slice(1, 8, 24))": A[64:, 8:24],
}  # fmt: skip

BODY = """
a_hbm, b_hbm, c_hbm = a, b, c
a, b, c, out = sbuf(128, 64), sbuf(128, 64), sbuf(128, 1), sbuf(128, 64)
nisa.dma_copy(a, a_hbm)
nisa.dma_copy(dst=b, src=b_hbm)
nisa.dma_copy(c, c_hbm)
{statement}
result = nl.ndarray(out.shape, dtype=out.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(result, out)
return result
"""


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_instruction_means_what_numpy_says(statement: str) -> None:
    expected = STATEMENTS[statement]
    if "select_reduce(out, c," in statement:
        statement = statement.replace("(out, c,", "(out, c.broadcast(1, 64),")
    outcome = run(BODY.format(statement=statement), A, B, COLUMN)
    assert outcome.fault is None, outcome.fault
    assert outcome.findings == []
    np.testing.assert_allclose(outcome.result, expected, rtol=2e-5, atol=2e-5)
    traced = run(BODY.format(statement=statement), A, B, COLUMN, mode="trace")
    assert traced.fault is None, traced.fault
    assert [(i.opcode, i.line, i.free, i.bytes) for i in traced.trace.instructions] == [
        (i.opcode, i.line, i.free, i.bytes) for i in outcome.trace.instructions
    ]


def test_a_tiled_product_accumulates_in_psum() -> None:
    body = """
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    for n in range(2):
        acc = psum(128, 128)
        tiles = []
        for k in range(3):
            x, y = sbuf(64, 128), sbuf(64, 128)
            nisa.dma_copy(x, a[k * 64:(k + 1) * 64, :])
            nisa.dma_copy(y, b[nl.ds(k * 64, 64), nl.ds(n * 128, 128)])
            tiles.append((x, y))
        for x, y in tiles:
            nisa.nc_matmul(acc, x, y)
        done = sbuf(128, 128)
        nisa.tensor_copy(done, acc)
        nisa.dma_copy(out[:, n * 128:(n + 1) * 128], done)
    return out
    """
    a, b = (
        RNG.standard_normal((192, 128), dtype=np.float32),
        RNG.standard_normal((192, 256), dtype=np.float32),
    )
    np.testing.assert_allclose(run(body, a, b).result, a.T @ b, rtol=1e-4, atol=1e-4)


GATHER = """
out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
rows, tile = sbuf(4, 1, dtype=nl.int32), sbuf(4, 8)
nisa.dma_copy(rows, b)
nisa.memset(tile, -1.0)
nisa.dma_copy(tile, a.{view}, oob_mode=nisa.oob_mode.{mode})
nisa.dma_copy(out, tile)
return out
"""


@pytest.mark.parametrize(
    "view", ["ap([[8, 4], [1, 8]], vector_offset=rows, indirect_dim=0)", "vector_select(0, rows)"]
)
def test_rows_named_by_a_tensor_are_gathered(view: str) -> None:
    table_, rows = RNG.standard_normal((16, 8), dtype=np.float32), np.array([[3], [1], [15], [3]], np.int32)
    np.testing.assert_array_equal(
        run(GATHER.format(view=view, mode="error"), table_, rows).result, table_[rows[:, 0]]
    )
    beyond = np.array([[3], [16], [0], [1]], np.int32)
    stopped = run(GATHER.format(view=view, mode="error"), table_, beyond).fault
    assert stopped is not None
    assert (stopped.code, stopped.line) == ("out-of-bounds", FIRST_LINE + 4)
    skipped = run(GATHER.format(view=view, mode="skip"), table_, beyond).result
    np.testing.assert_array_equal(skipped[[0, 2, 3]], table_[[3, 0, 1]])
    assert (skipped[1] == -1).all()


def test_rows_are_scattered() -> None:
    body = """
    out = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, a)
    rows, tile = sbuf(4, 1, dtype=nl.int32), sbuf(4, 8)
    nisa.dma_copy(rows, b)
    nisa.memset(tile, -1.0)
    nisa.dma_copy(out.ap([[8, 4], [1, 8]], vector_offset=rows), tile)
    return out
    """
    table_, rows = RNG.standard_normal((16, 8), dtype=np.float32), np.array([[3], [1], [15], [7]], np.int32)
    expected = table_.copy()
    expected[rows[:, 0]] = -1
    np.testing.assert_array_equal(run(body, table_, rows).result, expected)


def test_loops_on_registers() -> None:
    body = """
    count = nisa.register_alloc()
    cell = sbuf(1, 1, dtype=nl.int32)
    nisa.dma_copy(cell, a)
    nisa.register_load(count, cell)
    total = sbuf(1, 1)
    nisa.memset(total, 0.0)
    def add(i):
        nisa.tensor_scalar(total, total, nl.add, float(i))
    nl.fori_loop(0, count, add)
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, total)
    return out
    """
    count = np.array([[5]], np.int32)
    assert run(body, count).result == 10
    unknown = run(body, count, mode="trace").fault
    assert unknown is not None
    assert "without values" in unknown.message


LOAD = "x = sbuf(128, 64)\nnisa.dma_copy(x, a)\n"

#: A body after ``LOAD``, the line (from the body's first) that is wrong, the code, and words of the message.
VIOLATIONS = [
    ("nisa.tensor_tensr(x, x, x, nl.add)", 3, "unsupported", "nki.isa.tensor_tensr.*nearest there is: .*tensor_tensor"),
    ("i = nl.arange(128)", 3, "unsupported", "nki.language.arange is gone since NKI 0.1; use slices"),
    ("y = psum(64, 64)\nnisa.nc_matmul(x[0:64, :], x, x)", 4, "unsupported", "nc_matmul writes to PSUM"),
    ("nisa.activation(x, nl.exp, a)", 3, "unsupported", "data lies in HBM"),
    ("nisa.tensor_copy(x, x[:, 0:32])", 3, "out-of-bounds", "elements in each must agree"),
    ("nisa.dma_copy(x, a[0:64, :])", 3, "out-of-bounds", "src has 4096 elements"),
    ("p = psum(128, 64)\nnisa.dma_copy(p, a)", 4, "unsupported", "DMA does not reach PSUM"),
    ("p = psum(128, 64)\nnisa.tensor_copy(p, x, engine=nisa.engine.gpsimd)", 4, "unsupported", "cannot reach PSUM"),
    ("p, q = psum(64, 64), psum(64, 64)\nnisa.nc_matmul(p, x, x)\nnisa.nc_matmul(q, x, x)\n"
     "nisa.tensor_tensor(x[0:64, :], p, q, nl.add)", 6, "unsupported", "at most one operand from PSUM"),
    ("x = sbuf(129, 4)", 3, "capacity", "129; SBUF has 128 partitions"),
    ("nisa.tensor_copy(x[:, 0:65], x)", 3, "out-of-bounds", "0:65 leaves dimension 1"),
    ("y = x.ap([[64, 128], [1, 65]])\nnisa.tensor_copy(y, y)", 3, "out-of-bounds", "reaches element 8192"),
    ("y = x.ap([[32, 128], [1, 32]])", 3, "unsupported", "steps 32 elements from partition to partition"),
    ("y = x + x", 3, "unsupported", "no operator for 'add'"),
    ("x[...] = nl.add(x, x)", 3, "unsupported", "not assigned to"),
    ("y = x.reshape((64, 128))", 3, "unsupported", "between partitions"),
    ("nisa.nc_transpose(x, x)", 3, "out-of-bounds", "transpose of"),
    ("nisa.exponential(x, x)", 3, "unsupported", "needs trn3"),
    ("nisa.memset(sbuf(128, 4, dtype=nl.int32), 1.5)", 3, "unsupported", "memset cannot fill"),
    ("nisa.tensor_copy(x, x, engine='vector')", 3, "unsupported", "member of nisa.engine"),
    ("y = sbuf(128, 64, dtype=nl.bfloat16)\nnisa.tensor_copy(y, x)\np = psum(64, 64)\nnisa.nc_matmul(p, x, y)",
     6, "unsupported", "either both are float32"),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "trace"])
@pytest.mark.parametrize(("body", "line", "code", "words"), VIOLATIONS)
def test_a_broken_rule_is_told_on_its_line(body: str, line: int, code: str, words: str, mode: Mode) -> None:
    import re

    fault = run(LOAD + body + "\nreturn a", A, mode=mode).fault
    assert fault is not None
    assert re.search(words, fault.message), fault.message
    wanted = (
        FIRST_LINE + line - 1 if "sbuf(129" not in body and "sbuf(128, 4, dtype" not in body else fault.line
    )
    assert (fault.code, fault.line) == (code, wanted)


def test_reading_what_was_never_written_is_told() -> None:
    body = """
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    half = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, name="half")
    nisa.dma_copy(half[:, 0:32], a[:, 0:32])
    nisa.dma_copy(out, half)
    return out
    """
    outcome = run(body, A)
    assert [(f.code, f.line) for f in outcome.findings] == [("uninitialised-read", FIRST_LINE + 3)]
    assert np.isnan(outcome.result[:, 32:]).all()
    np.testing.assert_array_equal(outcome.result[:, :32], A[:, :32])


def test_what_a_copy_took_is_not_changed_by_what_happens_to_its_source() -> None:
    body = BODY.format(statement="nisa.tensor_copy(out, a)\nnisa.memset(a, 0.0)")
    np.testing.assert_array_equal(run(body, A, B, COLUMN).result, A)


@pytest.mark.parametrize(
    ("version", "body", "words"),
    [
        ("0.5", "nl.fori_loop(0, 1, print)", "fori_loop came with NKI 0.6; the emulated version is 0.5"),
        ("0.4", "x = sbuf(128, 8).permute((0, 1))", "permute came with NKI 0.5; the emulated version is 0.4"),
        ("0.7", "nisa.tensor_copy_dynamic_src(a, a)", "gone since NKI 0.4"),
    ],
)
def test_a_version_has_what_it_has(
    version: str, body: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    fault = run(body + "\nreturn a", A).fault
    assert fault is not None
    assert words in fault.message


@pytest.mark.parametrize(("version", "count"), [("0.6", 0), ("0.7", 1)])
def test_what_is_deprecated_is_told_as_information(
    version: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    found = run("for i in nl.affine_range(2):\n    pass\nreturn a", A).findings
    assert [(f.code, f.line, f.severity) for f in found] == [
        ("deprecated", FIRST_LINE, "information")
    ] * count


def test_a_version_that_there_is_not_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "9.9")
    with pytest.raises(UnknownVersion, match="the versions of NKI are 0"):
        chosen()


def test_every_entry_of_the_version_table_says_when() -> None:
    for kind in ("names", "methods"):
        for name, entry in table()[kind].items():
            assert set(entry) & {"added", "removed", "deprecated"}, name
            assert "added" in entry or entry["instead"], name


def test_kernels_of_both_dialects_are_found() -> None:
    text = (
        "import nki\nimport neuronxcc.nki as old\nfrom nki import jit\n\n"
        "@nki.jit\ndef one(x):\n    return x\n\n@old.jit\ndef two(x):\n    return x\n\n"
        "@jit\ndef three(x):\n    return x\n"
    )
    assert [(k.name, k.dialect) for k in find_kernels(text).kernels] == [
        ("one", "nki"),
        ("two", "nki"),
        ("three", "nki"),
    ]


def test_call_sites_of_a_library_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(
        "import nki.isa as nisa\nfrom nki.isa import dma_copy as copy\nimport other as x\n"
        "nisa.activation(1)\nnisa.sendrecv()\ncopy()\nx.activation()\nnisa.activation\n"
    )
    (tmp_path / "b.py").write_text("from nki import isa\nisa.memset(1, 2)\n")
    (tmp_path / "c.py").write_text("def (\n")
    found = count(tmp_path)
    assert dict(found.functions) == {"activation": 1, "sendrecv": 1, "dma_copy": 1, "memset": 1}
    assert (found.covered(), found.total, found.missing()) == (3, 4, [("sendrecv", 1)])
    assert main([str(tmp_path)]) == 0
    assert "3 of 4 call sites in 2 files are emulated: 75.0%" in capsys.readouterr().out
    assert main([]) == 2
