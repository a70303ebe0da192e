"""Launch with as many warps as a program's lanes fill: those beyond hold copies, and of more each holds too much."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from accelopt_agent.rules.analysis.edits import ByteEdit
from accelopt_agent.rules.analysis.rule_context import Rewrite
from accelopt_agent.rules.analysis.triton.block_size import passed
from accelopt_agent.rules.analysis.triton.kernel import KernelLaunch, TritonKernel, integer
from accelopt_agent.rules.analysis.triton.launch_sizes import measured_setting, option

#: Elements for a warp: a lane moves 32 bytes of them in float32, 16 in half precision.
_PER_WARP = 256
#: Triton's default, and what a program of one row may have at most.
_WARPS, _MOST = 4, 16
#: What gives a value more lanes, or fewer, than its ranges have.
_SHAPED = ("dot", "reshape", "view", "expand_dims", "broadcast_to", "join", "cat", "trans", "permute")


def rewrites(kernel: TritonKernel) -> Iterator[Rewrite]:
    if kernel.is_autotuned or not kernel.launches or kernel.calls(*_SHAPED):
        return
    extents = {
        kernel.source.code(c.args[-1].value): c.args[-1].value for c in kernel.calls("arange") if c.args
    }
    if not extents or any(option(la, "num_warps", _WARPS) is None for la in kernel.launches):
        return
    several = _has_axes(kernel)
    for most in (None, _MOST):
        counts = [_warps(kernel, launch, extents, several, most) for launch in kernel.launches]
        edits: list[ByteEdit] = []
        for launch, count in zip(kernel.launches, counts, strict=True):
            if count is not None and launch.call.args and count != str(option(launch, "num_warps", _WARPS)):
                edits += kernel.keyword_edits(launch.call, "num_warps", count)
        if None not in counts and edits:
            texts = " and ".join(dict.fromkeys(f"num_warps={count}" for count in counts))
            yield Rewrite((), f"Launch with {texts}, a warp for each {_PER_WARP} elements.", tuple(edits))


def _has_axes(kernel: TritonKernel) -> bool:
    """Return whether ranges become axes of a tile, as in ``rows[:, None]``."""
    indices = kernel.source.walk(kernel.function.body, cst.Subscript)
    return any(n.value == "None" for i in indices for e in i.slice for n in kernel.source.walk(e, cst.Name))


def _warps(
    kernel: TritonKernel,
    launch: KernelLaunch,
    extents: dict[str, cst.BaseExpression],
    several: bool,
    most: int | None,
) -> str | None:
    """Return the warps for a launch as text: a number where its ranges have fixed lengths, else what follows from the
    one length that it computes. None where that is not known, or nothing changes in the profiled case."""
    present = option(launch, "num_warps", _WARPS) or _WARPS
    most = most or present
    numbers = [
        integer(extent) or integer(passed(kernel, launch, name) if name in kernel.constexprs else None)
        for name, extent in extents.items()
    ]
    if all(numbers):
        lanes = 1
        for number in numbers:
            lanes = lanes * (number or 1) if several else max(lanes, number or 1)
        if several and len(numbers) == 1:
            lanes *= lanes
        return str(min(most, max(1, lanes // _PER_WARP)))
    name = next(iter(extents))
    given = launch.arguments.get(name)
    if (
        several
        or len(extents) != 1
        or name not in kernel.constexprs
        or given is None
        or not _plain(kernel, given)
    ):
        return None
    measured = measured_setting(kernel.subject, name)
    if measured is not None and (measured // _PER_WARP > present) is (most == present):
        return None  # the other bound says the same, or more
    if measured is not None and min(most, max(1, measured // _PER_WARP)) == present:
        return None
    return f"min({most}, max(1, {kernel.source.code(given)} // {_PER_WARP}))"


def _plain(kernel: TritonKernel, given: cst.BaseExpression) -> bool:
    """Return whether an argument can be written down twice."""
    if isinstance(given, cst.Call):
        return kernel.names.path(given.func) == "triton.next_power_of_2"
    return isinstance(given, (cst.Name, cst.Attribute, cst.Subscript))
