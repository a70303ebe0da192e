"""A device runs a kernel alone: what else a call asks for is refused by name, never left out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from support.trainium_stand_ins import BETA1_KERNEL

from accelopt_profiling.kernels import find_kernels
from accelopt_profiling.problems.problem import Call, OutputSpec
from accelopt_profiling.trainium.device_run import kernel_alone
from accelopt_profiling.trainium.tools import DeviceError

KERNELS = find_kernels(BETA1_KERNEL).kernels
#: For each field of a call that is more than a kernel and its arguments by position, a value of it.
MORE: dict[str, Any] = {
    "style": "launch",
    "outputs": [OutputSpec([2], "float32")],
    "seed": 42,
    "keywords": ["scale"],
    "grid": ["2"],
    "on_chip": ["x"],
    "recorded": [{"entry": "kernel"}],
    "backward": True,
    "rows_apart": True,
    "parameters": {"w": [2]},
    "parameter_seed": 7,
    "buffers": 1,
    "methods": ["run"],
    "member": "package.operator",
}


def test_a_plain_call_is_run_also_with_a_check_of_the_file() -> None:
    assert kernel_alone(Call("kernel", own_check="line 3"), KERNELS).name == "kernel"


@pytest.mark.parametrize("name", [field.name for field in fields(Call)])
def test_nothing_of_a_call_is_left_out(name: str) -> None:
    if name in ("function", "own_check"):
        return
    with pytest.raises(DeviceError, match=MORE[name] if name == "style" else f"`{name}`") as refused:
        kernel_alone(Call("kernel", **{name: MORE[name]}), KERNELS)
    assert refused.value.code == "unsupported"
