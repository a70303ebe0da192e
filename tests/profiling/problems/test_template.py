"""The problem file that is written from a kernel's signature parses, loads, and fits the kernel."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.discovery.entry import find_entry
from accelopt_profiling.problems.discovery.template import problem_template

NKI = "import neuronxcc.nki as nki\n@nki.jit\ndef {}({}):\n    pass\n"
TRITON = "import triton\nimport triton.language as tl\n@triton.jit\ndef {0}_kernel({1}, BLOCK: tl.constexpr): pass\n"
LAUNCHED = TRITON + "def {0}({1}): {0}_kernel[(1,)]({1}, BLOCK=1)\n"


def executed(template: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(template.replace('device="cuda"', 'device="cpu"'), "template", "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("name", ["silu", "softmax", "add", "matmul", "mystery"])
@pytest.mark.parametrize("source", [NKI, pytest.param(LAUNCHED, marks=pytest.mark.triton)])
@pytest.mark.parametrize("arguments", ["x", "x, w", "x, weight, eps", "a, b, n, scale"])
def test_the_template_runs_and_fits(name: str, source: str, arguments: str) -> None:
    text = source.format(name, arguments)
    kernel = find_kernels(text).kernels[0]
    template = problem_template(text, kernel)
    made = executed(template)
    inputs = made["get_inputs"]()
    assert len(inputs) == len(arguments.split(","))
    assert made["entry"] == find_entry(text, len(inputs)) == name
    if "NotImplementedError" in template:
        with pytest.raises(NotImplementedError, match=name):
            made["reference"](*inputs)
    elif name != "matmul":  # of two guessed matrices the second has to be corrected by hand
        assert made["reference"](*inputs) is not None


def test_known_results_are_guessed() -> None:
    text = NKI.format("softmax", "x")
    made = executed(problem_template(text, find_kernels(text).kernels[0]))
    (x,) = made["get_inputs"](4, 8)
    assert made["reference"](x).sum(axis=-1) == pytest.approx(1.0)


def test_a_kernel_that_no_function_launches_says_what_to_write() -> None:
    text = TRITON.format("mystery", "x_ptr, out_ptr, n_elements")
    template = problem_template(text, find_kernels(text).kernels[0])
    ast.parse(template)
    assert "Write one that takes the inputs" in template


@pytest.mark.parametrize(
    "text",
    [
        "import neuronxcc.nki as nki\nclass A:\n    @nki.jit\n    def k(self, x): pass\n",
        "import neuronxcc.nki as nki\n@nki.jit\ndef k(): pass\n",
        "import neuronxcc.nki as nki\n@nki.jit\ndef k(*tensors, **rest): pass\n",
        "import neuronxcc.nki as nki\n@nki.jit\ndef k(x: 'np.ndarray', n: int = 3, *, eps: float): pass\n",
        "import neuronxcc.nki as nki\n@nki.jit\ndef k(x): pass\n@nki.jit\ndef k(y): pass\n",
    ],
)
def test_every_signature_gives_valid_python(text: str) -> None:
    for kernel in find_kernels(text).kernels:
        made = executed(problem_template(text, kernel))
        assert callable(made["get_inputs"])
        assert callable(made["reference"])
