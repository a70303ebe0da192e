"""A kernel that its target cannot launch is refused wherever it is shown, ranked, checked or remembered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.test_mcp import answer, tools
from support.command import Command
from support.nki_kernels import sums_in_banks

from accelopt_agent.evaluation.evaluators import CostUnavailableError
from accelopt_agent.evaluation.host_evaluation import HostCost
from accelopt_agent.request import OptimizeRequest
from accelopt_memory.memory import Memory
from accelopt_profiling.examination import examine
from accelopt_profiling.hosts.host import Host

TRITON = """\
import torch, triton, triton.language as tl

@triton.jit
def product(a, b, c, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, K, B):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        y = tl.load(b + (at + k)[:, None] * N + n[None, :])
        total = tl.dot(x{cast}, y{cast}, total)
    tl.store(c + m[:, None] * N + n[None, :], total)

def entry(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=torch.float32)
    product[(1,)](a, b, c, a.shape[1], a.shape[0], b.shape[1], {block},
                  num_warps={warps}, num_stages={stages}, num_ctas={cluster})
    return c

def get_inputs():
    return [torch.randn(128, 512, device="cuda", dtype=torch.float16),
            torch.randn(512, 128, device="cuda", dtype=torch.float16)]

def reference(a, b):
    return a.float() @ b.float()

tolerance = {tolerance}
"""


def triton(
    stages: int = 2,
    warps: int = 4,
    block: int = 64,
    cast: str = "",
    tolerance: float = 1e-2,
    cluster: int = 1,
) -> str:
    return TRITON.format(
        stages=stages, warps=warps, block=block, cast=cast, tolerance=tolerance, cluster=cluster
    )


@dataclass(frozen=True)
class Unlaunchable:
    text: str
    target: str
    line: int
    code: str
    message: str


def _tile(shape: str, memory: str) -> str:
    return sums_in_banks(
        more=f"y = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.{memory}); nisa.memset(y, 0.0)"
    )


KERNELS = {
    "shared memory": Unlaunchable(triton(4, 8, 128), "h100", 4, "capacity", "262144 bytes of shared memory"),
    "warps": Unlaunchable(triton(warps=64), "h100", 4, "capacity", "64 warps, which are 2048 threads"),
    "cluster": Unlaunchable(triton(cluster=64), "h100", 4, "capacity", "clusters of 64 programs"),
    "type of another architecture": Unlaunchable(
        triton(cast=".to(tl.float8e4nv)", tolerance=0.5), "a100", 10, "does-not-compile", "fp8e4nv"
    ),
    "PSUM banks": Unlaunchable(sums_in_banks(9), "trn2", 12, "capacity", "9 PSUM banks are alive here at once"),
    "SBUF": Unlaunchable(_tile("(128, 100000)", "sbuf"), "trn2", 14, "capacity", "400,000 B per partition"),
    "partitions": Unlaunchable(_tile("(256, 4)", "sbuf"), "trn2", 14, "capacity", "partition dimension is 256"),
    "moving columns": Unlaunchable(
        sums_in_banks(more="y = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf); nisa.memset(y, 0.0); "
            "z = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum); nisa.nc_matmul(z, x[:, 0:128], y)"),
        "trn2", 14, "capacity", "moving operand has 1024 columns",
    ),
}  # fmt: skip
#: What fits, and beside it what does not: the pair that a search or a person would offer.
PAIRS = {
    "triton": (triton(), KERNELS["shared memory"]),
    "nki": (sums_in_banks(), KERNELS["PSUM banks"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_it_has_no_time_and_the_gate_refuses_it(name: str, accelopt: Command) -> None:
    kernel = KERNELS[name]
    Path("k.py").write_text(kernel.text)
    profiled = accelopt("profile", "k.py", "--target", kernel.target, "--json")
    (kernel_report,) = profiled.object["kernels"]
    assert profiled.code == 1
    assert (kernel_report["latency"]["us"], kernel_report["latency"]["known"]) == (None, "not measured")
    assert (
        kernel_report["percent_of_peak"],
        kernel_report["bound"],
        kernel_report["launchable"]["status"],
    ) == (None, None, "no")
    errors = [(f["code"], f["line"]) for f in kernel_report["findings"] if f["severity"] == "error"]
    assert errors[0] == (kernel.code, kernel.line)
    assert kernel.message in next(f["message"] for f in kernel_report["findings"] if f["severity"] == "error")
    checked = accelopt("verify", "k.py", "--problem", "k.py", "--target", kernel.target, "--json")
    assert checked.code == 1
    assert kernel.message in " ".join(r["message"] for r in checked.object["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize("dialect", PAIRS)
def test_no_surface_shows_offers_or_remembers_it(dialect: str, accelopt: Command, home: Path) -> None:
    fits, kernel = PAIRS[dialect]
    where = ("--target", kernel.target)
    Path("k.py").write_text(fits)
    Path("fast.py").write_text(kernel.text)
    good = accelopt("profile", "k.py", *where, "--json").object["kernels"][0]
    assert good["latency"]["us"] is not None
    assert good["launchable"] == {
        "status": "yes", "known": {"triton": "compiled", "nki": "executed"}[dialect], "detail": "",
    }  # fmt: skip
    table = accelopt("profile", "fast.py", *where).out
    assert "not measured" in table
    assert "does not fit" in table
    assert accelopt("report", "fast.py", *where).code == 1
    page = Path("fast.html") if Path("fast.html").exists() else next(home.glob("*.html"))
    assert f"not measured on {kernel.target}" in page.read_text()
    receipt = accelopt("profile", "fast.py", *where, "--json").object["kernels"][0]["receipt"]
    assert accelopt("replay", receipt).code == 0
    searched = accelopt("optimize", "fast.py", *where, "--no-model", "--budget", "candidates=2")
    assert searched.code != 0
    assert kernel.message in searched.out + searched.err
    learned = accelopt("learn", "k.py", "fast.py", *where, "--json")
    assert learned.code == 1
    assert learned.object["reasons"][0]["code"] == kernel.code
    with Memory.open(home / "memory.db") as memory:
        assert memory.pairs() == []


@pytest.mark.slow
@pytest.mark.parametrize("dialect", PAIRS)
async def test_a_search_takes_it_for_a_failure_of_its_own(
    shared_host: Host, dialect: str, home: Path
) -> None:
    fits, kernel = PAIRS[dialect]
    path = home / "k.py"
    path.write_text(fits)

    evaluator = HostCost(shared_host, OptimizeRequest(examine(path, fits, project_root=home), kernel.target))
    name = (await evaluator.baseline()).kernels[0].name
    with pytest.raises(CostUnavailableError, match=kernel.message) as refused:
        await evaluator.cost(kernel.text, name)
    assert (refused.value.code, refused.value.lasting) == (kernel.code, True)


@pytest.mark.slow
async def test_a_coding_agent_is_told(home: Path) -> None:
    kernel = KERNELS["PSUM banks"]
    (home / "k.py").write_text(kernel.text)
    async with tools(home) as session:
        arguments: dict[str, Any] = {"file": "k.py", "target": kernel.target}
        kernel_report = answer(await session.call_tool("profile", arguments))["kernels"][0]
        assert (kernel_report["latency"]["us"], kernel_report["launchable"]["status"]) == (None, "no")
        arguments = {"candidate": "k.py", "problem": "k.py", "target": kernel.target}
        checked = answer(await session.call_tool("verify", arguments))
    assert checked["accepted"] is False
    assert kernel.message in checked["reasons"][0]["message"]
