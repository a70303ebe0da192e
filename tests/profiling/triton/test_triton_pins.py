"""The private names of Triton that the emulation stands on. When one moves, this says which, before anything else."""

from __future__ import annotations

import inspect

import pytest
import torch
import triton
import triton.compiler
import triton.testing
from triton.backends.driver import DriverBase
from triton.runtime import driver, interpreter, jit

pytestmark = pytest.mark.triton

BUILDER = {
    "create_masked_load": [
        "self",
        "ptrs",
        "mask",
        "other",
        "cache_modifier",
        "eviction_policy",
        "is_volatile",
    ],
    "create_masked_store": ["self", "ptrs", "value", "mask", "cache_modifier", "eviction_policy"],
    "create_atomic_rmw": ["self", "rmwOp", "ptr", "val", "mask", "sem", "scope"],
    "create_atomic_cas": ["self", "ptr", "cmp", "val", "sem", "scope"],
    "create_dot": ["self", "a", "b", "d", "input_precision", "max_num_imprecise_acc"],
    "create_fp_to_fp": ["self", "src", "dst_type", "rounding_mode"],
    "cast_impl": ["self", "src", "dst_type"],
    "binary_op": ["self", "lhs", "rhs", "op"],
    "unary_op": ["self", "arg", "op"],
    "create_extern_elementwise": ["self", "libName", "libPath", "symbol", "argList", "retType", "isPure"],
}
NAMES = {
    interpreter: [
        "InterpreterBuilder", "InterpreterOptions", "TritonSemantic", "TensorHandle", "BlockPointerHandle",
        "TensorDescHandle", "_patch_lang", "_implicit_cvt", "_get_np_dtype", "_tuple_create", "_interpreter", "_ir",
        "interpreter_builder", "interpreter_semantic",
    ],
    jit: ["get_jit_fn_file_line", "mangle_type", "JITFunction"],
    triton.compiler: ["compile", "CompiledKernel", "ASTSource"],
    triton.testing: ["do_bench", "do_bench_cudagraph", "Mark", "perf_report"],
    driver: ["set_active", "_active"],
    DriverBase: [
        "is_active", "map_python_to_cpp_type", "get_current_target", "get_active_torch_device", "get_benchmarker",
    ],
    triton.knobs.compilation: ["listener"],
    triton.knobs.runtime: ["add_stages_inspection_hook"],
    torch.overrides: ["TorchFunctionMode"],
}  # fmt: skip


def test_version_is_one_that_was_tried():
    major, minor = (int(part) for part in triton.__version__.split(".")[:2])
    assert (3, 6) <= (major, minor) < (3, 10), "try the new Triton, then widen this and pyproject.toml"


@pytest.mark.parametrize(("owner", "name"), [(o, n) for o, names in NAMES.items() for n in names])
def test_private_name_is_there(owner, name):
    assert hasattr(owner, name), f"Triton {triton.__version__} moved {owner}.{name}; see profiling/triton"


@pytest.mark.parametrize("name", BUILDER)
def test_builder_operation_takes_what_it_took(name):
    function = getattr(interpreter.InterpreterBuilder, name)
    assert list(inspect.signature(function).parameters) == BUILDER[name]


def test_a_kernel_is_compiled_through_the_name_that_is_replaced():
    source = inspect.getsource(jit.JITFunction.create_binder)
    assert "from ..compiler import" in source
    assert "compile" in source


def test_the_stock_interpreter_restores_what_it_patches():
    assert hasattr(interpreter._LangPatchScope, "restore")
    assert "_changes" in inspect.getsource(interpreter._LangPatchScope)
