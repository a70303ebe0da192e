"""Machine code per line and per loop, against plain counts in nvdisasm's text; and loops of any graph."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compile_launches import FILE, line_of, matmul, softmax

from accelopt_profiling.targets import load_gpu
from accelopt_profiling.triton.compilation.assembly import parse_amdgcn, parse_ptx
from accelopt_profiling.triton.compilation.compile import (
    _triton_compile,
    compile_with_machine_code,
    cuda_tool,
)
from accelopt_profiling.triton.compilation.instructions import amdgcn_class, ptx_class, sass_class
from accelopt_profiling.triton.compilation.machine_code import DisassemblyError, disassemble, natural_loops
from accelopt_profiling.triton_adapter.compiler import located_ptx

pytestmark = pytest.mark.triton


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("triton-cache")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_100"])
def test_counts_agree_with_a_plain_count_in_the_disassembly(name: str, cache: Path) -> None:
    target, launch = load_gpu(name), matmul()
    kernel, _ = _triton_compile(launch, target, launch.options, cache)
    text = disassemble(kernel.asm["cubin"], cuda_tool("nvdisasm"))
    facts = compile_with_machine_code(launch, target, cache)
    assert facts.detail == "machine code"
    plain = {
        "tensor": r"\s(?:HMMA\.|HGMMA\.|UTCHMMA )",
        "async_copy": r"\sLDGSTS\.",
        "global_store": r"\sSTG\.",
        "shared_store": r"\sSTS[\. ]",
    }
    for kind, pattern in plain.items():
        assert facts.instructions[kind] == len(re.findall(pattern, text)) > 0, kind
    assert sum(facts.instructions.values()) == len(re.findall(r"^\s*/\*[0-9a-f]{4,}\*/ ", text, re.M))


@pytest.mark.parametrize("name", ["sm_80", "sm_90", "sm_100"])
def test_the_loop_and_the_lines_of_memory_are_the_sources(name: str, cache: Path) -> None:
    facts = compile_with_machine_code(matmul(), load_gpu(name), cache)
    loops = [loop for loop in facts.loops if loop.counts.get("tensor")]
    assert [loop.line for loop in loops] == [line_of("the loop")]
    copies = {line: counts["async_copy"] for line, counts in facts.lines.items() if counts.get("async_copy")}
    assert set(copies) == {line_of("the left load"), line_of("the right load")}
    assert sum(copies.values()) == facts.instructions["async_copy"]


def test_spills_are_counted_on_their_lines_and_agree_with_the_text(cache: Path) -> None:
    target, launch = load_gpu("sm_100"), matmul(256, 256, 32, num_warps=4)
    kernel, _ = _triton_compile(launch, target, launch.options, cache)
    text = disassemble(kernel.asm["cubin"], cuda_tool("nvdisasm"))
    facts = compile_with_machine_code(launch, target, cache)
    spills = {k: facts.instructions.get(k, 0) for k in ("spill_load", "spill_store")}
    assert spills == {
        "spill_load": len(re.findall(r"\sLDL[\. ]", text)),
        "spill_store": len(re.findall(r"\sSTL[\. ]", text)),
    }
    assert facts.spill_bytes
    assert sum(spills.values()) > 0
    assert sum(c.get("spill_load", 0) + c.get("spill_store", 0) for c in facts.lines.values()) == sum(
        spills.values()
    )


@pytest.mark.slow
def test_code_inlined_from_the_language_is_put_on_the_users_line(cache: Path) -> None:
    target, launch = load_gpu("h100"), softmax()
    kernel, _ = _triton_compile(launch, target, launch.options, cache)
    listing = parse_ptx(located_ptx(kernel.asm), FILE)
    facts = compile_with_machine_code(launch, target, cache)
    for lines in (listing.by_line(), facts.lines):
        shuffles = {line for line, counts in lines.items() if counts.get("shuffle")}
        assert shuffles <= {0, line_of("the maximum"), line_of("the sum")}
        assert lines[line_of("the maximum")].get("shuffle")
    assert 0 not in listing.by_line()


INLINE_ASSEMBLY = """
	.loc	1 3 9 // user.py:3:9
	mov.b32 %r5, 0;
	// begin inline asm
	.loc	1 7 14 // user.py:7:14
	mov.u32 %r1, %r5;
	.loc	1 8 14 // user.py:8:14
	@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
	// end inline asm
	.loc	2 216 16, function_name $L__info_string0, inlined_at 1 9 23 // standard.py:216:16
	shfl.sync.bfly.b32 %r39, %r38, 16, 31, -1;
	.loc	2 196 12, function_name $L__info_string0, inlined_at 2 216 16 // standard.py:196:12
	max.f32 %r32, %r1, %r2;
	.loc	3 5 2 // other.py:5:2 @[ user.py:12:4 ]
	st.global.b32 [ %rd1 + 0 ], %r1;
