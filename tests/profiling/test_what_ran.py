"""Every number says what ran, and a kernel whose main work did not run has none: the same in both dialects."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.problem_files import context_of
from support.step_profiles import StepProfiles

from accelopt_profiling.jobs import ProfileParams
from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.measurement import KernelMeasurement, finding_codes
from accelopt_profiling.nki.profile import profile as profile_nki
from accelopt_profiling.plain import from_plain
from accelopt_profiling.problems.ref import ProblemRef

pytestmark = pytest.mark.triton

TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(a, b, out, K, N, FUSED: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    {body}
    tl.store(out + rows[:, None] * B + columns[None, :], total)

def run(a, b):
    out = torch.empty(a.shape[0], b.shape[1], device=a.device)
    kernel[(a.shape[0] // 32,)](a, b, out, a.shape[1], 64, {fused}, 32)
    return out

def get_inputs():
    return [torch.randn(64, {k}, device="cuda"), torch.randn({k}, 32, device="cuda")]

entry = "run"
"""
NKI = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def kernel(a, b, FUSED={fused}, N=64, B=32):
    K, M = a.shape
    out = nl.ndarray((M, b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((M, b.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    {body}
    nisa.dma_copy(dst=out, src=total)
    return out

def get_inputs():
    return [np.ones(({k}, 64), np.float32), np.ones(({k}, 32), np.float32)]
"""
#: One piece of a product, and one that reads and adds without a product; ``k`` is the first row.
PIECES = {
    "triton": {
        "product": (
            "x = tl.load(a + rows[:, None] * K + (k + tl.arange(0, B))[None, :])",
            "y = tl.load(b + (k + tl.arange(0, B))[:, None] * B + columns[None, :])",
            "total += tl.dot(x, y)",
        ),
        "line": ("total += tl.load(a + rows[:, None] * K + (k + tl.arange(0, B))[None, :])",),
        "sum": ("total += tl.load(a + rows[:, None] * K + (k + tl.arange(0, B))[None, :])",),
    },
    "nki": {
        "product": (
            "x = nl.ndarray((B, 64), dtype=a.dtype, buffer=nl.sbuf)",
            "y = nl.ndarray((B, 32), dtype=a.dtype, buffer=nl.sbuf)",
            "nisa.dma_copy(dst=x, src=a[k:k + B, 0:64])",
            "nisa.dma_copy(dst=y, src=b[k:k + B, 0:32])",
            "part = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.psum)",
            "nisa.nc_matmul(dst=part, stationary=x, moving=y)",
            "nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)",
        ),
        "line": ("nisa.dma_copy(dst=total[0:B, 0:32], src=a[k:k + B, 0:32])",),
        "sum": (
            "x = nl.ndarray((B, 32), dtype=a.dtype, buffer=nl.sbuf)",
            "nisa.dma_copy(dst=x, src=a[k:k + B, 0:32])",
            "nisa.tensor_tensor(dst=total[0:B, 0:32], data1=total[0:B, 0:32], data2=x, op=nl.add)",
        ),
    },
}
LOOP = "for i in range(K // B):\n    k = i * B\n    PIECE"
TAIL = "for i in range(K // N):\n    k = i * B\n    PIECE\nif K % N:\n    k = 0\n    PIECE"
PEELED = "k = 0\nPIECE\nfor i in range(1, K // B):\n    k = i * B\n    PIECE"
BRANCH = "if K >= N:\n    for i in range(K // B):\n        k = i * B\n        PIECE"
EXTRA = f"{LOOP}\nif FUSED:\n    k = 0\n    PIECE"
EITHER = "if FUSED:\n    k = 0\n    PIECE\nelse:\n    k = B\n    PIECE"
WHILE = "k = 0\nwhile k < N * 0:\n    PIECE\n    k += B"

Profiled = Callable[..., KernelMeasurement]


@pytest.fixture(params=["triton", "nki"])
def profiled(request: pytest.FixtureRequest, tmp_path: Path, profiles: StepProfiles) -> Profiled:
    """Return a function that profiles a kernel around a body of the dialect."""

    def of(
        body: str, piece: str, k: int, fused: bool = False, part: bool = False, inferred: bool = False
    ) -> KernelMeasurement:
        options = {"inferred": True, "unreferenced": True} if inferred else {}
        lines = PIECES[request.param][piece]
        body = re.sub(r"( *)PIECE", lambda at: "\n".join(at[1] + line for line in lines), body)
        template = TRITON if request.param == "triton" else NKI
        text = template.replace("{body}", body.replace("\n", "\n    "))
        text = text.replace("{k}", str(k)).replace("{fused}", str(fused))
        if part:
            text = text.replace("randn(64", "randn(256").replace("dst=out,", "dst=out[0:16, 0:32],")
            text = text.replace("(a.shape[0] // 32,)", "(2,)").replace("src=total)", "src=total[0:16, 0:32])")
        if request.param == "triton":
            answer: dict[str, Any] = profiles.profile(
                {"k.py": text}, "k.py", {"kind": "module", "options": options}, detail=False
            )
            assert answer["error"] is None, answer["error"]
            (measured,) = (from_plain(KernelMeasurement, kernel) for kernel in answer["result"])
            return measured
        kernels = list(find_kernels(text).kernels)
        params = ProfileParams(kernels, ProblemRef("module", options=options), "trn2")
        (measured,) = profile_nki(context_of(tmp_path, {"k.py": text}), params)
        return measured

    return of


@pytest.mark.parametrize("piece", ["product", "sum"])
@pytest.mark.parametrize(
    ("body", "k", "why"),
    [(LOOP, 16, "loop"), (BRANCH, 32, "branch"), (WHILE, 32, "loop")],
)
def test_without_its_main_work_a_kernel_has_no_time(
    profiled: Profiled, body: str, k: int, why: str, piece: str
) -> None:
    measured = profiled(body, piece, k)
    assert measured.latency.us is None
    assert (measured.percent_of_peak, measured.bound) == (None, None)
    (finding,) = [f for f in measured.findings if f.code == "main-work-missed"]
    assert why in finding.message.lower()
    assert "--problem" in finding.message
    about = {
        f.code: finding_codes()[f.code]["about"] for f in profiled(body, piece, k, inferred=True).findings
    }
    assert "cost" not in about.values(), "nothing is known of the cost"
    assert "inferred-size" not in about


def test_a_loop_of_one_line_that_goes_round_no_time_is_seen(profiled: Profiled) -> None:
    measured = profiled("for k in range(0, K // B * B, B): PIECE", "line", 16)
    assert [f.code for f in measured.findings if f.code == "main-work-missed"] == ["main-work-missed"]


@pytest.mark.parametrize("piece", ["product", "sum"])
@pytest.mark.parametrize(
    ("body", "k", "fused"),
    [
        (LOOP, 32, False), (TAIL, 32, False), (TAIL, 64, False), (PEELED, 32, False), (BRANCH, 64, False),
        (EXTRA, 32, False), (EXTRA, 32, True), (EITHER, 64, False), (EITHER, 64, True),
    ],
)  # fmt: skip
def test_a_remainder_or_an_option_that_did_not_run_costs_no_number(
    profiled: Profiled, body: str, k: int, fused: bool, piece: str
) -> None:
    measured = profiled(body, piece, k, fused)
    assert measured.latency.us is not None, measured.findings
    assert not any(f.code == "main-work-missed" for f in measured.findings)


def test_where_little_of_the_output_is_written_there_is_no_time(profiled: Profiled) -> None:
    measured = profiled(LOOP, "product", 32, part=True)
    assert measured.latency.us is None
    messages = " ".join(f.message for f in measured.findings)
    assert (
        "The grid covers 2,048 of the 8,192 elements" in messages or "is not written everywhere" in messages
    )


def test_inferred_sizes_at_the_floor_of_the_launch_say_so(profiled: Profiled) -> None:
    floor = [[f for f in profiled(LOOP, "product", 32, inferred=i).findings if "takes most of the time" in f.message]
             for i in (True, False)]  # fmt: skip
    assert [len(f) for f in floor] == [1, 0]


@pytest.mark.parametrize(("k", "trips"), [(16, 0), (32, 1), (96, 3), (320, 10)])
def test_launches_loops_with_their_trips_and_the_share_of_the_statements_are_told(
    profiled: Profiled, k: int, trips: int
) -> None:
    ran = profiled(LOOP, "product", k).ran
    assert ran.launches == 1
    assert [(loop.least, loop.most) for loop in ran.loops] == [(trips, trips)]
    assert (ran.share == 1.0) is bool(trips)
    assert ran.executed <= ran.statements
