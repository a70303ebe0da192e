"""What NKI's modules have besides functions, and which names a version has."""

from __future__ import annotations

from collections.abc import Mapping

from accelopt_profiling.nki.current.versions import VersionChange, change, number
from accelopt_profiling.nki.operations.table import NkiDialect, full_name, table


def newest() -> str:
    """Return the newest version of today's NKI in the table."""
    versions: list[str] = list(table()["versions"])
    return max(versions, key=number)


def absence(name: str, dialect: NkiDialect, version: str) -> VersionChange | None:
    """Return the change by which a version lacks ``name`` ("nl.exp", "nl.float32"); None where none is known."""
    reason = change("names", full_name(name), version) if dialect == "current" else None
    return None if reason is None or reason.kind == "deprecated" or reason.unless else reason


def choices(dialect: NkiDialect) -> Mapping[str, list[str]]:
    """Return the members of ``nisa``'s enumerations; Beta 1's ``dma_engine`` is one of the engines."""
    members = {name: row.split() for name, row in table()["values"]["choices"].items()}
    return {n: m for n, m in members.items() if dialect == "current" or n != "dma_engine"}


def engines(dialect: NkiDialect) -> list[str]:
    """Return the engines by their names in ``nisa`` itself: "vector_engine"."""
    members = table()["values"]["choices"]["engine"].split()
    return [f"{m}_engine" for m in members if dialect == "beta1" or m != "dma"]


def data_types(dialect: NkiDialect, version: str) -> list[str]:
    names: list[str] = table()["values"]["dtypes"].split()
    return [name for name in names if absence(f"nl.{name}", dialect, version) is None]


def buffers() -> list[str]:
    names: list[str] = table()["values"]["buffers"].split()
    return names


def tile_sizes(dialect: NkiDialect) -> list[str]:
    names: list[str] = table()["values"]["tile_size"][dialect].split()
    return names


#: Classes and further values of a module.
_OTHERS = {
    ("nl", "beta1"): ("mgrid", "tensor", "fp32", "tile_size", "constants"),
    ("nl", "current"): (
        "MemoryRegion", "NkiTensor", "tensor", "NKIObject", "NkiGrid", "NkiTileGrid", "NkiBlockGrid", "DType",
        "average", "range", "fp32", "tile_size",
    ),
    ("nisa", "beta1"): ("constants",),
    ("nisa", "current"): ("VirtualRegister", "NkiScalar", "NkiInstruction", "NkiValidationError", "constants"),
}  # fmt: skip


def other_names(module: str, dialect: NkiDialect, version: str) -> list[str]:
    """Return the names of "nl" or "nisa" that are no functions, types, buffers or enumerations."""
    names = _OTHERS[module, dialect]
    return [name for name in names if absence(f"{module}.{name}", dialect, version) is None]


def value_names(module: str, dialect: NkiDialect, version: str) -> list[str]:
    """Return every name of "nl" or "nisa" that is no function."""
    if module == "nl":
        own = [*data_types(dialect, version), *buffers()]
    else:
        own = [*choices(dialect), *engines(dialect)]
    return [*own, *other_names(module, dialect, version)]
