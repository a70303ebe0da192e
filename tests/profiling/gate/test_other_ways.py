"""What holds only in one order of programs, on one device, in one process, or where PyTorch does the work."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gate_checker import Checker, codes

from accelopt_profiling.gate.budget import GateBudget
from accelopt_profiling.gate.observe.hostwork import HostWork
from accelopt_profiling.gate.observe.other_devices import other_devices
from accelopt_profiling.gate.observe.salted_hash import SaltedHashes
from accelopt_profiling.gate.request import CaseOptions
from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.interpreter.sampling import InterpretationPlan

PROBLEM = """
import torch

def get_inputs(rows=12, columns=64):
    return [torch.randn(rows, columns, device="cuda")]

def reference(x):
    return x * 2
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, counter_ptr, columns, rows, BLOCK: tl.constexpr):
    place = tl.program_id(0)
    for row in range(place, rows, tl.num_programs(0)):
        at = row * columns + tl.arange(0, BLOCK)
        inside = tl.arange(0, BLOCK) < columns
        tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=inside), mask=inside)

def kernel(x):
    y = torch.empty_like(x)
    rows, columns = x.shape
    counter = torch.zeros(1, dtype=torch.int32, device=x.device)
    programs = rows
    double_kernel[(programs,)](x, y, counter, columns, rows, BLOCK=triton.next_power_of_2(columns))
    return y
"""
ASKED = "programs = min(rows, torch.cuda.get_device_properties(x.device).multi_processor_count)"


WIDE = KERNEL.replace("place = tl.program_id(0)", "place = tl.program_id(0).to(tl.int64)")
#: The run alone decides.
OPTIONS = CaseOptions(
    distributions=["original", "large"], shapes=0, budget=GateBudget(repeats=3), reading=False
)


def _codes(checker: Checker, folder: Path, candidate: str, original: str = KERNEL) -> list[str]:
    """Return the codes for which a candidate is refused; none where it is accepted."""
    (folder / "double.py").write_text(original)
    (folder / "double_problem.py").write_text(PROBLEM)
    verdict, _ = checker.file(folder / "double.py", candidate, "h100", OPTIONS)
    return [] if verdict.accepted else codes(verdict)


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("place = tl.program_id(0)", "place = tl.atomic_add(counter_ptr, 1)", ""),
        (
            "y_ptr + at, 2",
            "y_ptr + tl.atomic_add(counter_ptr, 1) * columns + tl.arange(0, BLOCK), 2",
            "order",
        ),
        ("programs = rows", ASKED, ""),
        ("tl.num_programs(0)):", "132):", ""),
        (
            "programs = rows",
            ASKED + "\n    rows = rows if torch.cuda.get_device_capability()[0] < 10 else rows - 1",
            "mode-branch",
        ),
        ("programs = rows", "programs = 1 + hash('rows') % rows", "mode-branch"),
    ],
    ids=["ticket", "place by ticket", "processors", "132", "newer device", "hash"],
)
def test_orders_devices_and_processes(
    checker: Checker, tmp_path: Path, old: str, new: str, code: str
) -> None:
    candidate = KERNEL.replace(old, new)
    assert candidate != KERNEL
    assert _codes(checker, tmp_path, candidate) == ([code] if code else [])


@pytest.mark.triton
@pytest.mark.slow
def test_a_fixed_number_of_processors_is_wrong_on_a_small_device_unless_the_original_is(
    checker: Checker, tmp_path: Path
) -> None:
    candidate = KERNEL.replace("programs = rows", ASKED).replace("tl.num_programs(0)):", "132):")
    assert _codes(checker, tmp_path, candidate) == ["mode-branch"]
    assert _codes(checker, tmp_path, f"{candidate}\n# the same\n", candidate) == []


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize(
    ("original", "candidate", "code"),
    [
        (WIDE, KERNEL, "kernel-raised"),
        (KERNEL, KERNEL, ""),
        (WIDE, WIDE.replace("(programs,)", "(min(rows, 32),)"), ""),
        (WIDE, WIDE.replace("programs = rows", "programs = sum(1 for _ in range(rows * columns))"), ""),
    ],
    ids=["32 bits", "32 bits in the original", "a step", "a walk on the host"],
)
def test_offsets_pass_32_bits_where_the_original_s_do(
    checker: Checker, tmp_path: Path, original: str, candidate: str, code: str
) -> None:
    candidate += "\n# written anew\n"
    assert _codes(checker, tmp_path, candidate, original) == ([code] if code else [])


def test_another_order_is_never_the_launch_s() -> None:
    two = [(0, 0, 0), (1, 0, 0)]
    assert {tuple(InterpretationPlan(order=seed).ordered(two)) for seed in range(8)} == {tuple(two[::-1])}
    assert InterpretationPlan().ordered(two) == two


@pytest.mark.parametrize("target", ["h100", "b200", "mi300x", "mi355x"])
def test_other_devices_are_other_ones(target: str) -> None:
    newer, small = other_devices(target).values()
    assert newer.arch != load_gpu(target).arch
    assert small.device_properties()["multiprocessor_count"] == 4
    assert small.backend == newer.backend == load_gpu(target).backend


@pytest.fixture
def hashes() -> Iterator[SaltedHashes]:
    real = builtins.hash
    yield SaltedHashes(str(Path(__file__)))
    builtins.hash = real


def test_a_salted_hash_may_be_a_key(hashes: SaltedHashes) -> None:
    table = {hash("name"): 1, hash(("a", 2)): 2}
    assert table[hash("name")] == 1
    assert hash("name") == hash("name")
    assert hash((1, 2.0)) % 5 >= 0
    assert not hashes.used


def test_a_salted_hash_may_not_be_a_number(hashes: SaltedHashes) -> None:
    for use in (lambda n: n % 7, lambda n: n == 3, lambda n: 1 if n else 0, lambda n: n > 5, str):
        hashes.used = False
        use(hash("name"))  # type: ignore[operator]
        assert hashes.used


@pytest.mark.triton
def test_writes_that_add_up_are_work() -> None:
    import torch

    places, rows = torch.tensor([0, 1, 0]), torch.ones(3, 4)
    done: dict[str, dict[str, int]] = {}
    for name, act in {
        "moved": lambda: torch.zeros(2, 4).index_put_((places,), rows),
        "added": lambda: torch.zeros(2, 4).index_put_((places,), rows, accumulate=True),
        "gradient": lambda: torch.autograd.grad(
            (base := torch.zeros(2, 4, requires_grad=True))[places], base, rows
        ),
        "scattered": lambda: torch.zeros(3, 4).scatter_(0, places[:, None], rows, reduce="add"),
    }.items():
        work = HostWork()
        with work.counting():
            act()
        done[name] = work.elements
    assert "scatter" not in done.pop("moved")
    assert all("scatter" in elements for elements in done.values()), done
