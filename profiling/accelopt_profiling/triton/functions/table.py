"""Reads ``functions.json``: one row for each function of ``triton.language``, by version.

Everything that needs to know a function asks here: rewrite rules, the gate's reading, the interpreter, what models are
told. No Triton is needed.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from accelopt_profiling.triton_adapter.versions import NEWEST, minor_version

Kind = Literal[
    "place",  # where a program is
    "grid",
    "range",
    "create",
    "address",  # block pointers and descriptors
    "load",
    "store",
    "atomic",
    "elementwise",  # each lane of the result is computed from that lane of the operands
    "elements",  # the same, by a function or assembly that the kernel gives
    "reduction",
    "scan",
    "order",  # lanes change their places, or are counted
    "normalization",
    "product",
    "shape",  # the same elements in another shape
    "hint",  # changes no value
    "random",
    "check",
    "compile",  # computes while a kernel compiles
    "number",
]
Version = tuple[int, int]


@dataclass(frozen=True)
class TritonFunction:
    """A function of ``triton.language``: its ``kind``, and its parameters from a version on (None: gone)."""

    name: str
    kind: Kind
    versions: tuple[tuple[Version, str | None], ...]

    def parameters(self, version: Version) -> str | None:
        """Return the parameters in a version, as Python writes them. None where it has no such function."""
        known = [parameters for since, parameters in self.versions if since <= version]
        return known[-1] if known else None


@cache
def table() -> dict[str, Any]:
    """Return the file, by its keys: "functions", "about_kinds", "dtypes", "other_names", "values" of parameters (of a
    kind of functions, or of all under ""), "pages"."""
    from importlib import resources  # which a server's start has no time for

    text = resources.files(__package__).joinpath("functions.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@cache
def functions() -> Mapping[str, TritonFunction]:
    """Return each function by its name ("load")."""
    return {
        name: TritonFunction(
            name,
            row["kind"],
            tuple((minor_version(version), row[version]) for version in row if version != "kind"),
        )
        for name, row in table()["functions"].items()
    }


@cache
def functions_of(*kinds: Kind) -> frozenset[str]:
    """Return the functions of some ``kinds``."""
    return frozenset(f.name for f in functions().values() if f.kind in kinds)


def missing(name: str, installed: Version) -> str:
    """Return why a version of Triton has no function ``name``; "" where it has it, or is too new to say."""
    function = functions().get(name)
    if installed > NEWEST or (function is not None and function.parameters(installed) is not None):
        return ""
    if function is None:
        present = [f.name for f in functions().values() if f.parameters(installed) is not None]
        near = difflib.get_close_matches(name, present, 1)
        return f"Triton has no tl.{name}{f'; it has tl.{near[0]}' if near else ''}"
    first, last = function.versions[0][0], function.versions[-1][0]
    change = (
        f"there since Triton {version_text(first)}"
        if installed < first
        else f"gone since Triton {version_text(last)}"
    )
    return f"tl.{name} is {change}; Triton {version_text(installed)} is installed"


def version_text(version: Version) -> str:
    return ".".join(map(str, version))
