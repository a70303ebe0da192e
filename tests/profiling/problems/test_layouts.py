"""Each layout's example, which its page shows, is found as what it is and gives the right result on every path."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.problem_files import context_of

from accelopt_profiling.comparison.inplace_outputs import returned
from accelopt_profiling.comparison.outputs import check_outputs, copy_inputs
from accelopt_profiling.examination import examine
from accelopt_profiling.gate.observe.emulation import emulation
from accelopt_profiling.plain import from_plain, to_plain
from accelopt_profiling.problems.call import perform, run_problem
from accelopt_profiling.problems.catalogue import LAYOUTS, is_unreferenced, layout_of
from accelopt_profiling.problems.layout import ProblemLayout
from accelopt_profiling.problems.loading.load import load_problem
from accelopt_profiling.problems.problem import Call, Problem
from accelopt_profiling.problems.ref import ProblemRef
from accelopt_profiling.step_context import StepContext
from accelopt_profiling.worker.project_modules import leave_project
from accelopt_profiling.worker.usercode import enter_sources, load_module

EXAMPLES = [layout for layout in LAYOUTS if layout.example]


def found(folder: Path, layout: ProblemLayout) -> tuple[StepContext, ProblemRef]:
    for file, text in layout.example.items():
        (folder / file).write_text(text, encoding="utf-8")
    path = folder / "k.py"
    problem = examine(path, layout.example["k.py"], project_root=folder).problem
    assert problem.findings == []
    assert problem.ref is not None
    context = context_of(folder / "job", {"k.py": layout.example["k.py"], **problem.files})
    return context, problem.ref


@pytest.mark.parametrize("layout", EXAMPLES, ids=lambda layout: layout.kind)
def test_an_example_is_found_as_what_it_is(layout: ProblemLayout, tmp_path: Path) -> None:
    _, ref = found(tmp_path, layout)
    assert layout_of(ref) is layout
    assert is_unreferenced(ref) != layout.referenced


@pytest.mark.parametrize(
    "layout", [layout for layout in EXAMPLES if layout.kind != "tritonbench"], ids=lambda layout: layout.kind
)
def test_an_example_gives_the_right_result(layout: ProblemLayout, tmp_path: Path) -> None:
    """Its call, as a profile makes it and as the gate does without the problem, against its reference."""
    context, ref = found(tmp_path, layout)
    dialect, target = ("nki", "trn1") if layout.kind == "nkibench" else ("triton", "h100")
    enter_sources(context)
    try:
        with emulation(dialect, target):
            module, problem = load_module(context), load_problem(context, ref, None)
            for call in (partial(run_problem, problem, module), partial(apart, problem, module)):
                inputs = problem.inputs(0)
                drawn = copy_inputs(inputs)
                outputs = returned(partial(call, inputs))
                assert check_outputs(problem, drawn, outputs, inputs).status == "passed"
    finally:
        leave_project()


def apart(problem: Problem, module: ModuleType, inputs: list[Any]) -> list[Any]:
    """Make the call from what a process gets that has no problem."""
    call, arguments = problem.call(inputs)
    return perform(module, from_plain(Call, to_plain(call)), arguments)


def test_a_kind_that_no_version_knows() -> None:
    with pytest.raises(ValueError, match="'other' is no kind of problem"):
        layout_of(ProblemRef("other"))
