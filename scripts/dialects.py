"""Writes the functions of each dialect with their signatures, which models are told of, from the emulator and Triton.

python scripts/dialects.py
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import triton
import triton.language

from accelopt_profiling.nki.frontend.namespace import MissingName
from accelopt_profiling.nki.frontend.operators import NlOperation
from accelopt_profiling.nki.install import emulated

FILE = Path(__file__).parents[1] / "agent/accelopt_agent/model/dialect_functions.json"
DIALECTS = {
    "neuronxcc.nki": {"nl": "neuronxcc.nki.language", "nisa": "neuronxcc.nki.isa"},
    "nki": {"nl": "nki.language", "nisa": "nki.isa"},
}
ABOUT = (
    "The functions of each dialect: those that the emulator carries out, with the signatures and summaries of its own "
    "code, and Triton's with the signatures of the installed package. Written by scripts/dialects.py."
)


def functions() -> dict[str, Any]:
    """Return the functions of all dialects as data: name, signature, and for NKI what it does."""
    found: dict[str, list[dict[str, str]]] = {}
    with emulated("full", sdk=False):
        for dialect, modules in DIALECTS.items():
            found[dialect] = [
                entry
                for alias, name in modules.items()
                for entry in _entries(alias, importlib.import_module(name))
            ]
    found["triton"] = list(_triton())
    return {"about": ABOUT, "triton_version": triton.__version__, "dialects": found}


def _entries(alias: str, module: Any) -> list[dict[str, str]]:
    names = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))]
    found = []
    for name in names:
        function = getattr(module, name)
        if isinstance(function, (MissingName, type)):
            continue
        inner = type(function).__call__ if isinstance(function, NlOperation) else function
        signature = _signature(_innermost(inner))
        about = (inspect.getdoc(_innermost(inner)) or inspect.getdoc(function) or "").split("\n\n")[0]
        if isinstance(function, NlOperation):
            about = (inspect.getdoc(function) or "").split("\n\n")[0]
        sentence = " ".join(about.split()).replace("``", "")
        found.append(
            {"name": f"{alias}.{name}", "signature": signature, "about": sentence.partition(". ")[0]}
        )
    return found


def _innermost(function: Any) -> Any:
    """Return the function that the emulator's wrappers end in."""
    while True:
        cells = [c.cell_contents for c in getattr(function, "__closure__", None) or ()]
        inner = [c for c in cells if inspect.isfunction(c)]
        if inspect.isfunction(function) and "arguments" in inspect.signature(function).parameters and inner:
            function = inner[0]
        else:
            return function


def _triton() -> list[dict[str, str]]:
    found = []
    for name in triton.language.__all__:
        function = getattr(triton.language, name)
        if isinstance(function, type) or not callable(function):
            continue
        inner = getattr(function, "fn", function)
        try:
            signature = _signature(inner)
        except (TypeError, ValueError):
            continue
        found.append({"name": f"tl.{name}", "signature": signature, "about": ""})
    return found


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
