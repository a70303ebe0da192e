"""The problem file that is written from an NKI kernel's signature parses, loads, and fits the kernel."""

from __future__ import annotations

from typing import Any

import pytest

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.discovery.entry import find_entry
from accelopt_profiling.problems.discovery.template import problem_template

NKI = "import neuronxcc.nki as nki\n@nki.jit\ndef {}({}):\n    pass\n"


def executed(template: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(template, "template", "exec"), namespace)  # noqa: S102
    return namespace


@pytest.mark.parametrize("name", ["silu", "softmax", "mystery"])
@pytest.mark.parametrize("arguments", ["x", "x, w", "x, weight, eps", "a, b, n, scale"])
def test_the_template_runs_and_fits(name: str, arguments: str) -> None:
    text = NKI.format(name, arguments)
    namespace = executed(problem_template(text, find_kernels(text).kernels[0]))
    inputs = namespace["get_inputs"]()
    assert len(inputs) == len(arguments.split(","))
    assert namespace["entry"] == find_entry(text, len(inputs)) == name
    assert "reference" not in namespace, "a reference is never guessed"


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
        namespace = executed(problem_template(text, kernel))
        assert callable(namespace["get_inputs"])


def test_sizes_follow_what_the_text_unpacks_and_asserts() -> None:
    text = (
        "import nki\nimport nki.language as nl\nTILE = 384\n"
        "@nki.jit\ndef k(lhs, rhs, eps):\n"
        '    """rhs: [K2, N], the other operand."""\n'
        "    batch, K, M = lhs.shape\n    K2, N = rhs.shape\n"
        "    assert K == K2 and M % TILE == 0\n    assert K <= nl.tile_size.pmax, 'too many'\n"
        "    kernel_assert(lhs.shape[0] == 2, 'two')\n"
    )
    namespace = executed(problem_template(text, find_kernels(text).kernels[0]))
    lhs, rhs, eps = namespace["get_inputs"]()
    assert lhs.shape[0] == 2
    assert lhs.shape[1] == rhs.shape[0] <= 128
    assert lhs.shape[2] % 384 == 0
    assert eps < 1e-3
