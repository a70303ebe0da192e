"""Launches of the kernels in ``kernels_to_compile``, as the capture would hand them over."""

import inspect
from pathlib import Path
from typing import Any

from accelopt_profiling.triton.launch import CapturedLaunch
from support import kernels_to_compile as kernels

FILE = str(Path(kernels.__file__))
ALIGNED = [["tt.divisibility", 16]]


def line_of(comment: str) -> int:
    """The 1-based line of the kernel file that ends in ``# comment``."""
    lines = Path(FILE).read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def launch(
    fn: Any, signature: dict[str, str], constants: dict[str, Any], file: str = FILE, **options: Any
) -> CapturedLaunch:
    aligned = {(i,): ALIGNED for i, kind in enumerate(signature.values()) if kind != "constexpr"}
    _, start = inspect.getsourcelines(fn.fn)
    return CapturedLaunch(
        fn, fn.fn.__name__, file, start + 1, (64, 1, 1), (), signature, constants, options, aligned
    )


def softmax(block: int = 1024, **options: Any) -> CapturedLaunch:
    signature = {"out": "*fp32", "inp": "*fp32", "row_stride": "i32", "columns": "i32", "BLOCK": "constexpr"}
    return launch(kernels.softmax, signature, {"BLOCK": block}, **{"num_warps": 4, **options})


def matmul(m: int = 128, n: int = 128, k: int = 64, **options: Any) -> CapturedLaunch:
    signature = {
        **dict.fromkeys("abc", "*fp16"),
        **dict.fromkeys(("K", "stride_a", "stride_b", "stride_c"), "i32"),
        **dict.fromkeys(("M", "N", "KB"), "constexpr"),
    }
    constants = {"M": m, "N": n, "KB": k}
    return launch(kernels.matmul, signature, constants, **{"num_warps": 8, "num_stages": 3, **options})


def wrong_types() -> CapturedLaunch:
    signature = {"out": "*fp32", "inp": "*fp32", "BLOCK": "constexpr"}
    return launch(kernels.wrong_types, signature, {"BLOCK": 64}, num_warps=4)
