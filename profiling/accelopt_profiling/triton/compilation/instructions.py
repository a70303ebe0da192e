"""Instructions with the source lines they come from, and their counts by class, by line and by loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True)
class AssemblyInstruction:
    """One instruction: its opcode, its class (see ``ptx_class`` and its kin) and the user's 1-based source line.

    ``line`` is 0 where the compiler names no line of the user's file. ``loops`` are the names of the loops the
    instruction is in, outermost first. ``bytes`` is what one thread moves in one global memory access, else 0.
    """

    opcode: str
    kind: str
    line: int
    loops: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True)
class AssemblyLoop:
    """One loop of the compiled code: the line of its ``for`` or ``while``, its depth (outermost 1) and the number of
    instructions of each class in one iteration of its body, those of inner loops left out.

    The compiler may have unrolled a source loop (then it is missing here, or an iteration stands for several).
    """

    line: int
    depth: int
    counts: dict[str, int]


@dataclass(frozen=True)
class Listing:
    """A kernel's instructions in order.

    ``loop_lines`` gives a loop's source line by the loop's name. ``inlined`` says for a position in any file
    ("standard.py:170") from which lines of the user's file the code there was inlined. ``misplaced`` says which line
    instructions of a class belong to that the assembler was told to be on another (see ``source_positions``).
    """

    instructions: tuple[AssemblyInstruction, ...]
    loop_lines: dict[str, int] = field(default_factory=dict)
    inlined: dict[str, frozenset[int]] = field(default_factory=dict)
    misplaced: dict[tuple[str, int], int] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Count the instructions of each class in the kernel (static: a loop's body counts once)."""
        return _count(self.instructions)

    def by_line(self) -> dict[int, dict[str, int]]:
        """Count them for each source line. Line 0 holds the instructions without a line."""
        lines: dict[int, list[AssemblyInstruction]] = {}
        for instruction in self.instructions:
            lines.setdefault(instruction.line, []).append(instruction)
        return {line: _count(group) for line, group in sorted(lines.items())}

    def access_bytes(self) -> dict[int, int]:
        """Return for each source line the widest global memory access of one thread, in bytes."""
        widest: dict[int, int] = {}
        for instruction in self.instructions:
            if instruction.bytes and instruction.line:
                widest[instruction.line] = max(widest.get(instruction.line, 0), instruction.bytes)
        return widest

    def loops(self) -> list[AssemblyLoop]:
        """Return the loops in order of their lines. Loops that only wait for a barrier are left out."""
        bodies: dict[tuple[str, ...], list[AssemblyInstruction]] = {}
        for instruction in self.instructions:
            if instruction.loops:
                bodies.setdefault(instruction.loops, []).append(instruction)
        loops = []
        for nest, body in bodies.items():
            counts = _count(body)
            if not set(counts) <= {"barrier", "wait", "branch", "other"}:
                line = self.loop_lines.get(nest[-1], 0) or min((i.line for i in body if i.line), default=0)
                loops.append(AssemblyLoop(line, len(nest), counts))
        return sorted(loops, key=lambda loop: (loop.line, loop.depth))


def _count(instructions: Iterable[AssemblyInstruction]) -> dict[str, int]:
    return dict(sorted(Counter(instruction.kind for instruction in instructions).items()))


# The first beginning that fits decides, so the longer ones come first.
PTX = (
    ("tensor", ("mma.", "wmma.mma", "wgmma.mma", "tcgen05.mma")),
    ("bulk_copy", ("cp.async.bulk", "cp.reduce.async.bulk")),
    (
        "wait",
        ("cp.async.wait", "wgmma.wait", "wgmma.fence", "tcgen05.wait", "tcgen05.fence", "mbarrier.try_wait"),
    ),
    ("barrier", ("cp.async.mbarrier", "bar.", "barrier.", "mbarrier.", "membar", "fence")),
    ("other", ("cp.async.commit",)),
    ("async_copy", ("cp.async.",)),
    ("atomic", ("atom.", "red.")),
    ("global_load", ("ld.global", "ldu.global", "ld.relaxed.gpu.global", "ld.volatile.global", "ld.acquire")),
    ("global_store", ("st.global", "st.release", "st.relaxed.gpu.global", "st.volatile.global")),
    ("shared_load", ("ld.shared", "ldmatrix")),
    ("shared_store", ("st.shared", "stmatrix")),
    ("spill_load", ("ld.local",)),
    ("spill_store", ("st.local",)),
    ("shuffle", ("shfl.", "redux.")),
    (
        "special",
        ("ex2.", "lg2.", "sin.", "cos.", "tanh.", "rsqrt.", "sqrt.", "rcp.", "div.approx", "div.full"),
    ),
    ("special", ("div.rn.f", "div.rz.f")),
    ("branch", ("bra",)),
)
PTX_FLOAT_OPERATIONS = ("add", "sub", "mul", "fma", "min", "max", "neg", "abs", "setp", "selp", "div")
PTX_FLOAT_TYPES = (".f16", ".bf16", ".f32", ".f64", ".f16x2", ".bf16x2")

