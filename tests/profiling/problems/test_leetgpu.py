"""LeetGPU's challenges: where they are looked for, what they inherit from, and what their tests describe."""

from __future__ import annotations

from pathlib import Path

from support.problem_files import context_of, found_in

from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.problems.layouts.leetgpu import LAYOUT
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.worker.project_modules import leave_project
from accelopt_profiling.worker.usercode import enter_sources

KERNEL, CHALLENGE = LAYOUT.example["k.py"], LAYOUT.example["challenge.py"]


def test_a_challenge_lies_above_its_solutions_with_its_base(tmp_path: Path) -> None:
    base = "class ChallengeBase: pass\n"
    files = {"easy/1_scale/challenge.py": CHALLENGE, "core/challenge_base.py": base}
    lookup = found_in(tmp_path, files, KERNEL, tmp_path, name="easy/1_scale/solution/solution.triton.py")
    assert lookup.ref is not None
    assert (lookup.ref.kind, lookup.ref.path) == ("leetgpu", "easy/1_scale/challenge.py")
    assert lookup.files["easy/1_scale/solution/core/challenge_base.py"] == base
    inside = tmp_path / "easy/1_scale/solution"
    assert found_in(inside, {}, KERNEL, inside, name="solution.triton.py").ref is None


def test_a_file_of_that_name_may_be_something_else(tmp_path: Path) -> None:
    files = {"challenge.py": "class Challenge:\n    def other(self): pass\n"}
    assert found_in(tmp_path, files, KERNEL, tmp_path).ref is None
    comment = "# accelopt: problem=scale.py\n"
    lookup = found_in(
        tmp_path, {"scale.py": CHALLENGE}, comment + KERNEL.replace("solve", "scaled"), tmp_path
    )
    assert lookup.ref is not None
    assert lookup.ref.kind == "leetgpu"


def test_tensors_of_a_performance_test_may_be_described(tmp_path: Path) -> None:
    described = """
class RandTensor:
    def __init__(self, low, high, dtype):
        self.shape, self.low, self.high, self.dtype = (4000,), low, high, dtype

class FullTensor:
    def __init__(self, value):
        self.shape, self.value, self.dtype = (4000,), value, "float32"

"""
    test = '{"x": RandTensor(LOW, 8, DTYPE), "out": FullTensor(7), "n": 4000}'
    for dtype, low in (("float32", "5.0"), ("int32", "5")):
        own = described + CHALLENGE.replace("self.test(5000)", test)
        own = own.replace("LOW", low).replace("DTYPE", repr(dtype))
        folder = tmp_path / dtype
        lookup = found_in(folder, {"challenge.py": own}, KERNEL, folder)
        assert lookup.ref is not None
        context = context_of(folder / "job", {"k.py": KERNEL, **lookup.files})
        enter_sources(context)
        try:
            with emulation("triton", "h100"):
                x, out, n = load_problem(context, lookup.ref, None).inputs(0)
        finally:
            leave_project()
        assert str(x.dtype) == f"torch.{dtype}"
        assert 5 <= x.min() < 5.2 + 0.8 * (dtype == "int32")
        assert 7 <= x.max() < 8
        assert out.tolist() == [7.0] * 4000
        assert n == 4000
