"""Launch with tiles twice or half as large, where the file sets the size as a number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer, open_triton

#: Tiles of fewer than 16 elements fit no tensor core; ones above 16384 no register file.
_LEAST, _MOST = 16, 16384


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None or kernel.is_autotuned or len(kernel.launches) != 1:
        return
    launch = kernel.launches[0]
    for name in kernel.parameters:
        size = _size(kernel, launch, name)
        if name not in kernel.constexprs or size is None or not _sizes_a_tile(kernel, name):
            continue
        for value in (size * 2, size // 2):
            edits = _resized(kernel, launch, name, size, value) if _LEAST <= value <= _MOST else None
            if edits is not None:
                yield Rewrite((), f"Launch with {name}={value} instead of {size}.", tuple(edits))


def _size(kernel: TritonKernel, launch: KernelLaunch, name: str) -> int | None:
    """The power of two that the launch passes for ``name``: a literal, or a variable assigned to one."""
    value = launch.arguments.get(name)
    if isinstance(value, cst.Name):
        assign = kernel.assigned(launch, value.value)
        value = assign.value if assign is not None else None
    size = integer(value)
    return size if size is not None and size >= 2 and size & (size - 1) == 0 else None


def _sizes_a_tile(kernel: TritonKernel, name: str) -> bool:
    """Return whether the kernel makes ranges of ``name`` elements."""
    return any(
        len(call.args) == 2 and isinstance(call.args[1].value, cst.Name) and call.args[1].value.value == name
        for call in kernel.calls("arange")
    )


def _resized(
    kernel: TritonKernel, launch: KernelLaunch, name: str, size: int, value: int
) -> list[ByteEdit] | None:
    """The edits at the launch that pass ``value``, also where the grid repeats the number."""
    source, given = kernel.source, launch.arguments[name]
    if isinstance(given, cst.Name):
        assign = kernel.assigned(launch, given.value)
        return [source.replace(assign.value, str(value))] if assign is not None else None
    edits = [source.replace(given, str(value))]
    grid = kernel.grid_expression(launch)
    behind = [
        a.value for n in source.walk(grid, cst.Name) if (a := kernel.assigned(launch, n.value)) is not None
    ]
    repeated = [n for part in (grid, *behind) for n in source.walk(part, cst.Integer) if integer(n) == size]
    others = [a for n, a in launch.arguments.items() if n != name and integer(a) == size]
    if repeated and others:
        return None  # the grid's number could stand for either
    return edits + [source.replace(n, str(value)) for n in repeated]
