"""Single instructions of inline assembly, device modules, and what is not emulated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.interpreter.inline_assembly import instruction

pytestmark = pytest.mark.triton


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("tanh.approx.f32 $0, $1;", np.tanh(0.5)),
        ("{ ex2.approx.ftz.f32 $0, $1; }", np.exp2(0.5)),
        ("griddepcontrol.wait; // dummy $0", 0),
        ("mov.u64 $0, %globaltimer;", 0),
        ("tanh.approx.f32 $1, $0;", None),
        ("cvt.rna.tf32.f32 $0, $1;", None),
        ("add.f32 $0, $1, 1;", None),
        ("neg.f32 $0, $1; neg.f32 $0, $0;", None),
    ],
)
def test_one_instruction_is_computed_and_others_are_not(text, result):
    found = instruction(text, [np.array([0.5])])
    assert (found is None) if result is None else found[0] == pytest.approx(result)


@triton.jit
def waits(x):
    gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(x, tl.load(x) + 1)


@triton.jit
def scaled(x, S: tl.constexpr):
    a = tl.full((32, 32), 0, tl.uint8)
    tl.dot_scaled(a, None, "e5m2", a, None, "e5m2")


def test_launches_that_depend_on_each_other_run_in_turn():
    with emulated("h100") as session:
        x = torch.zeros(1, device="cuda")
        waits[(1,)](x)
        scaled[(1,)](x, 1)
    first, second = session.executions
    assert first.error is None
    assert x.item() == 1
    assert str(second.error) == "not emulated: tl.dot_scaled"
