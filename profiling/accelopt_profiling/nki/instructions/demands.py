"""Checks what the page of an instruction demands of its operands: the ``demands`` of its row, in today's dialect.

A demand is "parameters: rule". The rule is "one type", "one in psum", "tensor" (no number), the memory that a tensor
may lie in, the types that it may have (also "integer" and "float"), or the operations that an ``op`` may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import operation_name
from accelopt_profiling.nki.data.dtypes import is_float
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.operations.table import Operation, full_name

_MEMORIES = frozenset(memory.value for memory in MemorySpace)


def check_demands(machine: Machine, operation: Operation, values: Mapping[str, Any]) -> None:
    """Compare the arguments of a call with what the row demands.

    Raises:
        KernelFaultError: a demand is not met.
    """
    for names, rule in operation.demands:
        tiles = {name: values[name] for name in names if isinstance(values.get(name), Tile)}
        problem = (
            _no_tensor(rule, names, values)
            or _problem(rule, tiles)
            or _wrong_operation(rule, {n: values.get(n) for n in names})
        )
        if problem:
            machine.fault(
                "unsupported", f"{operation.name}: {problem} (AWS's page of {full_name(operation.name)})."
            )


def _no_tensor(rule: str, names: Sequence[str], values: Mapping[str, Any]) -> str:
    wrong = {n: repr(values[n])[:40] for n in names if not isinstance(values.get(n), Tile | None)}
    return f"{_listed(wrong)}, not a tensor" if rule == "tensor" and wrong else ""


def _problem(rule: str, tiles: Mapping[str, Tile]) -> str:
    if rule == "one type":
        kinds = {name: tile.dtype.name for name, tile in tiles.items()}
        return "" if len(set(kinds.values())) < 2 else f"{_listed(kinds)}; they have one type"
    if rule == "one in psum":
        inside = [name for name, tile in tiles.items() if tile.block.info.memory is MemorySpace.PSUM]
        return "" if len(inside) < 2 else f"{' and '.join(inside)} lie in PSUM; one of them may"
    if rule == "tensor":
        return ""
    if _MEMORIES.issuperset(rule.split()):
        outside = {n: t.block.info.memory.value for n, t in tiles.items()}
        outside = {name: memory.upper() for name, memory in outside.items() if memory not in rule.split()}
        return (
            ""
            if not outside
            else f"{_listed(outside, 'lies in')}; it must be {rule.upper().replace(' ', ' or ')}"
        )
    wrong = {name: tile.dtype.name for name, tile in tiles.items() if not _is_of(tile.dtype, rule)}
    return "" if not wrong else f"{_listed(wrong)}, not {rule.replace(' ', ', ')}"


def _is_of(dtype: np.dtype[Any], rule: str) -> bool:
    words = rule.split()
    if dtype.name in words:
        return True
    return ("float" in words and is_float(dtype)) or ("integer" in words and dtype.kind in "iu")


def _wrong_operation(rule: str, values: Mapping[str, Any]) -> str:
    wrong = {name: operation_name(v) for name, v in values.items() if _is_operation(v)}
    wrong = {name: op for name, op in wrong.items() if op not in rule.split()}
    return "" if not wrong else f"{_listed(wrong)}, not one of {rule.replace(' ', ', ')}"


def _is_operation(value: Any) -> bool:
    return isinstance(value, str) or (callable(value) and not isinstance(value, Tile))


def _listed(facts: Mapping[str, str], verb: str = "is") -> str:
    return " and ".join(f"{name} {verb} {fact}" for name, fact in facts.items())