AMDGCN = (
    ("tensor", ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")),
    ("async_copy", ("global_load_lds", "global_load_async")),
    ("atomic", ("global_atomic", "buffer_atomic", "flat_atomic")),
    ("global_load", ("global_load", "buffer_load", "flat_load")),
    ("global_store", ("global_store", "buffer_store", "flat_store")),
    ("shuffle", ("ds_bpermute", "ds_permute", "ds_swizzle", "v_permlane", "v_readlane")),
    ("shared_load", ("ds_read", "ds_load")),
    ("shared_store", ("ds_write", "ds_store")),
    ("spill_load", ("scratch_load",)),
    ("spill_store", ("scratch_store",)),
    ("barrier", ("s_barrier",)),
    ("wait", ("s_waitcnt",)),
    ("special", ("v_exp_", "v_log_", "v_sin_", "v_cos_", "v_sqrt_", "v_rsq_", "v_rcp_")),
    ("branch", ("s_branch", "s_cbranch")),
)
AMDGCN_FLOAT = ("v_add_f", "v_sub_f", "v_mul_f", "v_fma", "v_mac_f", "v_max_f", "v_min_f", "v_pk_", "v_cmp_")

SASS = (
    ("tensor", ("HMMA", "HGMMA", "QGMMA", "IGMMA", "BGMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA")),
    ("tensor", ("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA")),
    ("async_copy", ("LDGSTS",)),
    ("bulk_copy", ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED")),
    ("wait", ("DEPBAR", "LDGDEPBAR", "WARPGROUP", "SYNCS.PHASECHK")),
    ("barrier", ("BAR", "SYNCS", "WARPSYNC", "MEMBAR", "ERRBAR", "FENCE", "BSYNC")),
    ("global_load", ("LDG", "LD.")),
    ("global_store", ("STG", "ST.")),
    ("atomic", ("ATOM", "RED.", "REDG")),
    ("spill_load", ("LDL",)),
    ("spill_store", ("STL",)),
    ("shared_load", ("LDS",)),
    ("shared_store", ("STS",)),
    ("shuffle", ("SHFL", "REDUX", "CREDUX")),
    ("special", ("MUFU",)),
    ("float", ("FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "FSET", "FCHK", "FSWZADD")),
    ("float", ("HADD", "HMUL", "HFMA", "HMNMX", "HSETP", "DADD", "DMUL", "DFMA", "DSETP")),
    ("branch", ("BRA", "BRX", "JMP", "EXIT", "RET", "CALL")),
)


@lru_cache(maxsize=4096)
def ptx_class(opcode: str) -> str:
    """Return the class of a PTX opcode such as ``"ld.global.v4.b32"``."""
    kind = _first(PTX, opcode)
    if kind is None and opcode.startswith(PTX_FLOAT_OPERATIONS) and opcode.endswith(PTX_FLOAT_TYPES):
        return "float"
    return kind or "other"


@lru_cache(maxsize=4096)
def amdgcn_class(opcode: str) -> str:
    """Return the class of an AMD GCN opcode such as ``"global_load_dwordx4"``."""
    kind = _first(AMDGCN, opcode)
    if kind is None and opcode.startswith(AMDGCN_FLOAT):
        return "float"
    return kind or "other"


@lru_cache(maxsize=4096)
def sass_class(opcode: str) -> str:
    """Return the class of an NVIDIA machine opcode such as ``"LDGSTS.E.BYPASS.128"``."""
    return _first(SASS, opcode) or "other"


def _first(table: tuple[tuple[str, tuple[str, ...]], ...], opcode: str) -> str | None:
    return next((name for name, beginnings in table if opcode.startswith(beginnings)), None)
