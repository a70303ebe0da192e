"""A problem is inferred by running the file: its errors say what to change, and what cannot be mended is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.triton]

FILE = """
import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def scaled(x_ptr, s_ptr, ids_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    source = tl.load(ids_ptr + row)
    value = tl.load(x_ptr + source * n + at, mask=at < n)
    tl.store(y_ptr + row * n + at, tanh(value) * tl.load(s_ptr + at, mask=at < n), mask=at < n)


def leaky_relu(x, s, ids, mode, *, groups):
    lead, heads, n = x.contiguous().shape
    assert mode in ("fast", "slow"), mode
    if s.shape[0] != x.shape[-1]:
        raise ValueError("one scale a column")
    if n % 96 != 0:
        raise ValueError("columns come in 96s")
    y = torch.empty_like(x)
    scaled[(lead * heads,)](x, s, ids.to(torch.int32), y, n, BLOCK=triton.next_power_of_2(n))
    return y
"""


def test_a_file_without_a_problem_is_profiled_with_inferred_arguments(accelopt: Command, home: Path) -> None:
    (home / "k.py").write_text(FILE, encoding="utf-8")
    profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert profiled.code == 0, profiled.out
    assert kernel["latency"]["us"] > 0
    assert kernel["correctness"]["status"] == "not checked"
    (finding,) = profiled.object["findings"]
    assert finding["code"] == "inferred-problem"
    assert not (home / "k_problem.py").exists()


def test_kernels_that_one_call_does_not_launch_get_calls_of_their_own(accelopt: Command, home: Path) -> None:
    other = (
        FILE[FILE.index("@triton.jit\ndef scaled") :]
        .replace("scaled", "other")
        .replace("leaky_relu", "swish")
    )
    (home / "k.py").write_text(FILE + "\n\n" + other, encoding="utf-8")
    for _ in range(2):
        profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
        kernels = {kernel["name"]: kernel for kernel in profiled.object["kernels"]}
        assert kernels["scaled"]["latency"]["us"] == pytest.approx(kernels["other"]["latency"]["us"], rel=0.1)
        (finding,) = [f for f in kernels["other"]["findings"] if f["code"] == "inferred-problem"]
        assert "for this kernel apart" in finding["message"]


@pytest.mark.parametrize("folder", [".", "ops/triton"])
def test_errors_say_what_to_change(accelopt: Command, home: Path, folder: str) -> None:
    place = home / folder
    place.mkdir(parents=True, exist_ok=True)
    for package in [] if folder == "." else [home / "ops", place]:
        (package / "__init__.py").write_text("", encoding="utf-8")
    file = f"{folder}/k.py"
    (home / file).write_text(FILE, encoding="utf-8")
    written = accelopt("problem", file, "--json")
    assert written.code == 0, written.err
    assert written.object["entry"] == "leaky_relu"
    assert written.object["complete"], written.object["remaining"]
    text = (place / "k_problem.py").read_text(encoding="utf-8")
    assert "def reference" not in text
    profiled = accelopt("profile", file, "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert profiled.code == 0, profiled.out
    assert kernel["latency"]["us"] > 0
    assert kernel["correctness"]["status"] == "not checked"
    assert "add `reference`" in kernel["correctness"]["detail"]


AUTOGRAD = """
import torch
import triton
import triton.language as tl


@triton.jit
def squared(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, value * value, mask=at < n)


@triton.jit
def squared_backward(x, g, dx, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slope = 2 * tl.load(x + at, mask=at < n)
    tl.store(dx + at, slope * tl.load(g + at, mask=at < n), mask=at < n)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        squared[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        squared_backward[(triton.cdiv(x.numel(), 1024),)](x, g.contiguous(), dx, x.numel(), BLOCK=1024)
        return dx
"""


def test_the_backward_pass_is_measured_and_checked_at_sizes_in_use(accelopt: Command, home: Path) -> None:
    (home / "k.py").write_text(AUTOGRAD, encoding="utf-8")
    written = accelopt("problem", "k.py", "--json")
    assert written.object["launched"] == ["squared", "squared_backward"], written.out
    problem = home / "k_problem.py"
    text = problem.read_text(encoding="utf-8")
    assert "backward = True" in text
    assert "get_inputs(rows=4096, columns=4096)" in text
    small = text.replace("4096", "64")
    for power, status in ((2, "passed"), (3, "failed")):
        problem.write_text(f"{small}\n\ndef reference(x):\n    return x ** {power}\n", encoding="utf-8")
        for kernel in accelopt("profile", "k.py", "--target", "h100", "--json").object["kernels"]:
            assert (kernel["latency"]["us"] is None) == (status == "failed")
            assert kernel["correctness"]["status"] == status, kernel["correctness"]


def test_what_goes_wrong_with_inferred_arguments_is_no_error_of_the_kernel(
    accelopt: Command, home: Path
) -> None:
    far = FILE.replace("tl.load(ids_ptr + row)", "tl.load(ids_ptr + row) + 1000000")
    (home / "k.py").write_text(far, encoding="utf-8")
    profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert profiled.code == 0, profiled.out
    outside = next(f for f in kernel["findings"] if f["code"] == "out-of-bounds")
    assert outside["severity"] == "information"
    assert outside["message"].startswith("With the inferred arguments: The load reads outside x")
    assert "Give real values" in outside["message"]
    accelopt("problem", "k.py")
    problem = home / "k_problem.py"
    for problem_text, severity in ((problem.read_text("utf-8"), "information"), ("", "error")):
        text = problem_text or problem.read_text("utf-8").replace("inferred = True", "")
        problem.write_text(text, encoding="utf-8")
        (kernel,) = accelopt("profile", "k.py", "--target", "h100", "--json").object["kernels"]
        assert [f["severity"] for f in kernel["findings"] if f["code"] == "out-of-bounds"] == [severity]


def test_sizes_are_raised_until_a_launch_has_programs(accelopt: Command, home: Path) -> None:
    text = FILE.replace("lead, heads, n = x.contiguous().shape", "lead, heads, n = x.shape").replace(
        "scaled[(lead * heads,)]", "scaled[(lead // 256 * heads,)]"
    )
    (home / "k.py").write_text(text, encoding="utf-8")
    profiled = accelopt("profile", "k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert kernel["latency"]["us"] > 0, profiled.out


def test_a_function_of_another_file_of_the_package_launches_the_kernel(accelopt: Command, home: Path) -> None:
    at = FILE.index("def leaky_relu")
    package = home / "pack"
    (package / "ops").mkdir(parents=True)
    for name, content in {
        "__init__.py": "", "ops/__init__.py": "", "ops/k.py": FILE[:at],
        "other.py": "import torch\n\ndef scaled(x):\n    return x\n\ndef wrong(x):\n    return scaled(x)\n",
        "layers.py": "import torch\nimport triton\n\nfrom pack.ops import k\n\n\n"
        + FILE[at:].replace("scaled[", "k.scaled["),
    }.items():  # fmt: skip
        (package / name).write_text(content, encoding="utf-8")
    assert accelopt("problem", "pack/ops/k.py").code == 0
    assert 'entry = "pack.layers:leaky_relu"' in (package / "ops/k_problem.py").read_text(encoding="utf-8")
    profiled = accelopt("profile", "pack/ops/k.py", "--target", "h100", "--json")
    (kernel,) = profiled.object["kernels"]
    assert kernel["name"] == "scaled"
    assert kernel["latency"]["us"] > 0, profiled.out
