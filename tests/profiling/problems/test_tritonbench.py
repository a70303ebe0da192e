"""tritonbench operators as problems: what is found of them by syntax, and how they are imported."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.problem_kinds import KINDS

from accelopt_profiling.examination import examine
from accelopt_profiling.job_files import job_files
from accelopt_profiling.jobs import JobFiles
from accelopt_profiling.problems.layouts.tritonbench import benchmarked_operator, names_from
from accelopt_profiling.worker.usercode import _shipped_member

_METHODS = """
from .kernels import fast_kernel as fast
from tritonbench.operators.x import kernels

def launched(x):
    fast[(1,)](x)

class Operator(BenchmarkOperator):
    @register_benchmark({0})
    def eager(self, x):
        return lambda: x

    @register_benchmark()
    def through_a_function(self, x):
        return lambda: launched(x)

    @register_benchmark()
    def through_a_method(self, x):
        return lambda: self.helper(x)

    @register_benchmark()
    def of_another_library(self, x):
        return lambda: cublas(x)

    @register_benchmark(enabled=False)
    def switched_off(self, x):
        return lambda: launched(x)

    def helper(self, x):
        kernels.slow_kernel[(1,)](x)
"""


@pytest.mark.parametrize("baseline", ["eager", ""])
def test_the_benchmarks_that_launch_the_files_kernels_are_found(baseline: str) -> None:
    tree = ast.parse(_METHODS.replace("{0}", "baseline=True" if baseline else ""))
    names = names_from(tree, "kernels")
    assert names == {"fast", "kernels"}
    operator = benchmarked_operator(tree, names)
    assert operator is not None
    assert operator.methods == ["through_a_function", "through_a_method"]
    assert operator.baseline == baseline
    assert benchmarked_operator(tree, {"another_kernel"}) is None


def test_a_baseline_that_launches_the_kernels_itself_is_no_reference() -> None:
    text = "class O(BenchmarkOperator):\n    @register_benchmark(baseline=True)\n    def a(self):\n        k[(1,)]()\n"
    operator = benchmarked_operator(ast.parse(text), {"k"})
    assert operator is not None
    assert (operator.methods, operator.baseline) == (["a"], "")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("tritonbench")])
def test_a_job_for_an_operator_is_imported_by_its_packages_names(tmp_path: Path, kind: str) -> None:
    case = KINDS[kind]
    path = case.write(tmp_path)
    file = examine(path, path.read_text(), project_root=tmp_path)
    assert file.problem.ref is not None
    assert file.problem.ref.kind == "tritonbench"
    own = path.name == "operator.py"
    assert file.problem.ref.options["member"] == ("" if own else "tritonbench.operators.scale.operator")
    source = job_files(file, ship_imports=True)
    assert "tritonbench/utils/triton_op.py" in source.files
    member = _shipped_member(source, source.kernel)
    assert member == ("tritonbench.operators.scale.operator" if own else None)
    alone = JobFiles(source.kernel, {source.kernel: source.files[source.kernel]})
    assert _shipped_member(alone, source.kernel) is None
