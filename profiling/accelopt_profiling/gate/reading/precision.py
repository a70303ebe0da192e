"""Formats of fewer bits that a file mentions, so that a receipt can say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from accelopt_profiling.gate.reading.finding import StaticFinding
from accelopt_profiling.gate.reading.names import Names

LOW = ("float16", "bfloat16", "half", "tfloat32", "float8e4", "float8e5", "float8_e4m3", "float8_e5m2",
       "float8_e4m3fn", "float8e4nv", "float8e4b15", "float8_e5m2fnuz", "fp16", "bf16")  # fmt: skip


def low_precision(names: Names) -> Iterator[StaticFinding]:
    for node in ast.walk(names.tree):
        if isinstance(node, ast.Attribute) and node.attr in LOW:
            yield StaticFinding("low-precision", node.lineno, f"It uses {node.attr}.")
        elif isinstance(node, ast.keyword) and node.arg in ("input_precision", "allow_tf32"):
            value = node.value
            if isinstance(value, ast.Constant) and value.value in ("tf32", True):
                yield StaticFinding("low-precision", value.lineno, f"It asks for TF32 ({node.arg}).")
        elif isinstance(node, ast.Call) and names.dotted(node.func) == "triton.language.dot":
            if not {"input_precision", "allow_tf32"} & {k.arg for k in node.keywords}:
                said = "tl.dot multiplies float32 in TF32 unless it is told otherwise."
                yield StaticFinding("low-precision", node.lineno, said)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in LOW:
            yield StaticFinding("low-precision", node.lineno, f"It names {node.value}.")
