"""Determine how many programs share a multiprocessor, how deep they load ahead, and what of L1 is left for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from accelopt_profiling.targets import GpuTarget
from accelopt_profiling.triton.compilation.compiled import CompiledFacts, occupancy
from accelopt_profiling.triton.interpreter.counting import LaunchCounts

ASSUMED_REGISTERS, ASSUMED_WARPS = 32, 4  # before the kernel is compiled
WARPS_OF_A_GROUP = 4
_AHEAD = ("async_copy", "bulk_copy")


@dataclass(frozen=True)
class LaunchResidency:
    """``programs`` run at the same time on the device, ``each`` on one multiprocessor, with ``threads`` a program.

    ``groups`` of four warps there (one for each part of a multiprocessor) can do different things at the same time.
    ``rounds`` of them run the launch. ``depth`` loads are under way at once where a loop is pipelined; ``past_l1`` are
    the tensors that async copies load, ``ahead`` the lines they are on. ``l1_bytes`` is what shared memory leaves.
    """

    programs: int
    each: int
    rounds: int
    threads: int
    groups: int
    depth: int
    l1_bytes: float
    past_l1: frozenset[str] = frozenset()
    ahead: frozenset[int] = frozenset()


def residency(counts: LaunchCounts, compiled: CompiledFacts | None, target: GpuTarget) -> LaunchResidency:
    """Derive the residency of a launch. Before it is compiled, that of a small program without pipelining."""
    is_compiled = compiled is not None and compiled.problem is None and compiled.occupancy is not None
    warps, shared, depth = ASSUMED_WARPS, 0, 1
    ahead: frozenset[int] = frozenset()
    if is_compiled:
        assert compiled is not None
        assert compiled.occupancy is not None
        fits = compiled.occupancy.programs
        warps, shared, depth = compiled.warps or warps, compiled.shared_bytes or 0, compiled.pipeline_depth
        ahead = frozenset(n for n, kinds in compiled.lines.items() if any(kinds.get(kind) for kind in _AHEAD))
    else:
        fits = occupancy(target, warps=warps, registers=ASSUMED_REGISTERS, shared_bytes=0).programs
    multiprocessors = int(target["multiprocessors"])
    each = max(1, min(fits, math.ceil(counts.programs / multiprocessors)))
    together = max(1, min(counts.programs, each * multiprocessors))
    l1 = target["l1_bytes"]
    if l1 > target["shared_memory_per_multiprocessor"]:  # one memory for both
        l1 -= each * (shared + target["shared_memory_reserved_per_program"])
    past = frozenset(name for line in ahead for name in counts.line_tensors.get(line, ()))
    rounds = math.ceil(counts.programs / together)
    groups = each * max(1, _busy_warps(counts, warps, target) // WARPS_OF_A_GROUP)
    threads = warps * target.warp_size
    return LaunchResidency(
        together,
        each,
        rounds=rounds,
        threads=threads,
        groups=groups,
        depth=depth,
        l1_bytes=max(0.0, l1),
        past_l1=past,
        ahead=ahead,
    )


def _busy_warps(counts: LaunchCounts, warps: int, target: GpuTarget) -> int:
    """Return the warps of a program that have lanes of their own: of an access with fewer lanes than threads the others
    hold copies. Matrix products divide their work otherwise."""
    if counts.dots or not counts.widest:
        return warps
    return min(warps, math.ceil(counts.widest / target.warp_size))
