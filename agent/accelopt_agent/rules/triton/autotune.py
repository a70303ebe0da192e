"""Let the autotuner choose a block size that the launch sets to a number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.pointers import addressed

#: Writing twice to the same place would add up: a kernel that does cannot be run several times to choose a config.
_ATOMICS = ("atomic_add", "atomic_cas", "atomic_xchg", "atomic_max", "atomic_min", "atomic_and", "atomic_or")


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1 or kernel.calls(*_ATOMICS):
        return
    launch = kernel.launches[0]
    if _updates_in_place(kernel) or launch.keyword("num_stages") or kernel.heuristics is None:
        return
    for name in kernel.parameters:
        keyword = launch.keyword(name)
        size = integer(keyword.value) if keyword is not None else None
        if keyword is None or size is None or name not in kernel.constexprs or name in kernel.heuristics:
            continue
        rewrite = _autotuned(kernel, launch, name, keyword, size)
        if rewrite is not None:
            yield rewrite


def _updates_in_place(kernel: TritonKernel) -> bool:
    """Return whether some argument may be both loaded from and stored to: running it again would change the result."""
    loaded = {name for call in kernel.calls("load") for name in addressed(kernel, call)}
    stored = [addressed(kernel, call) for call in kernel.calls("store")]
    return any(not names or names & loaded for names in stored)


def _autotuned(
    kernel: TritonKernel, launch: KernelLaunch, name: str, keyword: cst.Arg, size: int
) -> Rewrite | None:
    source = kernel.source
    words = [kernel.names.spelled(f"triton.{w}") for w in ("autotune", "Config")]
    keys = _keys(kernel, launch)
    grid = _grid(kernel, launch, name, size)
    if None in words or not keys or grid is None or size & (size - 1):
        return None
    autotune, config = words
    warps = launch.keyword("num_warps")
    warp_count = integer(warps.value) if warps is not None else 4
    if warp_count is None:
        return None
    choices = []
    for block, count in (
        (size, warp_count),
        (size * 2, warp_count),
        (size * 2, warp_count * 2),
        (size * 4, warp_count * 2),
        (size // 2, warp_count),
    ):
        if 16 <= block <= 16384 and count <= 16:
            choices.append(f'        {config}({{"{name}": {block}}}, num_warps={count}),')
    lines = [f"@{autotune}(", "    configs=[", *choices, "    ],", f"    key=[{', '.join(keys)}],", ")"]
    decorators = kernel.function.decorators
    chosen = [keyword, warps] if warps is not None else [keyword]
    launch_edits = [*grid, *source.removed(chosen, launch.call.args)]
    edit = source.before(decorators[0], "\n".join(lines))
    return Rewrite((edit,), f"Let the autotuner choose {name} and the number of warps.", tuple(launch_edits))


def _keys(kernel: TritonKernel, launch: KernelLaunch) -> list[str]:
    """Return the size arguments: those that bound an offset in a comparison or count a loop."""
    keys = []
    nodes: list[cst.CSTNode] = [*kernel.source.walk(kernel.function.body, cst.Comparison)]
    nodes += [f.iter for f in kernel.source.walk(kernel.function.body, cst.For)]
    used = {n for node in nodes for n in kernel.flow.variables(node)}
    for name in kernel.parameters:
        if name in used and name not in kernel.constexprs:
            keys.append(f'"{name}"')
    return keys


def _grid(kernel: TritonKernel, launch: KernelLaunch, name: str, size: int) -> list[ByteEdit] | None:
    """Return the edits that make the grid follow the chosen block size.

    None where it does already, or where each program takes all blocks one after the other. None where other sizes would
    leave something out.
    """
    source, grid = kernel.source, kernel.grid_expression(launch)
    if isinstance(grid, cst.Lambda):
        numbers = [n for n in source.walk(grid.body, cst.Integer) if integer(n) == size]
        return [] if f'"{name}"' in source.code(grid.body).replace("'", '"') and not numbers else None
    numbers = [n for n in source.walk(grid, cst.Integer) if integer(n) == size]
    if grid is not launch.grid or isinstance(grid, cst.Name):
        return None
    if not numbers:
        return [] if _counts_by(kernel, name) else None
    if any(other != name and integer(value) == size for other, value in launch.arguments.items()):
        return None  # the grid's number could stand for either
    written = source.code(grid)
    if not written.startswith("("):
        written = f"({written})" if isinstance(grid, cst.Tuple) else f"({written},)"
    code, shift = written.encode(), source.start(grid) - (len(written) - len(source.code(grid))) // 2
    if written != source.code(grid):
        shift = source.start(grid) - 1
    for node in reversed(numbers):
        at, end = source.start(node) - shift, source.end(node) - shift
        code = code[:at] + f'meta["{name}"]'.encode() + code[end:]
    return [source.replace_with_parentheses(grid, f"lambda meta: {code.decode()}")]


def _counts_by(kernel: TritonKernel, name: str) -> bool:
    """Return whether a loop of the kernel takes steps of this size."""
    iterators = [loop.iter for loop in kernel.source.walk(kernel.function.body, cst.For)]
    steps = [i.args[2].value for i in iterators if isinstance(i, cst.Call) and len(i.args) == 3]
    return any(isinstance(step, cst.Name) and step.value == name for step in steps)
