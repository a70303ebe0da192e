"""``accelopt record``: a test's launches become a problem that the other commands use."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import Command
from support.processes import is_running

pytestmark = pytest.mark.slow

KERNELS = """
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def take_kernel(x, out, index, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + at, mask=at < n, other=0)
    tl.store(out + at, tl.load(x + row, mask=at < n) * factor, mask=at < n)

@triton.jit
def add_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

class Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index, factor):
        ctx.factor = factor
        return _taken(x, index, factor)

    @staticmethod
    def backward(ctx, g):
        assert g.is_cuda
        return g * ctx.factor, None, None

def _taken(x, index, factor=1.0):
    out = torch.empty_like(x)
    take_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, index, factor, x.numel())
    return out

def take(x, index, *, factor: float = 2.0):
    x = x.contiguous()
    return Take.apply(x, index, factor)
"""
TESTS = """
import pytest
import torch
from kernels import add_kernel, take

@pytest.mark.parametrize("n", [48, 300, 1000, 77])
def test_take(n):
    x = torch.randn(n, device="cuda", requires_grad=True)
    index = torch.randperm(n, device="cuda")
    y = take(x, index, factor=3.0)
    torch.testing.assert_close(y, x[index] * 3)
    y.sum().backward()
    assert x.grad.device.type == "cuda"

def test_add():
    x = torch.rand(300, device="cuda")
    before = x.clone()
    add_kernel[(3,)](x, torch.ones(300, device="cuda"), 300, BLOCK=128)
    assert torch.equal(x, before + 1)
"""


@pytest.fixture
def checkout(home: Path) -> Path:
    (home / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (home / "test_kernels.py").write_text(TESTS, encoding="utf-8")
    return home


def test_what_a_test_launches_is_profiled_and_checked(accelopt: Command, checkout: Path) -> None:
    ended = accelopt("record", "--json", "--max-shapes", "3", "--", "pytest", "-q", "-p", "no:cacheprovider")
    assert ended.code == 0, ended.err
    report = ended.object
    assert report["exit"] == 0, "the tests' own checks hold: every launch was interpreted"
    assert report["interpreted"] == 4
    assert report["passed_over"] == 1
    (file,) = report["files"]
    assert file["kernels"] == {"take_kernel": 3, "add_kernel": 1}
    recording = json.loads(Path(file["recording"]).read_text(encoding="utf-8"))
    assert [c["entry"] for c in recording["calls"]] == ["take", "take", "add_kernel", "take"]
    assert [c["keywords"] for c in recording["calls"]] == [["factor"], ["factor"], ["BLOCK"], ["factor"]]

    profile = accelopt("profile", "kernels.py", "--json")
    assert profile.code == 0, profile.out
    for kernel in profile.object["kernels"]:
        assert kernel["latency"]["us"] > 0
        assert kernel["correctness"]["status"] == "not checked"

    for change, code in ((("64", "256"), 0), (("* factor, mask", "* factor * 1.01, mask"), 1)):
        Path("candidate.py").write_text(KERNELS.replace(*change), encoding="utf-8")
        verdict = accelopt(
            "verify", "candidate.py", "--problem", file["recording"], "--original", "kernels.py", "--json"
        )
        assert verdict.code == code, verdict.out
        assert ("wrong-result" in [r["code"] for r in verdict.object["reasons"]]) == bool(code)


def test_a_file_is_asked_for_and_nothing_more(accelopt: Command, checkout: Path) -> None:
    (checkout / "other.py").write_text("import kernels\n", encoding="utf-8")
    ended = accelopt("record", "--file", "other.py", "--", "python", "test_kernels.py")
    assert ended.code == 1
    assert "the command launched no Triton kernel" in ended.err
    assert not list(checkout.glob("*_recording.json"))
    assert accelopt("record", "--", "no-such-program").code == 2


def test_a_command_ends_with_the_recording_that_is_terminated(home: Path) -> None:
    waits = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    recording = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "accelopt_lsp",
            "record",
            "--python",
            sys.executable,
            "--",
            "python",
            "-c",
            waits,
        ],
        cwd=home,
    )
    until, number = time.monotonic() + 60, home / "pid"
    while not (number.exists() and number.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    recording.send_signal(signal.SIGTERM)
    assert recording.wait(60) == 1
    assert not is_running(int(number.read_text()))
