"""Operators of torch, seen in its dispatcher."""

from __future__ import annotations

import pytest
import torch

from accelopt_profiling.gate.observe.dispatch_mode import poisoned_tensors

pytestmark = pytest.mark.triton


def test_operators_that_are_asked_for_anew_stay_as_they_are() -> None:
    one = torch.eye(3)
    for _ in range(30):  # the dispatcher remembers after some calls
        with poisoned_tensors():
            assert torch.equal(torch.ops.__getattr__("aten").__getattr__("mm")(one, one), one)
    assert torch.ops.__getattr__("aten") is torch.ops.aten


def test_memory_that_nobody_wrote_is_poisoned() -> None:
    with poisoned_tensors():
        assert torch.empty(4).isnan().all()
