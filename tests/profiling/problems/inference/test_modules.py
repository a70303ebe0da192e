"""Modules of torch whose ``forward`` launches kernels: what they are built with, what they are called with."""

from __future__ import annotations

import ast
from types import ModuleType

import pytest

from accelopt_profiling.problems.call import perform
from accelopt_profiling.problems.inference.entries import entry_candidates
from accelopt_profiling.problems.inference.guess import guess_call
from accelopt_profiling.problems.inference.usage import function_uses
from accelopt_profiling.problems.problem import Call

MODULE = """
import torch, triton

@triton.jit
def scaled(x_ptr, w_ptr, y_ptr, n, BLOCK):
    pass

class Scaled(torch.nn.Module):
    def __init__(self, hidden_size, activation, eps=1e-5, bias=False):
        super().__init__()
        self.linear = torch.nn.Linear(hidden_size, hidden_size)
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    def forward(self, x, residual=None):
        y = torch.empty_like(x)
        rows, columns = x.shape
        scaled[(rows,)](x, self.weight, y, columns, BLOCK=1024)
        return y
"""


def test_a_module_is_built_and_called() -> None:
    tree = ast.parse(MODULE)
    module, kernel = entry_candidates(tree, ["scaled"])
    assert (module.name, module.kind, kernel.kind) == ("Scaled", "module", "kernel")
    call = guess_call(MODULE, module, function_uses(tree, {"scaled"}))
    assert [a.name for a in call.arguments] == ["hidden_size", "activation", "x"]
    size, _, x = call.arguments
    assert size.kind == "value"
    assert (x.kind, len(x.dims), x.dtype) == ("tensor", 2, "float32")


def test_other_classes_are_no_entries() -> None:
    plain = MODULE.replace("torch.nn.Module", "object")
    assert [e.kind for e in entry_candidates(ast.parse(plain), ["scaled"])] == ["kernel"]


@pytest.mark.triton
def test_a_module_is_built_with_the_same_weights_each_time() -> None:
    import torch

    class Layer(torch.nn.Module):
        def __init__(self, size: int, scale: float, bias: bool = False) -> None:
            super().__init__()
            self.linear, self.scale = torch.nn.Linear(size, 2, bias), scale

        def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
            return self.linear(x) * self.scale + shift

    module = ModuleType("kernels")
    setattr(module, "Layer", Layer)  # noqa: B010 - a name that the type does not have
    x = torch.ones(4, 3)
    (one,), (again,) = (perform(module, Call("Layer"), [3, 2.0, x]) for _ in range(2))
    assert torch.equal(one, again)
    (shifted,) = perform(module, Call("Layer", keywords=["shift"]), [3, 2.0, x, 1.0])
    assert torch.equal(shifted, one + 1)
