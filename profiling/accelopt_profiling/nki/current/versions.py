"""The versions of today's dialect, and what each has, from the rows of ``operations``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Literal

from accelopt_profiling.nki.operations.table import full_name, operations, table

#: The environment variable that chooses the version to emulate.
VARIABLE = "ACCELOPT_NKI_VERSION"


class UnknownVersionError(ValueError):
    """A version that the table does not have."""


@dataclass(frozen=True)
class VersionChange:
    """The version that added, removed or deprecated a name, and what to write instead. ``unless`` is a setting with
    which the version that removed it runs it still."""

    kind: Literal["added", "removed", "deprecated"]
    version: str
    instead: str = ""
    unless: str = ""


@cache
def changes(kind: Literal["names", "methods"]) -> dict[str, dict[str, str]]:
    """Return what the versions say of each name below ``nki`` ("nki.isa.activate2"), or of each method of tensors."""
    if kind == "methods":
        return dict(table()["methods"])
    rows = {name: operation.changes for name, operation in operations().items()} | table()["names"]
    return {full_name(name): dict(entry) for name, entry in rows.items() if entry}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def emulated_version() -> str:
    """Return the version to emulate: ``ACCELOPT_NKI_VERSION``, else the newest.

    Raises:
        UnknownVersionError: the variable names a version that is not in the table.
    """
    known = table()["versions"]
    wanted = os.environ.get(VARIABLE, "") or max(known, key=number)
    if wanted not in known:
        raise UnknownVersionError(f"{VARIABLE} is {wanted}; the versions of NKI are {', '.join(known)}.")
    return wanted


def change(kind: Literal["names", "methods"], name: str, version: str) -> VersionChange | None:
    """Return the reason not to use ``name`` in ``version``: added later, removed or deprecated; None where
    there is none."""
    entry = changes(kind).get(name)
    if entry is None:
        return None
    instead = entry.get("instead", "")
    if "added" in entry and number(version) < number(entry["added"]):
        return VersionChange("added", entry["added"], instead)
    if "removed" in entry and number(version) >= number(entry["removed"]):
        return VersionChange("removed", entry["removed"], instead, entry.get("unless", ""))
    if "deprecated" in entry and number(version) >= number(entry["deprecated"]):
        return VersionChange("deprecated", entry["deprecated"], instead)
    return None
