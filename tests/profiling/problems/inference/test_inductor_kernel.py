"""Kernels that ``torch.compile`` wrote say their types and sizes themselves."""

from __future__ import annotations

import ast

from accelopt_profiling.problems.inference.arguments import InferredCall
from accelopt_profiling.problems.inference.inductor_kernel import inductor_call, inductor_program

GATHER = """
@triton_heuristics.pointwise(
    size_hints={'y': 128, 'x': 4096},
    triton_meta={'signature': {'ids': '*i64', 'table': '*bf16', 'out': '*fp32', 'ynumel': 'i32', 'xnumel': 'i32',
        'YBLOCK': 'constexpr', 'XBLOCK': 'constexpr'}, 'device': DeviceProperties(type='cuda'), 'constants': {}},
)
@triton.jit
def gather(ids, table, out, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr):
    xnumel = 3072
    yindex = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[:, None]
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[None, :]
    ymask = yindex < ynumel
    xmask = xindex < xnumel
    y0 = yindex // 2
    x1 = (xindex % 1024)
    tmp0 = tl.load(ids + (y0), ymask, eviction_policy='evict_last')
    tmp1 = tmp0 + 500
    tmp2 = tl.where(tmp0 < 0, tmp1, tmp0)
    tl.device_assert((0 <= tmp2) & (tmp2 < 500), "index out of bounds: 0 <= tmp2 < 500")
    tmp3 = tl.load(table + (x1 + 1024*tmp2), xmask)
    tl.store(out + (xindex + 3072*yindex), tmp3, xmask & ymask)
"""


def called(text: str) -> InferredCall | None:
    function = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    return inductor_call(function, function.name)


def test_types_sizes_and_indices_are_read() -> None:
    call = called(GATHER)
    assert call is not None
    assert {a.name: (a.dims, a.dtype) for a in call.tensors} == {
        "table": (["512000"], "bfloat16"),
        "out": ([str(3072 * 128)], "float32"),
    }
    values = {a.name: a.value for a in call.arguments if a.kind == "value"}
    assert values["ids"] == 'torch.randint(0, 500, (64,), device="cuda", dtype=torch.int64)'
    assert (values["xnumel"], values["ynumel"]) == ("3072", "128")
    assert call.grid == ["cdiv(xnumel, XBLOCK)", "cdiv(ynumel, YBLOCK)"]
    assert not {"XBLOCK", "YBLOCK"} & set(values)


def test_numbered_signatures_of_older_versions_are_read() -> None:
    start, end = GATHER.index("{'ids'"), GATHER.index(", 'device'")
    older = GATHER[:start] + "{0: '*i64', 1: '*bf16', 2: '*fp32', 3: 'i32', 4: 'i32'}" + GATHER[end:]
    older = older.replace("{'y': 128, 'x': 4096}", "[128, 4096]")
    assert called(older) == called(GATHER)


def test_a_kernel_without_its_decorator_is_known_by_its_names() -> None:
    bare = GATHER[GATHER.index("@triton.jit") :].replace("ids", "in_ptr0").replace("table", "in_ptr1")
    call = called(bare.replace("out", "out_ptr0"))
    assert call is not None
    assert call.argument("xnumel").value == "3072"
    assert call.argument("XBLOCK").value == "256"
    assert called(bare.replace("XBLOCK", "BLOCK")) is None


def test_a_program_asserts_sizes_and_strides_of_its_tensors() -> None:
    text = """
def call(args):
    arg0_1, arg1_1, arg2_1 = args
    args.clear()
    assert_size_stride(arg0_1, (4, 8), (16, 1))
    assert_size_stride(arg2_1, (), ())
"""
    function = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    call = inductor_program(function, "call")
    assert call is not None
    (argument,) = call.arguments
    assert argument.value == (
        '[torch.randn(56, device="cuda").as_strided((4, 8), (16, 1)), 64, '
        'torch.randn(1, device="cuda").as_strided((), ())]'
    )
    other = ast.parse(text.replace("assert_size_stride", "check")).body[0]
    assert isinstance(other, ast.FunctionDef)
    assert inductor_program(other, "call") is None


def test_other_kernels_state_nothing() -> None:
    assert called("@triton.autotune(configs=[], key=[])\n@triton.jit\ndef k(x_ptr, n): pass\n") is None
