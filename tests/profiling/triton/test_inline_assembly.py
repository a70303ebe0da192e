"""Straight sequences of inline assembly, device modules, and what is not emulated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from accelopt_profiling.triton import emulated
from accelopt_profiling.triton.interpreter.inline_assembly import run_assembly

pytestmark = pytest.mark.triton


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("tanh.approx.f32 $0, $1;", 0.462158203125),  # np.tanh(0.5) to eleven bits
        ("{ ex2.approx.ftz.f32 $0, $1; }", np.exp2(0.5)),
        ("griddepcontrol.wait; // dummy $0", 0),
        ("mov.u64 $0, %globaltimer;", 0),
        ("add.f32 $0, $1, 1.0; // one more\n mul.f32 $0, $0, 0f40000000;", 3.0),
        ("neg.f32 $0, $1; neg.f32 $0, $0;", 0.5),
        ("{ .reg .f32 t; mul.f32 t, $1, $1; } { fma.rn.f32 $0, t, 2., $1; }", 1.0),
        (".reg .pred p; setp.gt.f32 p, $1, 20.; @p mov.f32 $0, $1; @!p sub.f32 $0, $1, 1.;", -0.5),
        ("setp.lt.f32 p, $1, 1e0; selp.f32 $0, 3., 4., p;", 3.0),
        ("tanh.approx.f32 $0, $2;", None),
        ("cvt.rna.tf32.f32 $0, $1;", None),
        ("add.f32 $0, $1, 1;", None),
        ("again: add.f32 $0, $1, $1; bra again;", None),
        ("and.b32 $0, $1, 15;", None),
        ("ld.global.f32 $0, [$1];", None),
        ("@p mov.f32 $0, $1;", None),
    ],
)
def test_straight_sequences_are_computed_and_others_are_not(text, result):
    run = run_assembly(text, [np.array([0.5])])
    assert (run is None) if result is None else run.result[0] == pytest.approx(result)


def test_a_predicate_chooses_by_element():
    text = "setp.ge.f32 p, $1, 0.; @!p neg.f32 $0, $1; @p mov.f32 $0, $1;"
    run = run_assembly(text, [np.array([-2.0, 3.0], np.float32)])
    assert run is not None
    assert run.result.tolist() == [2, 3]
    assert run.instructions == 3


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
