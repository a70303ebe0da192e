"""Problems out of other people's files: whatever stands in them, there is a finding or an error with its place."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problem_files import DEFINITION, KERNEL, context_of, found_in, loaded

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.call import run_problem
from accelopt_profiling.problems.discovery.script_detection import own_runs
from accelopt_profiling.problems.loading.flashinfer import parse_definition, parse_workloads
from accelopt_profiling.problems.problem import ProblemError
from accelopt_profiling.source_text import try_parse
from accelopt_profiling.worker.usercode import load_module

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.text(max_size=3)
    | st.sampled_from(["m", "var", "const", "float32"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "value", "shape", "dtype", "m", "workload", "axes", "inputs", "uuid"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(["axes", "inputs", "outputs", "reference", "name"]), JSON)
def test_any_definition_is_read_or_refused(part: str, value: Any) -> None:
    with contextlib.suppress(ProblemError):
        parse_definition(json.dumps({**DEFINITION, part: value}), "d.json")


@given(JSON)
def test_any_workload_is_read_or_refused(value: Any) -> None:
    definition = parse_definition(json.dumps(DEFINITION), "d.json")
    with contextlib.suppress(ProblemError):
        parse_workloads(json.dumps(value), definition, "w.jsonl")


def test_workloads_are_lines_that_end_with_a_newline_only() -> None:
    definition = parse_definition(json.dumps(DEFINITION), "d.json")
    lines = [
        json.dumps({"axes": {"m": 2}, "uuid": "a\u2028b\x85c"}, ensure_ascii=False),
        '{"axes": {"m": 3}}',
    ]
    workloads, _ = parse_workloads("\r\n".join(lines), definition, "w.jsonl")
    assert [w.axes["m"] for w in workloads] == [2, 3]


@pytest.mark.parametrize(
    "kernel", ["./kernels/\u0000.py", "./kernels/\ud800.py", "loop/x.py", "x" * 5000, "DEEP"]
)
def test_a_summary_may_name_what_is_no_file(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    summary = {"a": {"cases": {"0": {"impls": [{"task": kernel, "kernel": kernel}]}}}}
    text = json.dumps(summary).replace('"DEEP"', "[" * 100_000)
    lookup = found_in(tmp_path, {"summary.json": text}, KERNEL, None, None, "kernels/a_0.py")
    assert [f.code for f in lookup.findings] == ["no-problem"]


@pytest.mark.parametrize("setting", ["loop.py", "loop/p.py", "x" * 5000 + ".py", "a\u0000b.py"])
def test_the_settings_may_name_what_is_no_file(setting: str, tmp_path: Path) -> None:
    for loop in ("loop.py", "loop"):
        (tmp_path / loop).symlink_to(tmp_path / loop)
    lookup = found_in(tmp_path, {}, KERNEL, tmp_path, setting)
    assert [f.code for f in lookup.findings] in (["problem-invalid"], ["problem-missing"])


@pytest.mark.parametrize(
    "mark",
    [
        "parametrize(3, [1])",
        "parametrize((1, 2), [1])",
        "parametrize([['n']], [1])",
        "parametrize('n', [1])",
        "parametrize(f(), [1])",
        "parametrize({1: 2}, [1])",
    ],
)
def test_any_decorator_may_stand_on_a_test(mark: str) -> None:
    text = KERNEL + f"import pytest\n@pytest.mark.{mark}\ndef test_add(n):\n    add(n, n)\n"
    assert own_runs(try_parse(text).tree, find_kernels(text)).functions in ([], ["test_add"])


def test_both_models_draw_the_same_weights_from_any_generator(tmp_path: Path) -> None:
    model = (
        "import numpy as np, random, torch\n"
        "class {name}(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = np.random.normal() + random.random() + float(torch.rand(()))\n"
        "    def forward(self, x):\n"
        "        return x * self.w\n"
    )
    files = {
        "k.py": model.format(name="ModelNew"),
        "p.py": model.format(name="Model")
        + "def get_inputs(): return [torch.ones(3)]\ndef get_init_inputs(): return []\n",
    }
    problem = loaded(tmp_path, files, "kernelbench")
    inputs = problem.inputs(5)
    expected = problem.reference(inputs)
    assert expected is not None
    outputs = run_problem(problem, load_module(context_of(tmp_path, files)), inputs)
    assert float(outputs[0][0]) == float(expected[0][0])


@pytest.mark.parametrize("name", ["random.py", "copy.py", "numpy.py"])
def test_a_kernel_file_may_be_named_like_a_module(name: str, tmp_path: Path) -> None:
    import copy
    import random

    context = context_of(tmp_path, {name: "def kernel(x):\n    return x\n"}, name)
    assert load_module(context).kernel(3) == 3
    import sys

    assert (sys.modules["random"], sys.modules["copy"], sys.modules["numpy"]) == (random, copy, np)


def test_the_problem_finds_the_kernel_file_by_its_name(tmp_path: Path) -> None:
    files = {
        "k.py": "value = 1\ndef kernel(x):\n    return x\n",
        "p.py": "import k\ndef get_inputs(): return [k.value]\ndef reference(x): return x\n",
    }
    context = context_of(tmp_path, files)
    module = load_module(context)
    module.value = 7
    assert loaded(tmp_path, files, "module").inputs(0) == [7]
