"""Which kind of work an instruction does, by the beginning of its opcode: PTX, AMD GCN and NVIDIA machine code.

The classes: ``tensor`` (matrix units), ``async_copy`` (global to shared memory without registers, cp.async),
``bulk_copy`` (TMA), ``global_load``, ``global_store``, ``atomic``, ``shared_load``, ``shared_store``,
``spill_load``, ``spill_store`` (registers kept in local memory), ``barrier``, ``wait`` (for copies or tensor
instructions to finish), ``shuffle``, ``special`` (exp, sin, sqrt and the like), ``float``, ``branch``, ``other``.

Opcodes are those of the PTX ISA, of the CUDA Binary Utilities' instruction set tables and of AMD's CDNA ISA guides.
"""

from __future__ import annotations

from functools import lru_cache

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
    """The class of a PTX opcode such as ``"ld.global.v4.b32"``."""
    found = _first(PTX, opcode)
    if found is None and opcode.startswith(PTX_FLOAT_OPERATIONS) and opcode.endswith(PTX_FLOAT_TYPES):
        return "float"
    return found or "other"


@lru_cache(maxsize=4096)
def amdgcn_class(opcode: str) -> str:
    """The class of an AMD GCN opcode such as ``"global_load_dwordx4"``."""
    found = _first(AMDGCN, opcode)
    if found is None and opcode.startswith(AMDGCN_FLOAT):
        return "float"
    return found or "other"


@lru_cache(maxsize=4096)
def sass_class(opcode: str) -> str:
    """The class of an NVIDIA machine opcode such as ``"LDGSTS.E.BYPASS.128"``."""
    return _first(SASS, opcode) or "other"


def _first(table: tuple[tuple[str, tuple[str, ...]], ...], opcode: str) -> str | None:
    return next((name for name, beginnings in table if opcode.startswith(beginnings)), None)
