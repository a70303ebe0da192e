"""Count the integer instructions of compiled code: by source line, those in loops apart, and what they cost.

The listing is PTX or AMD machine code: what the compiler has hoisted out of loops, shared or vectorised is counted as
often as it is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from accelopt_profiling.triton.compilation.instructions import Listing


@dataclass(frozen=True)
class IntegerInstructions:
    """Instructions of one source line in the code of one thread: ``once`` outside of loops, ``looped`` inside.

    ``cost`` is what one takes on average, in additions.
    """

    once: int
    looped: int
    cost: float


#: CUDA C++ Programming Guide, "Instruction Throughput": an integer division is up to 20 instructions.
DIVISION = 20.0
#: A 64-bit division calls a function of about as many instructions. Our assumption.
LONG_DIVISION = 100.0
#: The high half of a product: half of the rate of a multiplication. Our assumption.
HIGH_HALF = 2.0
#: ptxas joins two logic instructions, on three operands, into one.
LOGIC = 0.5

# The first beginning that fits decides. Costs on 32 bits and on 64.
_PTX = (
    (("mul.hi", "mad.hi"), HIGH_HALF, 4 * HIGH_HALF),
    (("mul.wide", "mad.wide"), HIGH_HALF, HIGH_HALF),
    (("mul.", "mad."), 1.0, 4.0),
    (("div.", "rem."), DIVISION, LONG_DIVISION),
    (("and.", "or.", "xor.", "not."), LOGIC, 2 * LOGIC),
    (("add.", "sub.", "shl.", "shr.", "shf.", "min.", "max.", "neg.", "abs.", "setp.", "selp.", "lop3."), 1.0, 2.0),
    (("bfe.", "bfi.", "prmt.", "sad.", "dp4a.", "dp2a.", "fns.", "brev."), 1.0, 2.0),
    (("popc.", "clz.", "bfind."), 4.0, 8.0),
)  # fmt: skip
_PTX_TYPE = re.compile(r"\.(?:pred|[bsu](8|16|32|64))$")
_SELECTS = ("selp.f", "selp.b")

_AMDGCN = (
    (("v_mul_lo_u32", "v_mul_hi_", "v_mad_u64_u32", "v_mad_i64_i32"), 4.0),  # a quarter of the rate
    (
        ("v_add_u", "v_add_i", "v_add_co", "v_addc", "v_add3", "v_add_nc", "v_sub_u", "v_sub_co", "v_subb", "v_subrev",
         "v_and", "v_or", "v_xor", "v_xad", "v_not", "v_lshl", "v_lshr", "v_ashr", "v_alignb", "v_perm_b32", "v_bfe",
         "v_bfi", "v_bcnt", "v_ffb", "v_mul_u32_u24", "v_mul_i32_i24", "v_mad_u32_u24", "v_mad_i32_i24", "v_mad_u16",
         "v_min_i", "v_min_u", "v_max_i", "v_max_u", "v_cndmask"),
        1.0,
    ),
)  # fmt: skip
_AMDGCN_COMPARE = re.compile(r"v_cmpx?_\w+_[iu](16|32|64)")


@lru_cache(maxsize=4096)
def ptx_cost(opcode: str) -> float | None:
    """Return the cost of a PTX instruction in additions.

    None where it is not an integer one.

    Selections count whatever they select, as the interpreter counts them.
    """
    match = _PTX_TYPE.search(opcode)
    if match is None and not opcode.startswith(_SELECTS):
        return None
    long = match is not None and match[1] == "64"
    return next((wide if long else short for names, short, wide in _PTX if opcode.startswith(names)), None)


@lru_cache(maxsize=4096)
def amdgcn_cost(opcode: str) -> float | None:
    """Return the same for an AMD GCN instruction. Those on scalar registers are not counted."""
    if _AMDGCN_COMPARE.match(opcode):
        return 1.0
    return next((cost for names, cost in _AMDGCN if opcode.startswith(names)), None)


def integer_instructions(
    listing: Listing, cost_of: Callable[[str], float | None]
) -> dict[int, IntegerInstructions]:
    """Return the integer instructions of each source line that has any."""
    costs: dict[int, list[tuple[bool, float]]] = {}
    for instruction in listing.instructions:
        cost = cost_of(instruction.opcode)
        if cost is not None and instruction.line:
            costs.setdefault(instruction.line, []).append((bool(instruction.loops), cost))
    return {
        line: IntegerInstructions(
            sum(not looped for looped, _ in group),
            sum(looped for looped, _ in group),
            sum(cost for _, cost in group) / len(group),
        )
        for line, group in sorted(costs.items())
    }
