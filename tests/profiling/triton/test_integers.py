"""Integer instructions of compiled code: which count, and what each costs."""

import pytest

from accelopt_profiling.triton.compilation.instructions import AssemblyInstruction, Listing
from accelopt_profiling.triton.compilation.integers import amdgcn_cost, integer_instructions, ptx_cost


@pytest.mark.parametrize(
    ("opcode", "cost"),
    [("add.s32", 1), ("add.s64", 2), ("xor.b32", 0.5), ("mul.lo.s32", 1), ("mul.hi.u32", 2), ("mul.wide.s32", 2),
     ("div.s32", 20), ("rem.u64", 100), ("selp.f32", 1), ("setp.lt.s32", 1), ("shf.l.wrap.b32", 1),
     ("add.f32", None), ("setp.gt.f32", None), ("mov.b32", None), ("ld.global.b32", None), ("cvt.rn.f32.s32", None)],
)  # fmt: skip
def test_ptx(opcode: str, cost: float | None) -> None:
    assert ptx_cost(opcode) == cost


@pytest.mark.parametrize(
    ("opcode", "cost"),
    [("v_add_u32_e32", 1), ("v_mul_lo_u32", 4), ("v_mul_hi_u32", 4), ("v_xor_b32_e32", 1), ("v_cmp_gt_i32_e32", 1),
     ("v_add_f32_e32", None), ("s_add_u32", None), ("v_cmp_gt_f32_e32", None)],
)  # fmt: skip
def test_amdgcn(opcode: str, cost: float | None) -> None:
    assert amdgcn_cost(opcode) == cost


def test_those_in_loops_are_counted_apart_and_those_without_a_line_not_at_all() -> None:
    def at(opcode: str, line: int, *loops: str) -> AssemblyInstruction:
        return AssemblyInstruction(opcode, "other", line, loops)

    listing = Listing((at("add.s32", 3), at("mul.hi.u32", 3, "1"), at("add.f32", 3), at("add.s32", 0)))
    instructions = integer_instructions(listing, ptx_cost)
    assert list(instructions) == [3]
    assert (instructions[3].once, instructions[3].looped, instructions[3].cost) == (1, 1, 1.5)
