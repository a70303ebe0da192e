"""Launch with tiles twice or half as large, where the file sets the size as a number, or with blocks of a loop that are
smaller than what it computes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axes
from accelopt_agent.rules.analysis.triton.kernel import TritonKernel, integer
from accelopt_agent.rules.analysis.triton.launch_sizes import (
    LaunchSizes,
    Resize,
    axes_of,
    bounds_of,
    measured_setting,
    options_edits,
)
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimensions

#: Tiles of fewer than 16 elements fit no tensor core; ones above 16384 no register file.
_LEAST, _MOST = 16, 16384
#: What a computed block is divided by, and its warps: each warp keeps its part, more programs share a multiprocessor.
_PARTS = (4, 2, 8)
#: Elements per warp below which a lane has no whole access of 16 bytes.
_PER_WARP = 256


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or len(kernel.launches) != 1:
        return
    # Of a launch too small to fill the device smaller tiles make more programs: at other shapes they are worse.
    small = kernel.subject.measurement is not None and kernel.subject.measurement.bound == "launch"
    analysis, launched = kernel.subject.analysis(TileDimensions), LaunchSizes(kernel, kernel.launches[0])
    for name in kernel.parameters:
        dimensions, current = analysis.of(name), launched.value(name)
        if current is None and dimensions and not small and name in kernel.constexprs:
            if all(d.loops and d.looped and d.guarded and not d.axes for d in dimensions):
                yield from _smaller_blocks(kernel.subject, launched, name)
            continue
        size = current.value if current is not None else 0
        if name not in kernel.constexprs or not dimensions or size < 2 or size & (size - 1):
            continue
        axes = axes_of(dimensions) or _axes_with(launched, size)
        for value in (size * 2,) if small else (size * 2, size // 2):
            resize = Resize(name, size, new=value, text=str(value), axes=axes, bounds=bounds_of(dimensions))
            edits = launched.edits([resize]) if _LEAST <= value <= _MOST else None
            if edits is not None:
                yield Rewrite((), f"Launch with {name}={value} instead of {size}.", tuple(edits))


def _axes_with(launched: LaunchSizes, size: int) -> frozenset[int]:
    """Return the grid axes that repeat a block's size as a number, where the kernel does not show which count
    its blocks."""
    axes = grid_axes(launched.kernel, launched.launch)
    source = launched.kernel.source
    numbers = [[integer(n) for n in source.walk(e, cst.Integer)] for e in axes[0]] if axes is not None else []
    return frozenset(axis for axis, values in enumerate(numbers) if size in values)


def _smaller_blocks(subject: RuleContext, launched: LaunchSizes, name: str) -> Iterator[Rewrite]:
    """Bound a block that the launch computes and the kernel's loops go over, and its warps with it."""
    kernel, launch = launched.kernel, launched.launch
    argument, warps = launch.arguments.get(name), launch.keyword("num_warps")
    size, count = measured_setting(subject, name), measured_setting(subject, "num_warps")
    keyword = launch.keyword(name)
    if (
        argument is None
        or keyword is None
        or warps is None
        or size is None
        or count is None
        or kernel.hides("min")
    ):
        return
    for parts in _PARTS:
        block, fewer = size // parts, count // parts
        if not fewer or block < fewer * _PER_WARP:
            continue
        texts = {
            n: f"min({kernel.source.code(value)}, {most})" if integer(value) is None else str(most)
            for n, value, most in ((name, argument, block), ("num_warps", warps.value, fewer))
        }
        edits = options_edits(kernel, launch.call, texts)
        summary = f"Launch with {name} of at most {block} ({size} here) and at most {fewer} warps ({count})."
        yield Rewrite((), summary, tuple(edits))