"""


def test_positions_of_both_triton_versions_are_understood() -> None:
    """Rows of inline assembly count on from its line (LLVM in Triton 3.9); chains in comments and in ``inlined_at``."""
    listing = parse_ptx(INLINE_ASSEMBLY, "/somewhere/user.py")
    assert [(i.opcode.split(".")[0], i.line) for i in listing.instructions] == [
        ("mov", 3), ("mov", 7), ("ld", 7), ("shfl", 9), ("max", 9), ("st", 12)
    ]  # fmt: skip
    assert listing.misplaced == {("global_load", 8): 7}
    assert listing.inlined["standard.py:196"] == {9}


def test_a_load_into_shared_memory_is_a_copy_also_where_a_modifier_says_so() -> None:
    rows = "\tbuffer_load_dword v0, s[0:3], 0 offen lds\n\tbuffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen\n"
    assert [i.kind for i in parse_amdgcn(rows, "user.py").instructions] == ["async_copy", "global_load"]


def test_a_broken_binary_fails_with_the_tools_own_words() -> None:
    with pytest.raises(DisassemblyError, match="nvdisasm"):
        disassemble(b"not an ELF file", cuda_tool("nvdisasm"))
    with pytest.raises(DisassemblyError, match="did not finish"):
        disassemble(b"", "/nowhere/nvdisasm")


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [("HGMMA.64x128x16.F32", "tensor"), ("UTCHMMA", "tensor"), ("LDGSTS.E.BYPASS.128", "async_copy"),
     ("LDGDEPBAR", "wait"), ("LDG.E.128", "global_load"), ("LDS.128", "shared_load"), ("LDL.LU", "spill_load"),
     ("STL.64", "spill_store"), ("UTMALDG.2D", "bulk_copy"), ("MUFU.EX2", "special"), ("LDC.64", "other"),
     ("BAR.SYNC.DEFER_BLOCKING", "barrier"), ("SHFL.BFLY", "shuffle"), ("FFMA", "float"), ("REDG.E.ADD", "atomic")],
)  # fmt: skip
def test_machine_opcodes_have_their_class(opcode: str, kind: str) -> None:
    assert sass_class(opcode) == kind


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "tensor"), ("cp.async.cg.shared.global", "async_copy"),
     ("cp.async.wait_group", "wait"), ("cp.async.bulk.tensor.2d.shared::cluster.global", "bulk_copy"),
     ("cp.async.commit_group", "other"), ("ld.global.v4.b32", "global_load"), ("ex2.approx.ftz.f32", "special"),
     ("add.f32", "float"), ("add.s32", "other"), ("atom.global.gpu.acq_rel.add.f32", "atomic"),
     ("bar.sync", "barrier")],
)  # fmt: skip
def test_ptx_opcodes_have_their_class(opcode: str, kind: str) -> None:
    assert ptx_class(opcode) == kind


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [("v_mfma_f32_32x32x8_f16", "tensor"), ("global_load_dwordx4", "global_load"), ("ds_read_b128", "shared_load"),
     ("global_load_lds_dwordx4", "async_copy"), ("scratch_store_dword", "spill_store"), ("s_waitcnt", "wait"),
     ("v_exp_f32_e32", "special"), ("ds_bpermute_b32", "shuffle"), ("v_add_u32_e32", "other")],
)  # fmt: skip
def test_amd_opcodes_have_their_class(opcode: str, kind: str) -> None:
    assert amdgcn_class(opcode) == kind


def _reaches(successors: list[list[int]], start: int, goal: int, without: int | None) -> bool:
    waiting, visited = [start], {start}
    while waiting:
        block = waiting.pop()
        if block == goal:
            return True
        for other in successors[block]:
            if other not in visited and other != without:
                visited.add(other)
                waiting.append(other)
    return False


@given(st.integers(1, 9).flatmap(lambda n: st.lists(
    st.lists(st.integers(0, n - 1), max_size=2), min_size=n, max_size=n)))  # fmt: skip
def test_natural_loops_are_what_their_definition_says(successors: list[list[int]]) -> None:
    loops = natural_loops(successors)

    def dominates(above: int, block: int) -> bool:
        if above in (0, block):
            return True
        return not _reaches(successors, 0, block, without=above)

    reachable = [b for b in range(len(successors)) if _reaches(successors, 0, b, None)]
    headers = {h for b in reachable for h in successors[b] if dominates(h, b)}
    assert set(loops) == headers
    for header, body in loops.items():
        assert all(dominates(header, block) for block in body)
        assert all(_reaches(successors, block, header, None) for block in body)
