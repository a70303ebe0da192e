"""Launch with tiles twice or half as large, where the file sets the size as a number."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.rule_context import Rewrite, RuleContext
from accelopt_agent.rules.analysis.triton.block_size import grid_axes
from accelopt_agent.rules.analysis.triton.kernel import integer, open_triton
from accelopt_agent.rules.analysis.triton.launch_sizes import LaunchSizes, Resize, axes_of, bounds_of
from accelopt_agent.rules.analysis.triton.tile_dimensions import TileDimensions

#: Tiles of fewer than 16 elements fit no tensor core; ones above 16384 no register file.
_LEAST, _MOST = 16, 16384


def rewrites(subject: RuleContext) -> Iterator[Rewrite]:
    kernel = open_triton(subject)
    if kernel is None or kernel.is_autotuned or len(kernel.launches) != 1:
        return
    # Of a launch too small to fill the device smaller tiles make more programs: at other shapes they are worse.
    small = subject.measurement is not None and subject.measurement.bound == "launch"
    analysis, launched = subject.analysis(TileDimensions), LaunchSizes(kernel, kernel.launches[0])
    for name in kernel.parameters:
        dimensions, given = analysis.of(name), launched.value(name)
        size = given.value if given is not None else 0
        if name not in kernel.constexprs or not dimensions or size < 2 or size & (size - 1):
            continue
        axes = axes_of(dimensions) or _axes_with(launched, size)
        for value in (size * 2,) if small else (size * 2, size // 2):
            resize = Resize(name, size, value, str(value), axes, bounds_of(dimensions))
            edits = launched.edits([resize]) if _LEAST <= value <= _MOST else None
            if edits is not None:
                yield Rewrite((), f"Launch with {name}={value} instead of {size}.", tuple(edits))


def _axes_with(launched: LaunchSizes, size: int) -> frozenset[int]:
    """Return the grid axes that repeat a block's size as a number, where the kernel does not show which count
    its blocks."""
    axes = grid_axes(launched.kernel, launched.launch)
    source = launched.kernel.source
    numbers = [[integer(n) for n in source.walk(e, cst.Integer)] for e in axes[0]] if axes is not None else []
    return frozenset(axis for axis, found in enumerate(numbers) if size in found)
