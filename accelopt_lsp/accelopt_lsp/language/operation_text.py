"""Say in words what a row of NKI's table holds, for the reference, type stubs and the editor alike."""

from __future__ import annotations

from collections.abc import Mapping

from accelopt_profiling.nki.operations.table import NkiDialect, Operation, full_name, table

#: What relates the result to the operands.
_SHAPES = {
    "same": "the operand's shape",
    "pair": "the shape of both operands, broadcast",
    "reduced": "the operand's shape without the reduced dimensions",
    "transposed": "the operand's two dimensions swapped",
    "product": "M x N of stationary (K x M) and moving (K x N)",
}


def facts(operation: Operation) -> Mapping[str, str]:
    """Return what is known about a function beside its signature, by a word for it; nothing empty."""
    where = [*operation.engines, *(f"{name} on request" for name in operation.also)]
    texts = {
        "engines": ", ".join(where),
        "result": _SHAPES.get(operation.shape, ""),
        "from": f"generation {operation.generation}" if operation.generation else "",
        "limits": ", ".join(f"{name} {limit}" for name, limit in operation.limits.items()),
        "demands": "; ".join(f"{', '.join(names)}: {rule}" for names, rule in operation.demands),
        "today": operation.impossible,
        "versions": ", ".join(f"{change} {text}" for change, text in operation.changes.items()),
        "example": operation.example,
    }
    return {name: text for name, text in texts.items() if text}


def data_type(operation: Operation, dialect: NkiDialect) -> str:
    """Return the rule for the data type of a result; "" where the row tells none."""
    signature = operation.signatures.get(dialect)
    names = signature.names if signature else frozenset[str]()
    if "dst" in names:
        return "that of dst"
    if "dtype" not in names or not operation.shape:
        return ""
    return "dtype, else that of the operands"


def page(operation: Operation, dialect: NkiDialect) -> str:
    """Return the address of AWS's page about a function."""
    name = full_name(operation.name)  # Beta 1's pages have that name too
    return f"{table()['pages'][dialect]}{name}.html"
