"""What host code computes is counted, by whatever way it gets at the elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from accelopt_profiling.gate.observe.hostwork import HostWork, covers

RNG = np.random.default_rng(4)
X = RNG.standard_normal((32, 16)).astype(np.float32)

#: A way to the exponential of each element, and the kind of work it is.
WAYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "at once": ("exp", np.exp),
    "row by row": ("exp", lambda x: np.stack([np.exp(row) for row in x])),
    "vectorize": ("Python", np.vectorize(math.exp, otypes=[np.float32])),
    "frompyfunc": ("Python", np.frompyfunc(math.exp, 1, 1)),
    "apply_along_axis": ("Python", lambda x: np.apply_along_axis(np.exp, 1, x)),
    "a list": ("Python", lambda x: [[math.exp(v) for v in row] for row in x.tolist()]),
    "iteration": ("Python", lambda x: [math.exp(v) for row in x for v in row]),
    "flat": ("Python", lambda x: np.fromiter((math.exp(v) for v in x.flat), np.float32)),
    "indices": ("Python", lambda x: [math.exp(x[i, j]) for i in range(32) for j in range(16)]),
    "bytes": ("Python", lambda x: np.frombuffer(x.tobytes(), np.float32) ** 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_the_elements_counts(way: str) -> None:
    kind, function = WAYS[way]
    work = HostWork()
    function(work.marked(X))
    assert work.total.get(kind, 0) >= X.size
    assert covers(work.total, {"exp": X.size})


@pytest.mark.parametrize(
    "function",
    [lambda x: x.reshape(-1), lambda x: np.pad(x, 3), lambda x: x[1:4, ::2].copy(), lambda x: x[0, 0],
     lambda x: np.ascontiguousarray(x.T), lambda x: [x.shape, x.dtype, list(x)]],
)  # fmt: skip
def test_moving_data_about_is_no_work(function: Callable[[Any], Any]) -> None:
    work = HostWork()
    function(work.marked(X))
    assert max(work.total.values(), default=0) <= 1


def test_a_tensor_taken_to_numpy_counts_on() -> None:
    work, x = HostWork(), torch.from_numpy(X)
    with work.counting():
        back = torch.from_numpy(x.cpu().numpy() @ np.ones((16, 4), np.float32))
        with work.pausing():
            np.exp(x.numpy())
    assert type(back) is torch.Tensor
    assert work.total == {"matmul": X.size}
    assert type(x.numpy()) is np.ndarray


def test_the_largest_operation_and_all_together() -> None:
    work = HostWork()
    for row in work.marked(X):
        np.exp(row)
    assert (work.elements["exp"], work.total["exp"]) == (16, X.size)


def test_python_does_not_cover_what_it_had_no_elements_of() -> None:
    assert covers({"Python": 100}, {"exp": 100, "matmul": 100})
    assert not covers({"Python": 10}, {"exp": 100})
    assert not covers({"Python": 100}, {})
