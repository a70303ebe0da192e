"""Tells a model which functions its dialect has, with signatures, those first that the kernel's limit calls for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata, resources
from typing import Any

from accelopt_profiling.kernels import Kernel
from accelopt_profiling.nki.operations.table import NkiDialect, operations
from accelopt_profiling.triton.functions.table import Version
from accelopt_profiling.triton.functions.table import functions as triton_functions
from accelopt_profiling.triton_adapter.versions import NEWEST, minor_version

#: So many characters of signatures are told; what does not fit is named only.
CHARACTERS = 5200


@cache
def _topics() -> dict[str, Any]:
    topics: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath("dialect_topics.json").read_text("utf-8")
    )
    return topics


#: NKI's packages.
_PACKAGES: dict[str, NkiDialect] = {"neuronxcc.nki": "beta1", "nki": "current"}


@cache
def dialect_functions() -> dict[str, list[dict[str, str]]]:
    """Return the functions of each dialect: of NKI those that the emulator computes, of Triton those of the installed
    version, or of the newest one where none is."""
    return {
        "triton": [
            {"name": f"tl.{o.name}", "signature": f"({parameters})", "about": ""}
            for o in triton_functions().values()
            if (parameters := o.parameters(_triton_version())) is not None
        ],
        **{
            package: [
                {"name": o.name, "signature": str(o.signatures[dialect]), "about": o.about}
                for o in operations().values()
                if dialect in o.computes
            ]
            for package, dialect in _PACKAGES.items()
        },
    }


def _triton_version() -> Version:
    try:
        return min(minor_version(metadata.version("triton")), NEWEST)
    except metadata.PackageNotFoundError:
        return NEWEST


def dialect_of(kernel: Kernel) -> str:
    """Return "triton", "neuronxcc.nki" or "nki"."""
    if kernel.dialect == "triton":
        return "triton"
    return "neuronxcc.nki" if kernel.beta1 else "nki"


def dialect_text(
    kernel: Kernel, bound: str | None, text: str, plan: str = "", characters: int = CHARACTERS
) -> str:
    """Return the functions that a rewrite of ``kernel`` may use, as Markdown: first those that ``plan`` or an error
    speaks of, then those for what limits it (``bound``), then those that ``text`` uses, then the others."""
    functions = dialect_functions().get(dialect_of(kernel), [])
    patterns = _topics()["topics"]
    topics = next(
        w["topics"] for w in _topics()["wanted"] if re.search(w["limit"], bound or "", re.IGNORECASE)
    )
    used, planned = set(re.findall(r"\b\w+\.\w+", text)), set(re.findall(r"\w+", plan.lower()))

    def rank(entry: dict[str, str]) -> int:
        if entry["name"].rpartition(".")[2] in planned:
            return -1
        place = next((k for k, t in enumerate(topics) if re.search(patterns[t], entry["name"])), len(topics))
        return min(place, len(topics) - 1) if entry["name"] in used else place

    groups: dict[tuple[str, str], list[str]] = {}
    for entry in sorted(functions, key=rank):
        groups.setdefault((entry["signature"], entry["about"]), []).append(entry["name"])
    lines, rest = _within(list(groups.items()), characters)
    also = f"\nAlso: {', '.join(rest)}" if rest else ""
    return "\n".join(lines) + also


def _within(groups: Sequence[Any], characters: int) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    rest: list[str] = []
    for (signature, about), names in groups:
        line = (
            f"- {', '.join(names)}{signature}"
            if len(names) == 1
            else f"- {', '.join(names)}: each {signature}"
        )
        line += f": {about}" if about else ""
        if characters >= len(line):
            characters -= len(line)
            lines.append(line)
        else:
            rest += names
    return lines, rest
