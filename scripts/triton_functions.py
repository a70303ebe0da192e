"""Writes the functions of Triton with their signatures, which models are told of, from the installed package.

python scripts/triton_functions.py
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import triton
import triton.language

FILE = Path(__file__).parents[1] / "agent/accelopt_agent/model/triton_functions.json"
ABOUT = (
    "Triton's functions with the signatures of the installed package. Written by scripts/triton_functions.py."
)


def functions() -> dict[str, Any]:
    """Return Triton's functions as data: name and signature."""
    return {"about": ABOUT, "triton_version": triton.__version__, "functions": list(_triton())}


def _triton() -> list[dict[str, str]]:
    functions = []
    for name in triton.language.__all__:
        function = getattr(triton.language, name)
        if isinstance(function, type) or not callable(function):
            continue
        inner = getattr(function, "fn", function)
        try:
            signature = _signature(inner)
        except (TypeError, ValueError):
            continue
        functions.append({"name": f"tl.{name}", "signature": signature, "about": ""})
    return functions


def _signature(function: Any) -> str:
    """Return the parameters with their defaults, without annotations and without what is ignored."""
    parts: list[str] = []
    for p in inspect.signature(function).parameters.values():
        if p.name in ("self", "unused", "_semantic", "_generator", "_builder", "ignored"):
            continue
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        if p.kind is p.KEYWORD_ONLY and "*" not in parts and not any(s.startswith("*") for s in parts):
            parts.append("*")
        parts.append(f"{star}{p.name}{default}")
    return f"({', '.join(parts)})"


def _default(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 20 and "<" not in text else "..."


def main() -> None:
    rows = re.sub(r"\{\n +(.*)\n +(.*)\n +(.*)\n +\}", r"{\1 \2 \3}", json.dumps(functions(), indent=1))
    FILE.write_text(rows + "\n", "utf-8")


if __name__ == "__main__":
    main()
