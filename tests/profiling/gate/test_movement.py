"""Whether launches compute: what is seen of a launch that was run whole, and of one that was not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from accelopt_profiling.gate.observe.movement import Movement


def copies(x: Any, out: Any) -> None:
    out.copy_(x)


def doubles(x: Any, out: Any) -> None:
    out.copy_(2 * x)


@pytest.mark.parametrize(
    ("kernel", "whole", "only"), [(copies, True, True), (doubles, True, False), (copies, False, False)]
)
def test_a_launch_that_only_moves(kernel: Any, whole: bool, only: bool) -> None:
    movement = Movement()
    launch = movement.around(lambda *launched: kernel(*launched[4]), lambda: whole)
    launch(None, None, None, (1,), (torch.tensor([1.0, 2.5, 7.0]), torch.zeros(3)))
    assert movement.only is only
