"""Checks what the page of an instruction demands of its operands: the ``demands`` of its row, in today's dialect.

A demand is "parameters: rule", and says nothing of a parameter that is None. The rule is one of

- "one type", "one in psum", "up to 3 dimensions", or the memories that they may lie in: of tensors;
- the types that a tensor may have (also "integer" and "float"), or after "not" those that it may not have;
- "tensor", "number", "whole": what an argument is, "whole" for a number without a fraction;
- "trn3": the core that the argument needs; the numbers that it may be; the operations that an ``op`` may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from accelopt_profiling.nki.compute.operations import operation_name
from accelopt_profiling.nki.data.dtypes import is_float, type_name
from accelopt_profiling.nki.data.loop_counter import plain
from accelopt_profiling.nki.data.memory_space import MemorySpace
from accelopt_profiling.nki.emulator.machine import Machine
from accelopt_profiling.nki.emulator.tile import Tile
from accelopt_profiling.nki.instructions.enums import NkiEngine
from accelopt_profiling.nki.operations.table import Operation, full_name

_MEMORIES = frozenset(memory.value for memory in MemorySpace)


def check_demands(machine: Machine, operation: Operation, values: Mapping[str, Any]) -> None:
    """Compare the arguments of a call with what the row demands.

    Raises:
        KernelFaultError: a demand is not met.
    """
    for name, value in values.items():
        if not isinstance(value, Tile):
            continue
        if value.addressing == "columns" and name not in operation.indirect:
            machine.fault(
                "unsupported",
                f"{operation.name} takes no indirect {name} (AWS's page of {operation.name} in nki.isa).",
            )
        if name in operation.writes:
            _check_scatter(machine, operation, value, values.get("engine"))
        if operation.engines != ("dma",) and value.block.info.memory is not MemorySpace.HBM:
            _check_partitions(machine, operation, name, value)
    for names, rule in operation.demands:
        given = {name: values[name] for name in names if values.get(name) is not None}
        tiles = {name: value for name, value in given.items() if isinstance(value, Tile)}
        others = {name: plain(value) for name, value in given.items() if name not in tiles}
        problem = _wrong_argument(machine, rule, tiles, others)
        if problem is None:
            problem = _wrong_tensor(rule, tiles) or _wrong_operation(rule, others)
        if problem:
            machine.fault(
                "unsupported", f"{operation.name}: {problem} (AWS's page of {full_name(operation.name)})."
            )


def _check_scatter(machine: Machine, operation: Operation, target: Tile, engine: Any) -> None:
    """Check that ScalarE does not scatter into PSUM."""
    scalar = operation.engines == ("scalar",) or engine is NkiEngine.scalar
    columns = target.addressing == "columns"
    if scalar and columns and target.block.info.memory is MemorySpace.PSUM:
        machine.fault("unsupported", f"{operation.name} on ScalarE does not scatter into PSUM.")


def _check_partitions(machine: Machine, operation: Operation, name: str, tile: Tile) -> None:
    """Check the partitions that an engine reaches: one after another, from a quadrant's edge on.

    The first is so in hardware. The second is too, and AWS's compiler is said to see to it.
    """
    count, step = tile.dims[0] if tile.dims else (1, 0)
    row = prod(tile.block.shape[1:])
    if count > 1 and step > row and tile.positions is None:
        machine.fault(
            "unsupported",
            f"{operation.name}: {name} is every {step // row}th partition; engines take partitions one after another "
            "(AWS's trainium_inferentia2_arch).",
        )
    start = tile.offset // row
    if start and start % (32 if count <= 32 else 64 if count <= 64 else 128):
        machine.diagnostics.report(
            "contradiction",
            f"{operation.name}: {name} is {count} partitions from {start} on. AWS's trainium_inferentia2_arch says "
            "that they must start at a multiple of 32, over 32 of them at 0 or 64, over 64 at 0, and that the "
            "compiler's allocator sees to it; it is computed as written.",
            "information",
        )


def _wrong_argument(
    machine: Machine, rule: str, tiles: Mapping[str, Tile], others: Mapping[str, Any]
) -> str | None:
    """Return what is wrong by a rule on arguments, "" if nothing is; None: it is a rule on tensors or operations."""
    words = rule.split()
    if rule == "tensor":
        wrong = {name: repr(value)[:40] for name, value in others.items()}
        return "" if not wrong else f"{_listed(wrong)}, not a tensor"
    if rule == "number":
        return "" if not tiles else f"{' and '.join(tiles)} must be a number"
    if rule == "whole":
        parts = {name: f"{v}" for name, v in others.items() if isinstance(v, (float, np.floating)) and v % 1}
        return "" if not parts else f"{_listed(parts)}, no whole number"
    if rule == "trn3":
        given = [*tiles, *others]
        return "" if not given or machine.limits.generation >= 4 else f"{' and '.join(given)} needs trn3"
    if words[0].isdecimal():
        parts = {name: f"{v}" for name, v in others.items() if f"{v}" not in words}
        return "" if not parts else f"{_listed(parts)}, not {rule.replace(' ', ', ')}"
    return None


def _wrong_tensor(rule: str, tiles: Mapping[str, Tile]) -> str:
    words = rule.split()
    if rule == "one type":
        kinds = {name: type_name(tile.dtype) for name, tile in tiles.items()}
        return "" if len(set(kinds.values())) < 2 else f"{_listed(kinds)}; they have one type"
    if rule == "one in psum":
        inside = [name for name, tile in tiles.items() if tile.block.info.memory is MemorySpace.PSUM]
        return "" if len(inside) < 2 else f"{' and '.join(inside)} lie in PSUM; one of them may"
    if _MEMORIES.issuperset(words):
        outside = {n: t.block.info.memory.value for n, t in tiles.items()}
        outside = {name: memory.upper() for name, memory in outside.items() if memory not in words}
        must = rule.upper().replace(" ", " or ")
        return "" if not outside else f"{_listed(outside, 'lies in')}; it must be {must}"
    if words[0] == "up":
        shapes = {n: str(t.shape) for n, t in tiles.items() if len(t.shape) > int(words[2])}
        return "" if not shapes else f"{_listed(shapes, 'has the shape')}; {rule} are taken"
    refused = words[0] == "not"
    wrong = {n: type_name(t.dtype) for n, t in tiles.items() if _is_of(t.dtype, words) == refused}
    listed = ", ".join(words[refused:])
    return "" if not wrong else f"{_listed(wrong)}, {'one of' if refused else 'not'} {listed}"


def _is_of(dtype: np.dtype[Any], words: list[str]) -> bool:
    if type_name(dtype) in words:
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
